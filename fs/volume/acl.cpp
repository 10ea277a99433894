// SPDX-License-Identifier: Apache-2.0
// The rules are those of Linux (fs/posix_acl.c), which programs expect to the bit.
#include "fs/volume/acl.h"

#include <algorithm>

#include "gpu_engine/base/bytes.h"

namespace nacre::fs {

namespace {

constexpr std::uint32_t acl_version = 2;
constexpr std::size_t header_size_bytes = 4;
constexpr std::size_t entry_size_bytes = 8;
constexpr std::uint32_t permission_mask = 07;

bool names_somebody(const AclEntry& entry) {
  return entry.tag == AclTag::user || entry.tag == AclTag::group;
}

AclEntry* find_entry(Acl& acl, AclTag tag) {
  const auto found =
      std::find_if(acl.begin(), acl.end(), [&](const AclEntry& entry) { return entry.tag == tag; });
  return found == acl.end() ? nullptr : &*found;
}

// The entry for which the mode's group bits stand.
AclEntry& group_class(Acl& acl) {
  AclEntry* mask = find_entry(acl, AclTag::mask);
  return mask != nullptr ? *mask : *find_entry(acl, AclTag::group_object);
}

bool is_valid(const Acl& acl) {
  std::size_t owners = 0, groups = 0, masks = 0, others = 0;
  bool needs_mask = false;
  std::uint16_t last_tag = 0;
  for (const AclEntry& entry : acl) {
    const auto tag = static_cast<std::uint16_t>(entry.tag);
    if (tag < last_tag || (entry.permissions & ~permission_mask) != 0) return false;
    last_tag = tag;
    switch (entry.tag) {
      case AclTag::user_object:
        ++owners;
        break;
      case AclTag::user:
      case AclTag::group:
        if (entry.id == 0xffffffff) return false;
        needs_mask = true;
        break;
      case AclTag::group_object:
        ++groups;
        break;
      case AclTag::mask:
        ++masks;
        break;
      case AclTag::other:
        ++others;
        break;
      default:
        return false;
    }
  }
  return owners == 1 && groups == 1 && others == 1 && masks <= 1 && (masks == 1 || !needs_mask);
}

}  // namespace

Result<Acl> decode_acl(std::string_view xattr) {
  const Byte* at = as_bytes(xattr).data();
  if (xattr.size() < header_size_bytes ||
      (xattr.size() - header_size_bytes) % entry_size_bytes != 0) {
    return fail(ErrorCode::invalid_argument);
  }
  if (load_le<std::uint32_t>(at) != acl_version) return fail(ErrorCode::unsupported);
  Acl acl;
  for (std::size_t offset = header_size_bytes; offset < xattr.size(); offset += entry_size_bytes) {
    AclEntry entry{.tag = static_cast<AclTag>(load_le<std::uint16_t>(at + offset)),
                   .permissions = load_le<std::uint16_t>(at + offset + 2)};
    if (names_somebody(entry)) entry.id = load_le<std::uint32_t>(at + offset + 4);
    acl.push_back(entry);
  }
  if (!acl.empty() && !is_valid(acl)) return fail(ErrorCode::invalid_argument);
  return acl;
}

std::string encode_acl(const Acl& acl) {
  std::string xattr(header_size_bytes + acl.size() * entry_size_bytes, '\0');
  Byte* at = reinterpret_cast<Byte*>(xattr.data());
  store_le(at, acl_version);
  at += header_size_bytes;
  for (const AclEntry& entry : acl) {
    store_le(at, static_cast<std::uint16_t>(entry.tag));
    store_le(at + 2, entry.permissions);
    store_le(at + 4, entry.id);
    at += entry_size_bytes;
  }
  return xattr;
}

std::uint32_t mode_bits_of(const Acl& acl) {
  Acl copy = acl;
  const auto bits = [](const AclEntry& entry, unsigned shift) {
    return static_cast<std::uint32_t>(entry.permissions) << shift;
  };
  return bits(*find_entry(copy, AclTag::user_object), 6) | bits(group_class(copy), 3) |
         bits(*find_entry(copy, AclTag::other), 0);
}

bool is_equivalent_to_mode(const Acl& acl) {
  return std::all_of(acl.begin(), acl.end(), [](const AclEntry& entry) {
    return !names_somebody(entry) && entry.tag != AclTag::mask;
  });
}

void apply_mode(Acl& acl, std::uint32_t mode) {
  const auto set = [mode](AclEntry& entry, unsigned shift) {
    entry.permissions = static_cast<std::uint16_t>((mode >> shift) & permission_mask);
  };
  set(*find_entry(acl, AclTag::user_object), 6);
  set(group_class(acl), 3);
  set(*find_entry(acl, AclTag::other), 0);
}

InheritedAcl inherit_acl(const Acl& directory_default, std::uint32_t mode) {
  InheritedAcl inherited{.access = directory_default};
  const auto restrict = [mode](AclEntry& entry, unsigned shift) {
    entry.permissions =
        static_cast<std::uint16_t>(entry.permissions & (mode >> shift) & permission_mask);
  };
  restrict(*find_entry(inherited.access, AclTag::user_object), 6);
  restrict(group_class(inherited.access), 3);
  restrict(*find_entry(inherited.access, AclTag::other), 0);
  inherited.mode = (mode & ~0777u) | mode_bits_of(inherited.access);
  if (is_equivalent_to_mode(inherited.access)) inherited.access.clear();
  return inherited;
}

}  // namespace nacre::fs
