// SPDX-License-Identifier: Apache-2.0
// POSIX access control lists (POSIX.1e draft 17, as in Linux): the format in which the kernel
// passes them as extended attributes, and the rules that keep them and a file's mode in step. Pure
// functions.
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
  std::uint32_t id = 0xffffffff;  // for the tags user and group alone
  bool operator==(const AclEntry&) const = default;
};

// Sorted by tag. Either empty or valid: a valid list has one entry each for owner, group and
// others, and a mask if it names users or groups.
using Acl = std::vector<AclEntry>;

// Errors: invalid_argument; unsupported for another version of the format.
Result<Acl> decode_acl(std::string_view xattr);
std::string encode_acl(const Acl& acl);

// acl and directory_default must not be empty in the functions below.
//
// The permission bits of a file with this access ACL. The mask counts as the group's bits.
std::uint32_t mode_bits_of(const Acl& acl);
// Whether the mode says all that the ACL says.
bool is_equivalent_to_mode(const Acl& acl);
// Changes an access ACL as chmod does.
void apply_mode(Acl& acl, std::uint32_t mode);

// The access ACL of a new file (empty if the mode says all), made from its directory's default ACL,
// and the permission bits of mode that are left.
struct InheritedAcl {
  Acl access;
  std::uint32_t mode = 0;
};
InheritedAcl inherit_acl(const Acl& directory_default, std::uint32_t mode);

}  // namespace nacre::fs
