// SPDX-License-Identifier: Apache-2.0
// Extended attributes and the access control lists among them.
//
// An access ACL that says no more than the mode is not stored. Names of trusted.* are listed for
// every caller, and the caller decides which processes may see them. The codec that an inode asks
// for reads like an attribute, but stands in the inode's row, since new files look for their
// directory's codec there.
#include <algorithm>

#include "fs/volume/inode_attributes.h"
#include "fs/volume/kernel_clock.h"

namespace nacre::fs {

namespace {

constexpr std::size_t xattr_name_size_bytes_max = 255;
constexpr std::size_t xattr_list_size_bytes_max = 64u << 10;  // with a NUL after each name
constexpr std::string_view capability_name = "security.capability";
constexpr std::string_view user_prefix = "user.";

bool is_acl(std::string_view name) {
  return name == acl_access_name || name == acl_default_name;
}

Result<> check_xattr_name(std::string_view name) {
  if (name.empty() || name.size() > xattr_name_size_bytes_max) return fail(ErrorCode::range);
  if (name.find('\0') != std::string_view::npos) return fail(ErrorCode::invalid_argument);
  if (is_acl(name)) return {};
  for (const std::string_view prefix :
       {user_prefix, std::string_view("trusted."), std::string_view("security.")}) {
    if (!name.starts_with(prefix)) continue;
    if (name.size() == prefix.size()) return fail(ErrorCode::invalid_argument);
    return {};
  }
  return fail(ErrorCode::unsupported);
}

Result<> check_xattr_change(Inode& inode, const Inode::Locked& locked, std::string_view name) {
  if (locked->row.flags & (metadata::inode_flag_immutable | metadata::inode_flag_append)) {
    return fail(ErrorCode::not_permitted);
  }
  if (name.starts_with(user_prefix) && !inode.is_regular() && !inode.is_directory()) {
    return fail(ErrorCode::not_permitted);
  }
  return {};
}

}  // namespace

Result<bool> InodeAttributes::has_xattrs(Inode& inode) {
  std::uint64_t change_count = 0;
  {
    const auto locked = inode.lock();
    if (locked->xattrs != Presence::unknown) return locked->xattrs == Presence::some;
    change_count = locked->xattr_change_count;
  }
  NACRE_ASSIGN(const bool any, xattrs_.has_any(inode.number()));
  const auto locked = inode.lock();
  if (locked->xattr_change_count == change_count) {
    locked->xattrs = any ? Presence::some : Presence::none;
  }
  return any;
}

Result<std::string> InodeAttributes::get_xattr(InodeNumber number, std::string_view name) {
  NACRE_TRY(check_xattr_name(name));
  NACRE_ASSIGN(const InodeRef inode, inodes_.acquire(number));
  if (name == metadata::inode_codec_name) {
    const auto codec = metadata::inode_codec(inode->lock()->row.flags);
    if (!codec) return fail(ErrorCode::no_attribute);
    return metadata::to_string(*codec);
  }
  NACRE_ASSIGN(const bool any, has_xattrs(*inode));
  if (!any) return fail(ErrorCode::no_attribute);
  NACRE_ASSIGN(auto value, xattrs_.find(number, name));
  if (!value) return fail(ErrorCode::no_attribute);
  return std::move(*value);
}

Result<std::vector<std::string>> InodeAttributes::list_xattrs(InodeNumber number) {
  NACRE_ASSIGN(const InodeRef inode, inodes_.acquire(number));
  const bool has_codec = metadata::inode_codec(inode->lock()->row.flags).has_value();
  NACRE_ASSIGN(const bool any, has_xattrs(*inode));
  std::vector<std::string> names;
  if (any) {
    NACRE_ASSIGN(names, xattrs_.names(number));
  }
  if (has_codec) names.emplace_back(metadata::inode_codec_name);
  return names;
}

Result<> InodeAttributes::set_xattr(InodeNumber number, std::string_view name,
                                    std::string_view value, XattrMode mode, bool clear_sgid) {
  NACRE_TRY(check_may_grow());
  NACRE_TRY(check_xattr_name(name));
  if (value.size() > metadata::xattr_value_size_bytes_max) return fail(ErrorCode::too_big);
  NACRE_ASSIGN(const InodeRef inode, inodes_.acquire(number));
  const auto operation = committer_.begin_operation();
  auto locked = inode->lock();
  NACRE_TRY(check_xattr_change(*inode, locked, name));
  if (is_acl(name)) {
    NACRE_TRY(set_acl(*inode, locked, name, value, mode));
    if (clear_sgid) locked->row.mode &= ~static_cast<std::uint32_t>(S_ISGID);
  } else if (name == metadata::inode_codec_name) {
    NACRE_TRY(set_codec_attribute(locked, value, mode));
  } else {
    NACRE_TRY(store_xattr(*inode, locked, name, value, mode));
  }
  locked->row.changed = kernel_now();
  mark_dirty(*inode, locked);
  return {};
}

Result<> InodeAttributes::remove_xattr(InodeNumber number, std::string_view name) {
  NACRE_TRY(check_writable());
  NACRE_TRY(check_xattr_name(name));
  NACRE_ASSIGN(const InodeRef inode, inodes_.acquire(number));
  const auto operation = committer_.begin_operation();
  auto locked = inode->lock();
  NACRE_TRY(check_xattr_change(*inode, locked, name));
  bool removed = false;
  if (name == metadata::inode_codec_name) {
    removed = metadata::inode_codec(locked->row.flags).has_value();
    change_codec(locked, std::nullopt);
  } else {
    NACRE_ASSIGN(removed, delete_xattr(*inode, locked, name));
  }
  if (!removed) return is_acl(name) ? Result<>() : fail(ErrorCode::no_attribute);
  locked->row.changed = kernel_now();
  mark_dirty(*inode, locked);
  return {};
}

void InodeAttributes::change_codec(Inode::Locked& locked,
                                   const std::optional<metadata::InodeCodec>& codec) {
  locked->row.flags = metadata::with_inode_codec(locked->row.flags, codec);
  if (locked->data) locked->data->set_codec(locked->row.flags);
}

Result<> InodeAttributes::set_codec_attribute(Inode::Locked& locked, std::string_view value,
                                              XattrMode mode) {
  const bool is_new = !metadata::inode_codec(locked->row.flags);
  if (is_new && mode == XattrMode::replace) return fail(ErrorCode::no_attribute);
  if (!is_new && mode == XattrMode::create) return fail(ErrorCode::exists);
  NACRE_ASSIGN(const metadata::InodeCodec codec, metadata::inode_codec_from_text(value));
  change_codec(locked, codec);
  return {};
}

Result<> InodeAttributes::store_xattr(Inode& inode, Inode::Locked& locked, std::string_view name,
                                      std::string_view value, XattrMode mode) {
  const InodeNumber number = inode.number();
  bool is_new = true;
  if (locked->xattrs != Presence::none) {
    NACRE_ASSIGN(const auto old, xattrs_.find(number, name));
    is_new = !old;
  }
  if (is_new && mode == XattrMode::replace) return fail(ErrorCode::no_attribute);
  if (!is_new && mode == XattrMode::create) return fail(ErrorCode::exists);
  if (is_new && locked->xattrs != Presence::none) {
    NACRE_ASSIGN(const auto names, xattrs_.names(number));
    std::size_t size = name.size() + 1;
    for (const std::string& other : names)
      size += other.size() + 1;
    if (size > xattr_list_size_bytes_max) return fail(ErrorCode::no_space);
  }
  xattrs_.put(number, name, value, is_new);
  ++locked->xattr_change_count;
  locked->xattrs = Presence::some;
  if (name == capability_name) locked->capability = Presence::some;
  return {};
}

// Returns false if there is no attribute of that name.
Result<bool> InodeAttributes::delete_xattr(Inode& inode, Inode::Locked& locked,
                                           std::string_view name) {
  if (locked->xattrs == Presence::none) return false;
  NACRE_ASSIGN(const auto old, xattrs_.find(inode.number(), name));
  if (!old) return false;
  xattrs_.remove(inode.number(), name);
  ++locked->xattr_change_count;
  locked->xattrs = Presence::unknown;
  return true;
}

Result<> InodeAttributes::drop_capability(Inode& inode, Inode::Locked& locked) {
  if (locked->capability == Presence::none) return {};
  NACRE_TRY(delete_xattr(inode, locked, capability_name));
  locked->capability = Presence::none;
  return {};
}

Result<> InodeAttributes::set_acl(Inode& inode, Inode::Locked& locked, std::string_view name,
                                  std::string_view value, XattrMode mode) {
  if (inode.type() == S_IFLNK) return fail(ErrorCode::unsupported);
  NACRE_ASSIGN(const Acl acl, decode_acl(value));
  const bool is_access = name == acl_access_name;
  if (!is_access && !inode.is_directory() && !acl.empty()) return fail(ErrorCode::permission);
  if (acl.empty() || (is_access && is_equivalent_to_mode(acl))) {
    NACRE_TRY(delete_xattr(inode, locked, name));
  } else {
    NACRE_TRY(store_xattr(inode, locked, name, encode_acl(acl), mode));
  }
  if (is_access && !acl.empty()) {
    locked->row.mode = (locked->row.mode & ~0777u) | mode_bits_of(acl);
  }
  return {};
}

Result<> InodeAttributes::apply_mode_to_acl(Inode& inode, Inode::Locked& locked,
                                            std::uint32_t mode) {
  if (locked->xattrs == Presence::none) return {};
  NACRE_ASSIGN(const auto value, xattrs_.find(inode.number(), acl_access_name));
  if (!value) return {};
  NACRE_ASSIGN(Acl acl, decode_acl(*value));
  if (acl.empty()) return {};
  apply_mode(acl, mode);
  xattrs_.put(inode.number(), acl_access_name, encode_acl(acl), /*is_new=*/false);
  return {};
}

Result<Acl> InodeAttributes::default_acl_of(Inode& directory) {
  NACRE_ASSIGN(const bool any, has_xattrs(directory));
  if (!any) return Acl{};
  NACRE_ASSIGN(const auto value, xattrs_.find(directory.number(), acl_default_name));
  if (!value) return Acl{};
  return decode_acl(*value);
}

}  // namespace nacre::fs
