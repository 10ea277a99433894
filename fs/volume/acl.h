// SPDX-License-Identifier: Apache-2.0
// POSIX access control lists (POSIX.1e draft 17, as Linux has them): the format in which the kernel
// passes them as extended attributes, and how they and a file's mode keep in step. Pure functions.
//
//   0             4      6      8        12     14
//   | version = 2 | tag  | perm | id u32 | tag  | …
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gpu_engine/base/result.h"

namespace nacre::fs {

inline constexpr std::string_view acl_access_name = "system.posix_acl_access";
inline constexpr std::string_view acl_default_name = "system.posix_acl_default";

enum class AclTag : std::uint16_t {
  user_object = 0x01,
  user = 0x02,
  group_object = 0x04,
  group = 0x08,
  mask = 0x10,
  other = 0x20,
};

struct AclEntry {
  AclTag tag;
  std::uint16_t permissions = 0;  // rwx
  std::uint32_t id = 0xffffffff;  // of user and group
  bool operator==(const AclEntry&) const = default;
};

// Sorted by tag. Empty, or valid: one entry each for owner, group and others, and a mask when users
// or groups are named.
using Acl = std::vector<AclEntry>;

// invalid_argument; unsupported for another version of the format.
Result<Acl> decode_acl(std::string_view xattr);
std::string encode_acl(const Acl& acl);

// The permission bits that a file with this access ACL has: the mask counts as the group's.
std::uint32_t mode_bits_of(const Acl& acl);
// True when the mode says all that the ACL says.
bool is_equivalent_to_mode(const Acl& acl);
// What chmod does to an access ACL.
void apply_mode(Acl& acl, std::uint32_t mode);

// What a new file gets from its directory's default ACL: its access ACL (empty when the mode says
// all), and the permission bits of mode that are left.
struct InheritedAcl {
  Acl access;
  std::uint32_t mode = 0;
};
InheritedAcl inherit_acl(const Acl& directory_default, std::uint32_t mode);

}  // namespace nacre::fs
