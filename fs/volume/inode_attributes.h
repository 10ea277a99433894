// SPDX-License-Identifier: Apache-2.0
// The attributes that stat shows, extended attributes, and the access control lists among them.
// volume.h has the contracts of the calls. Thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fs/volume/acl.h"
#include "fs/volume/volume.h"
#include "fs/volume/volume_core.h"

namespace nacre::fs {

class InodeAttributes : public VolumePart {
 public:
  explicit InodeAttributes(VolumeCore& core) : VolumePart(core) {}

  // The calls of the volume.
  Result<Attributes> attributes(InodeNumber inode);
  Result<Attributes> change_attributes(InodeNumber inode, const AttributeChange& change);
  Result<> set_flags(InodeNumber inode, std::uint32_t flags);
  Result<std::string> get_xattr(InodeNumber inode, std::string_view name);
  Result<> set_xattr(InodeNumber inode, std::string_view name, std::string_view value,
                     XattrMode mode, bool clear_sgid);
  Result<> remove_xattr(InodeNumber inode, std::string_view name);
  Result<std::vector<std::string>> list_xattrs(InodeNumber inode);

  // For the other parts of the volume. locked is the lock of inode.
  Attributes attributes_of(Inode& inode);
  void note_access(Inode& inode);
  // Clears the set-id bits and drops the capability, which a program loses when another user
  // changes it.
  static void clear_set_id(metadata::InodeRow& row, ClearSetId which);
  Result<> drop_capability(Inode& inode, Inode::Locked& locked);
  Result<Acl> default_acl_of(Inode& directory);

 private:
  Result<> change_locked(Inode& inode, Inode::Locked& locked, const AttributeChange& change);
  Result<> apply_mode_to_acl(Inode& inode, Inode::Locked& locked, std::uint32_t mode);
  Result<bool> has_xattrs(Inode& inode);
  Result<> store_xattr(Inode& inode, Inode::Locked& locked, std::string_view name,
                       std::string_view value, XattrMode mode);
  static void change_codec(Inode::Locked& locked, const std::optional<metadata::InodeCodec>& codec);
  static Result<> set_codec_attribute(Inode::Locked& locked, std::string_view value,
                                      XattrMode mode);
  Result<> set_acl(Inode& inode, Inode::Locked& locked, std::string_view name,
                   std::string_view value, XattrMode mode);
  // Returns false if there is no attribute of that name.
  Result<bool> delete_xattr(Inode& inode, Inode::Locked& locked, std::string_view name);
};

}  // namespace nacre::fs
