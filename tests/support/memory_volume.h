// SPDX-License-Identifier: Apache-2.0
// A Volume in memory: no engine, no tables, no disk. Tests of the FUSE layer mount it, so that
// every failure is the FUSE layer's. Benchmarks mount it to measure the cost of the way through the
// kernel. It keeps the contract of fs/volume/volume.h; durability means nothing here.
//
// Thread-safe. Locks: tree_ (shared to look, exclusive to change names or attributes), then a
// node's data_mutex.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include "fs/fuse/served_volume.h"

namespace nacre::tests {

using fs::AllocateMode;
using fs::AttributeChange;
using fs::Attributes;
using fs::Caller;
using fs::DirectoryEntry;
using fs::RenameMode;
using fs::SeekWhat;
using fs::XattrMode;
using metadata::InodeNumber;
using metadata::Timestamp;

class MemoryVolume final : public fs::Volume {
 public:
  // The root directory belongs to the user of this process.
  MemoryVolume();
  ~MemoryVolume() override;

  // Called before each later read of this file, and may fail it or throw; empty: no more.
  void before_reads(InodeNumber inode, std::function<Result<>()> call);
  // The same before each later write, also of bytes that the kernel took from a program before.
  void before_writes(InodeNumber inode, std::function<Result<>()> call);
  // From now on writes may use up this many bytes, of which none is ever freed. Then writes fail
  // with no_space.
  void limit_room(std::uint64_t bytes) { room_bytes_ = static_cast<std::int64_t>(bytes); }
  std::uint64_t room_bytes() const {
    return static_cast<std::uint64_t>(std::min<std::int64_t>(room_bytes_, pretended_bytes));
  }
  // Each lookup of the name, in any directory, first calls the function, without holding a lock.
  void before_lookups(std::string name, std::function<void()> call);
  // While held, sync_inode() calls done later, when they are no longer held.
  void hold_syncs(bool held);
  // Holds writers as compaction would, while a test engages it.
  fs::WritePacer& pacer() { return pacer_; }
  // Inodes that are still in memory: without a name but looked up, or with one.
  std::size_t inode_count();
  // How often sync_inode() was called.
  std::uint64_t sync_count() const { return sync_count_.load(); }
  fs::KernelCacheLink& kernel_cache() { return kernel_cache_; }
  fs::ServedVolume served() {
    return {.volume = *this,
            .kernel_cache = kernel_cache_,
            .pacer = pacer_,
            .block_size_bytes = block_size_bytes};
  }

  Result<Attributes> lookup(InodeNumber parent, std::string_view name) override;
  Result<Attributes> lookup_inode(InodeNumber inode) override;
  bool forget(InodeNumber inode, std::uint64_t lookups) override;
  Result<Attributes> make_node(InodeNumber parent, std::string_view name, const Caller& caller,
                               std::uint32_t mode, std::uint64_t rdev) override;
  Result<Attributes> make_directory(InodeNumber parent, std::string_view name, const Caller& caller,
                                    std::uint32_t mode) override;
  Result<Attributes> make_symlink(InodeNumber parent, std::string_view name, const Caller& caller,
                                  std::string_view target) override;
  Result<Attributes> make_unnamed(InodeNumber parent, const Caller& caller,
                                  std::uint32_t mode) override;
  Result<Attributes> link(InodeNumber inode, InodeNumber parent, std::string_view name) override;
  Result<> unlink(InodeNumber parent, std::string_view name) override;
  Result<> remove_directory(InodeNumber parent, std::string_view name) override;
  Result<> rename(InodeNumber parent, std::string_view name, InodeNumber new_parent,
                  std::string_view new_name, RenameMode mode) override;
  Result<> rename_over_whiteout(InodeNumber parent, std::string_view name, InodeNumber new_parent,
                                std::string_view new_name, RenameMode mode,
                                const Caller& caller) override;
  Result<std::string> read_symlink(InodeNumber inode) override;
  Result<> read_directory(InodeNumber inode, std::uint64_t cookie, bool with_attributes,
                          const std::function<bool(const DirectoryEntry&)>& take) override;

  Result<Attributes> attributes(InodeNumber inode) override;
  Result<Attributes> change_attributes(InodeNumber inode, const AttributeChange& change) override;
  Result<> set_flags(InodeNumber inode, std::uint32_t flags) override;
  Result<std::string> get_xattr(InodeNumber inode, std::string_view name) override;
  Result<> set_xattr(InodeNumber inode, std::string_view name, std::string_view value,
                     XattrMode mode, bool clear_sgid) override;
  Result<> remove_xattr(InodeNumber inode, std::string_view name) override;
  Result<std::vector<std::string>> list_xattrs(InodeNumber inode) override;

  Result<std::size_t> read(InodeNumber inode, std::uint64_t offset, MutableByteView out) override;
  Result<fs::FileBytes> view(InodeNumber inode, std::uint64_t offset,
                             MutableByteView buffer) override {
    NACRE_ASSIGN(const std::size_t size, read(inode, offset, buffer));
    fs::FileBytes bytes;
    bytes.add(buffer.first(size));
    return bytes;
  }
  Result<> write(InodeNumber inode, std::uint64_t offset, ByteView bytes,
                 fs::WriteFlags flags) override;
  Result<std::uint64_t> check_write(InodeNumber inode, std::uint64_t bytes,
                                    std::uint64_t kept_bytes) override;
  Result<> allocate(InodeNumber inode, AllocateMode mode, std::uint64_t offset,
                    std::uint64_t length) override;
  Result<std::uint64_t> seek(InodeNumber inode, std::uint64_t offset, SeekWhat what) override;
  Result<std::uint64_t> copy_range(InodeNumber from, std::uint64_t from_offset, InodeNumber to,
                                   std::uint64_t to_offset, std::uint64_t length) override;

  void sync_inode(InodeNumber inode, std::function<void(Result<>)> done) override;
  Result<> sync_all() override { return {}; }

  Result<fs::VolumeSpace> space() override;
  std::string path_of(InodeNumber inode) override;
  std::string shown_name(InodeNumber inode) override { return path_of(inode); }
  void go_on_listing() noexcept override {}

 private:
  static constexpr std::string_view capability_name = "security.capability";
  static constexpr std::int64_t pretended_bytes = std::int64_t{1} << 40;
  static constexpr std::size_t block_size_bytes = 64u << 10;
  using Block = std::array<Byte, block_size_bytes>;

  static bool is_frozen(const fs::Attributes& attributes);  // immutable, or only appended to

  // A directory's entries by cookie: cookies count up, so they stay right while entries go.
  struct Entries {
    struct Entry {
      std::string name;
      InodeNumber inode;
    };
    std::map<std::uint64_t, Entry> by_cookie;
    std::unordered_map<std::string, std::uint64_t> cookies;
    std::uint64_t next_cookie = 3;  // after 1 "." and 2 ".."

    const Entry* find(std::string_view name) const;
    void add(std::string_view name, InodeNumber inode);
    void remove(std::string_view name);
  };

  struct Node {
    Attributes attributes;
    std::uint64_t lookups = 0;
    InodeNumber parent;  // of a directory
    Entries entries;     // of a directory
    std::string target;  // of a symlink
    std::map<std::string, std::string, std::less<>> xattrs;
    std::mutex data_mutex;  // guards blocks, and of attributes the size, times, mode
    std::map<std::uint64_t, std::unique_ptr<Block>> blocks;  // without those that are holes
    std::function<Result<>()> before_read, before_write;
  };

  std::function<void()> before_lookup(std::string_view name);
  Result<Node*> find(InodeNumber inode);
  Result<Node*> find_directory(InodeNumber inode);
  Result<Node*> find_child(Node& directory, std::string_view name);
  static Result<> check_name(std::string_view name);
  Result<Node*> make(Node& parent, const Caller& caller, std::uint32_t mode);
  // Finds the parent, makes the node, names it, and counts a lookup.
  Result<Node*> make_named(InodeNumber parent, std::string_view name, const Caller& caller,
                           std::uint32_t mode);
  void add_entry(Node& directory, std::string_view name, Node& node);
  void remove_entry(Node& directory, std::string_view name, Node& node);
  void drop_if_unused(Node& node);
  bool is_below(const Node& node, const Node& ancestor);
  static Attributes snapshot(Node& node);
  // Takes room for bytes. Returns false and takes none if there is not enough.
  bool take_room(std::uint64_t bytes);
  // A file loses security.capability when its content changes, even if its owner changes it.
  Result<> drop_capability(InodeNumber inode);
  static void clear_set_id(Node& node, fs::ClearSetId which);
  static void zero(Node& node, std::uint64_t offset, std::uint64_t length);
  static void resize(Node& node, std::uint64_t size);
  static void copy_out(const Node& node, std::uint64_t offset, MutableByteView out);
  static void copy_in(Node& node, std::uint64_t offset, ByteView bytes);
  void run_syncs();

  std::atomic<std::int64_t> room_bytes_{INT64_MAX};
  fs::WritePacer pacer_{{.rate_min_bytes_per_second = 0, .burst_bytes_max = 1}};
  std::shared_mutex tree_;
  std::unordered_map<InodeNumber, std::unique_ptr<Node>> nodes_;
  std::string slow_name_;
  std::function<void()> before_lookup_;
  std::uint64_t next_inode_ = metadata::root_inode.value + 1;

  std::mutex sync_mutex_;
  std::condition_variable sync_wake_;
  std::deque<std::function<void(Result<>)>> syncs_;
  bool stopping_ = false;
  bool held_ = false;
  std::atomic<std::uint64_t> sync_count_{0};
  fs::KernelCacheLink kernel_cache_;
  std::thread sync_thread_;
};

}  // namespace nacre::tests
