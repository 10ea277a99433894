// SPDX-License-Identifier: Apache-2.0
// The volume's implementation: which rows and which inodes an operation changes, and under what
// locks. The methods are in names.cpp, create.cpp, directories.cpp, rename.cpp, attributes.cpp,
// xattrs.cpp, data.cpp, orphans.cpp and sync.cpp.
//
// Changes of attributes happen in memory, until a commit stages them (staging.h). Names and
// extended attributes go to the open group at once. A group always holds an operation as a whole:
// whoever changes rows, or an inode together with rows or other inodes, holds the operation lock.
//
// Lock order. Locks are taken from top to bottom:
//   committer's move lock      rename and link only
//   FileData's flush lock      FileData takes it itself, as it does the operation lock: so its
//   operation lock (shared)    methods are called under neither
//   namespace lock             shared to read names, exclusive to change them
//   FileData's mutex           its queries (data_bytes(), is_dirty()) take no other
//   an inode's lock            one at a time; FileData takes it when its durable state changes, so
//                              only size() and durable_…() are called under it
//   leaves                     inode table, orphan queue, the mutexes below, the database
// None of them is held while waiting for a commit, a flush, the dirty budget or the kernel.
// InodeRefs are declared before the locks of a function, so that they are released after them.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <vector>

#include "fs/cache/file_cache.h"
#include "fs/store/ballast.h"
#include "fs/store/committer.h"
#include "fs/volume/acl.h"
#include "fs/volume/admission.h"
#include "fs/volume/directory_offsets.h"
#include "fs/volume/inode_table.h"
#include "fs/volume/kernel_cache.h"
#include "fs/volume/kernel_clock.h"
#include "fs/volume/list_ahead.h"
#include "fs/volume/name_table.h"
#include "fs/volume/namespace_lock.h"
#include "fs/volume/orphan_reaper.h"
#include "fs/volume/staging.h"
#include "fs/volume/volume.h"
#include "fs/volume/volume_rules.h"
#include "fs/volume/xattr_table.h"

namespace nacre::fs {

// DT_* of a mode.
inline std::uint8_t entry_type(std::uint32_t mode) {
  return static_cast<std::uint8_t>((mode & S_IFMT) >> 12);
}

class VolumeImpl final : public Volume {
 public:
  // What runs beneath it, and outlives it.
  struct Parts {
    metadata::BackingDirectory& directory;
    metadata::Database& database;
    Ballast& ballast;
    const KernelCacheLink& kernel_cache;
    Committer& committer;
    FileCache& cache;
    Admission& admission;
  };
  VolumeImpl(const Parts& parts, const NameHashKey& name_hash_key,
             const Staging::Counters& counters, const VolumeRules& rules,
             std::size_t loaded_inodes_max);

  // For Mounted.
  Result<> find_root();     // before anything else
  Result<> find_orphans();  // what an earlier mount did not erase goes now
  void stop_listing() { list_ahead_.stop(); }
  InodeTable& inodes() { return inodes_; }
  Staging& staging() { return staging_; }
  OrphanReaper& reaper() { return reaper_; }
  std::shared_ptr<FileData> data_of(Inode& inode);  // of a regular file

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
  void go_on_listing() noexcept override { list_ahead_.read_wanted(); }

  Result<Attributes> attributes(InodeNumber inode) override;
  Result<Attributes> change_attributes(InodeNumber inode, const AttributeChange& change) override;
  Result<> set_flags(InodeNumber inode, std::uint32_t flags) override;
  Result<std::string> get_xattr(InodeNumber inode, std::string_view name) override;
  Result<> set_xattr(InodeNumber inode, std::string_view name, std::string_view value,
                     XattrMode mode, bool clear_sgid) override;
  Result<> remove_xattr(InodeNumber inode, std::string_view name) override;
  Result<std::vector<std::string>> list_xattrs(InodeNumber inode) override;

  Result<std::size_t> read(InodeNumber inode, std::uint64_t offset, MutableByteView out) override;
  Result<FileBytes> view(InodeNumber inode, std::uint64_t offset, MutableByteView buffer) override;
  Result<> check_write(InodeNumber inode, std::uint64_t bytes) override;
  Result<> write(InodeNumber inode, std::uint64_t offset, ByteView bytes,
                 WriteFlags flags) override;
  Result<> allocate(InodeNumber inode, AllocateMode mode, std::uint64_t offset,
                    std::uint64_t length) override;
  Result<std::uint64_t> seek(InodeNumber inode, std::uint64_t offset, SeekWhat what) override;
  Result<std::uint64_t> copy_range(InodeNumber from, std::uint64_t from_offset, InodeNumber to,
                                   std::uint64_t to_offset, std::uint64_t length) override;

  void sync_inode(InodeNumber inode, std::function<void(Result<>)> done) override;
  Result<> sync_all() override;

  Result<VolumeSpace> space() override;
  std::string path_of(InodeNumber inode) override;
  std::string shown_name(InodeNumber inode) override;

 private:
  tl::unexpected<Error> sync_error(Error error, InodeNumber inode);

  Result<> check_writable() const { return admission_.check_writable(); }
  Result<> check_may_grow() { return admission_.check_may_grow(); }
  static Result<> check_name(std::string_view name);
  Result<InodeRef> acquire_directory(InodeNumber number);
  Result<InodeRef> acquire_regular(InodeNumber number);
  // The inode that a directory's entry names: one that is not there is damage.
  Result<InodeRef> acquire_entry(InodeNumber parent, std::string_view name, InodeNumber number);

  // directories.cpp.
  Result<std::uint64_t> place_of_offset(InodeNumber directory, std::uint64_t offset);
  Result<std::uint64_t> find_lost_place(InodeNumber directory, std::uint64_t ticket);
  Result<> list_inodes(InodeNumber number, std::uint64_t place, std::uint64_t offset,
                       const std::function<bool(const DirectoryEntry&)>& take);
  Result<ListPiece> read_piece(InodeNumber directory, std::uint64_t from, std::size_t count);
  void keep_rest(ListPiece piece);
  void read_ahead(InodeNumber directory, std::uint64_t from, std::size_t count) noexcept;

  // names.cpp, create.cpp, rename.cpp.
  struct NewInode {
    metadata::InodeRow row;
    Acl access_acl;
    Acl default_acl;  // of a directory
  };
  Result<NewInode> prepare(Inode& parent, const Caller& caller, std::uint32_t mode);
  Result<Attributes> make(const InodeRef& directory, std::string_view name, NewInode made);
  InodeRef create_inode(InodeNumber number, NewInode made);
  // The directory is there and may get a name, or lose one.
  static Result<> check_may_add(Inode& directory);
  static Result<> check_may_remove(Inode& directory);
  // A name of it may go or move; it may have one more (of a directory: one more subdirectory).
  static Result<> check_may_lose_name(Inode& inode);
  static Result<> check_may_get_name(Inode& inode);
  void change_entries(Inode& directory, std::int64_t entries, std::int64_t subdirectories,
                      const Timestamp& time);
  // One name less (a directory: the only one).
  void drop_name(Inode& inode, const Timestamp& time);
  void remember_name(Inode& inode, InodeNumber parent, std::string_view name);
  // A name's row, and the inode that it means where that is asked for. It is read before the
  // namespace lock is taken, so that nobody waits there for the disk, and again under the lock only
  // if the directory's entries changed in between. To be declared before the lock: inodes are not
  // let go of under it.
  struct FoundName {
    std::optional<metadata::DentryRow> row;
    InodeRef inode;
    bool with_inode = false;
    bool is_read = false;
    std::uint64_t entries_version = 0;
    InodeRef outdated;
  };
  FoundName look_for(Inode& directory, std::string_view name, bool with_inode);
  Result<> make_current(FoundName& found, Inode& directory, std::string_view name);
  Result<> read_name(FoundName& found, InodeNumber directory, std::string_view name);
  Result<> remove_entry(InodeNumber parent, std::string_view name, bool directory);
  struct Moving;
  Result<> rename(InodeNumber parent, std::string_view name, InodeNumber new_parent,
                  std::string_view new_name, RenameMode mode, const Caller* whiteout_owner);
  Result<> find_moving(Moving& moving, std::string_view name, std::string_view new_name,
                       RenameMode mode);
  Result<> check_move(const Moving& moving, RenameMode mode);
  Result<> check_not_below(InodeNumber directory, InodeNumber ancestor);
  void move(Moving& moving, std::string_view name, std::string_view new_name, RenameMode mode);
  void leave_whiteout(Moving& moving, std::string_view name);
  void set_parent(Inode& inode, InodeNumber parent, std::string_view name, const Timestamp& time);
  // Names wait for the data of files that they move, and all changes with them: so on a full disk a
  // file whose data is not on disk yet keeps its name. no_space.
  Result<> check_data_fits(const Inode& inode);

  // attributes.cpp, xattrs.cpp. locked is inode's lock.
  Attributes attributes_of(Inode& inode);
  void mark_dirty(Inode& inode, Inode::Locked& locked) { staging_.mark_dirty(inode, locked); }
  void note_access(Inode& inode);
  Result<> change_locked(Inode& inode, Inode::Locked& locked, const AttributeChange& change);
  // The bits and the capability that a change by somebody else takes from a program.
  static void clear_set_id(metadata::InodeRow& row, ClearSetId which);
  Result<> drop_capability(Inode& inode, Inode::Locked& locked);
  Result<> apply_mode_to_acl(Inode& inode, Inode::Locked& locked, std::uint32_t mode);
  Result<Acl> default_acl_of(Inode& directory);
  Result<bool> has_xattrs(Inode& inode);
  Result<> store_xattr(Inode& inode, Inode::Locked& locked, std::string_view name,
                       std::string_view value, XattrMode mode);
  static void change_codec(Inode::Locked& locked, const std::optional<metadata::InodeCodec>& codec);
  static Result<> set_codec_attribute(Inode::Locked& locked, std::string_view value,
                                      XattrMode mode);
  Result<> set_acl(Inode& inode, Inode::Locked& locked, std::string_view name,
                   std::string_view value, XattrMode mode);
  // False when there is none of that name.
  Result<bool> delete_xattr(Inode& inode, Inode::Locked& locked, std::string_view name);

  // data.cpp.
  // May so much more data be taken? On a full disk this waits for a moment for what a commit gives
  // back. no_space. Under no lock.
  Result<Ballast::Admission> admit_data(std::uint64_t bytes);
  Result<Ballast::Admission> admit_at_once(std::uint64_t bytes);
  Result<Ballast::Admission> admit_after_commit(std::uint64_t bytes);
  Result<Ballast::Admission> admit_write(InodeNumber number, std::uint64_t bytes, WriteFlags flags);
  // Taken, and not on the disk yet. Whoever asks for the disk's room as well asks afterwards.
  std::uint64_t unwritten_bytes() const;
  // Nothing is set aside, but what can never fit is refused.
  Result<> admit_allocation(std::uint64_t bytes);
  Result<> begin_change(Inode& inode, WriteFlags flags);
  static Result<> check_append_only(FileData& data, std::uint64_t offset, ByteView bytes);
  // A hole, or as much data as the buffer takes; size 0 at the end of from.
  struct CopiedPiece {
    std::uint64_t size = 0;
    bool is_hole = false;
  };
  static Result<CopiedPiece> copy_piece(FileData& from, std::uint64_t from_offset, FileData& to,
                                        std::uint64_t to_offset, std::uint64_t length,
                                        MutableByteView buffer);
  // Puts the file's path in front of verdicts about what is stored.
  Error with_path(Error error, InodeNumber inode);

  // orphans.cpp.
  bool erase_orphan(InodeRef& inode, std::size_t row_count_max);
  Result<bool> erase_rows(Inode& inode, bool may_have_chunks, std::size_t row_count_max);

  metadata::BackingDirectory& directory_;
  metadata::Database& database_;
  Ballast& ballast_;
  const KernelCacheLink& kernel_cache_;
  Committer& committer_;
  FileCache& cache_;
  Admission& admission_;
  const VolumeRules rules_;
  NameTable names_;
  XattrTable xattrs_;
  InodeTable inodes_;
  Staging staging_;
  ListAhead list_ahead_;
  DirectoryOffsets directory_offsets_;
  OrphanReaper reaper_;
  InodeRef root_;
  NamespaceLock namespace_lock_;

  std::timed_mutex reclaim_mutex_;  // one commit at a time for the sake of space
  std::chrono::steady_clock::time_point next_reclaim_{};
};

}  // namespace nacre::fs
