// SPDX-License-Identifier: Apache-2.0
// Extended attributes and access control lists of the volume in memory.
#include "tests/support/memory_volume.h"

#include <sys/stat.h>

#include "fs/volume/acl.h"
#include "fs/volume/kernel_clock.h"

namespace nacre::tests {

Result<std::string> MemoryVolume::get_xattr(InodeNumber inode, std::string_view name) {
  std::shared_lock lock(tree_);
  NACRE_ASSIGN(Node * node, find(inode));
  const auto xattr = node->xattrs.find(name);
  if (xattr == node->xattrs.end()) return fail(ErrorCode::no_attribute);
  return xattr->second;
}

Result<> MemoryVolume::set_xattr(InodeNumber inode, std::string_view name, std::string_view value,
                                 XattrMode mode, bool clear_sgid) {
  std::unique_lock lock(tree_);
  NACRE_ASSIGN(Node * node, find(inode));
  Attributes& attributes = node->attributes;
  if (is_frozen(attributes)) return fail(ErrorCode::not_permitted);
  if (value.size() > metadata::xattr_value_size_bytes_max) return fail(ErrorCode::too_big);
  const auto xattr = node->xattrs.find(name);
  const bool exists = xattr != node->xattrs.end();
  if (mode == XattrMode::create && exists) return fail(ErrorCode::exists);
  if (mode == XattrMode::replace && !exists) return fail(ErrorCode::no_attribute);
  if (name == fs::acl_access_name) {
    NACRE_ASSIGN(const fs::Acl acl, fs::decode_acl(value));
    attributes.mode = (attributes.mode & ~0777u) | fs::mode_bits_of(acl);
    if (clear_sgid) attributes.mode &= ~static_cast<std::uint32_t>(S_ISGID);
    attributes.changed = fs::kernel_now();
    if (fs::is_equivalent_to_mode(acl)) {
      if (exists) node->xattrs.erase(xattr);
      return {};
    }
  } else if (name == fs::acl_default_name) {
    if (!S_ISDIR(attributes.mode)) return fail(ErrorCode::permission);
    NACRE_ASSIGN(const fs::Acl acl, fs::decode_acl(value));
    if (acl.empty()) {
      if (exists) node->xattrs.erase(xattr);
      return {};
    }
  }
  node->xattrs.insert_or_assign(std::string(name), std::string(value));
  attributes.changed = fs::kernel_now();
  return {};
}

Result<> MemoryVolume::remove_xattr(InodeNumber inode, std::string_view name) {
  std::unique_lock lock(tree_);
  NACRE_ASSIGN(Node * node, find(inode));
  if (is_frozen(node->attributes)) return fail(ErrorCode::not_permitted);
  const auto xattr = node->xattrs.find(name);
  if (xattr == node->xattrs.end()) return fail(ErrorCode::no_attribute);
  node->xattrs.erase(xattr);
  node->attributes.changed = fs::kernel_now();
  return {};
}

Result<> MemoryVolume::drop_capability(InodeNumber inode) {
  {
    std::shared_lock lock(tree_);
    NACRE_ASSIGN(Node * node, find(inode));
    if (!node->xattrs.contains(capability_name)) return {};
  }
  return remove_xattr(inode, capability_name);
}

Result<std::vector<std::string>> MemoryVolume::list_xattrs(InodeNumber inode) {
  std::shared_lock lock(tree_);
  NACRE_ASSIGN(Node * node, find(inode));
  std::vector<std::string> names;
  for (const auto& [name, value] : node->xattrs)
    names.push_back(name);
  return names;
}

}  // namespace nacre::tests
