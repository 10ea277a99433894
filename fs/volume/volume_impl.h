// SPDX-License-Identifier: Apache-2.0
// The calls of a volume, which its three parts answer. volume_core.h has what they share.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fs/volume/files.h"
#include "fs/volume/inode_attributes.h"
#include "fs/volume/namespace.h"
#include "fs/volume/volume.h"
#include "fs/volume/volume_core.h"

namespace nacre::fs {

class VolumeImpl final : public Volume {
 public:
  VolumeImpl(const VolumeBase& base, const NameHashKey& name_hash_key,
             const Staging::Counters& counters, const VolumeRules& rules,
             std::size_t loaded_inodes_max)
      : core_(base, name_hash_key, counters, rules, loaded_inodes_max,
              [this](InodeRef inode) { namespace_.reaper().add(std::move(inode)); }) {}

  // For Mounted.
  InodeTable& inodes() { return core_.inodes; }
  Staging& staging() { return core_.staging; }
  Namespace& names() { return namespace_; }
  Files& files() { return files_; }

  Result<Attributes> lookup(InodeNumber parent, std::string_view name) override {
    return namespace_.lookup(parent, name);
  }
  Result<Attributes> lookup_inode(InodeNumber inode) override {
    return namespace_.lookup_inode(inode);
  }
  bool forget(InodeNumber inode, std::uint64_t lookups) override {
    return namespace_.forget(inode, lookups);
  }
  Result<Attributes> make_node(InodeNumber parent, std::string_view name, const Caller& caller,
                               std::uint32_t mode, std::uint64_t rdev) override {
    return namespace_.make_node(parent, name, caller, mode, rdev);
  }
  Result<Attributes> make_directory(InodeNumber parent, std::string_view name, const Caller& caller,
                                    std::uint32_t mode) override {
    return namespace_.make_directory(parent, name, caller, mode);
  }
  Result<Attributes> make_symlink(InodeNumber parent, std::string_view name, const Caller& caller,
                                  std::string_view target) override {
    return namespace_.make_symlink(parent, name, caller, target);
  }
  Result<Attributes> make_unnamed(InodeNumber parent, const Caller& caller,
                                  std::uint32_t mode) override {
    return namespace_.make_unnamed(parent, caller, mode);
  }
  Result<Attributes> link(InodeNumber inode, InodeNumber parent, std::string_view name) override {
    return namespace_.link(inode, parent, name);
  }
  Result<> unlink(InodeNumber parent, std::string_view name) override {
    return namespace_.unlink(parent, name);
  }
  Result<> remove_directory(InodeNumber parent, std::string_view name) override {
    return namespace_.remove_directory(parent, name);
  }
  Result<> rename(InodeNumber parent, std::string_view name, InodeNumber new_parent,
                  std::string_view new_name, RenameMode mode) override {
    return namespace_.rename(parent, name, new_parent, new_name, mode);
  }
  Result<> rename_over_whiteout(InodeNumber parent, std::string_view name, InodeNumber new_parent,
                                std::string_view new_name, RenameMode mode,
                                const Caller& caller) override {
    return namespace_.rename_over_whiteout(parent, name, new_parent, new_name, mode, caller);
  }
  Result<std::string> read_symlink(InodeNumber inode) override {
    return namespace_.read_symlink(inode);
  }
  Result<> read_directory(InodeNumber inode, std::uint64_t cookie, bool with_attributes,
                          const std::function<bool(const DirectoryEntry&)>& take) override {
    return namespace_.read_directory(inode, cookie, with_attributes, take);
  }
  void go_on_listing() noexcept override { namespace_.list_ahead().read_wanted(); }
  Result<Attributes> attributes(InodeNumber inode) override {
    return attributes_.attributes(inode);
  }
  Result<Attributes> change_attributes(InodeNumber inode, const AttributeChange& change) override {
    return attributes_.change_attributes(inode, change);
  }
  Result<> set_flags(InodeNumber inode, std::uint32_t flags) override {
    return attributes_.set_flags(inode, flags);
  }
  Result<std::string> get_xattr(InodeNumber inode, std::string_view name) override {
    return attributes_.get_xattr(inode, name);
  }
  Result<> set_xattr(InodeNumber inode, std::string_view name, std::string_view value,
                     XattrMode mode, bool clear_sgid) override {
    return attributes_.set_xattr(inode, name, value, mode, clear_sgid);
  }
  Result<> remove_xattr(InodeNumber inode, std::string_view name) override {
    return attributes_.remove_xattr(inode, name);
  }
  Result<std::vector<std::string>> list_xattrs(InodeNumber inode) override {
    return attributes_.list_xattrs(inode);
  }
  Result<std::size_t> read(InodeNumber inode, std::uint64_t offset, MutableByteView out) override {
    return files_.read(inode, offset, out);
  }
  Result<FileBytes> view(InodeNumber inode, std::uint64_t offset, MutableByteView buffer) override {
    return files_.view(inode, offset, buffer);
  }
  Result<> write(InodeNumber inode, std::uint64_t offset, ByteView bytes,
                 WriteFlags flags) override {
    return files_.write(inode, offset, bytes, flags);
  }
  Result<std::uint64_t> check_write(InodeNumber inode, std::uint64_t bytes,
                                    std::uint64_t kept_bytes) override {
    return files_.check_write(inode, bytes, kept_bytes);
  }
  Result<> allocate(InodeNumber inode, AllocateMode mode, std::uint64_t offset,
                    std::uint64_t length) override {
    return files_.allocate(inode, mode, offset, length);
  }
  Result<std::uint64_t> seek(InodeNumber inode, std::uint64_t offset, SeekWhat what) override {
    return files_.seek(inode, offset, what);
  }
  Result<std::uint64_t> copy_range(InodeNumber from, std::uint64_t from_offset, InodeNumber to,
                                   std::uint64_t to_offset, std::uint64_t length) override {
    return files_.copy_range(from, from_offset, to, to_offset, length);
  }
  void sync_inode(InodeNumber inode, std::function<void(Result<>)> done) override {
    files_.sync_inode(inode, std::move(done));
  }
  Result<> sync_all() override { return files_.sync_all(); }
  std::string path_of(InodeNumber inode) override { return namespace_.path_of(inode); }
  std::string shown_name(InodeNumber inode) override { return namespace_.shown_name(inode); }
  Result<VolumeSpace> space() override { return files_.space(); }

 private:
  VolumeCore core_;
  InodeAttributes attributes_{core_};
  Namespace namespace_{core_, attributes_};
  Files files_{core_, attributes_};
};

}  // namespace nacre::fs
