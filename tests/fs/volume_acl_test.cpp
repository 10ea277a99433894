// SPDX-License-Identifier: Apache-2.0
// The ACL rules by themselves; expected values follow acl(5) and what Linux file systems do.
#include "fs/volume/acl.h"

#include <sys/stat.h>

#include <gtest/gtest.h>

#include "gpu_engine/base/bytes.h"

namespace nacre::fs {
namespace {

const Acl minimal = {{AclTag::user_object, 6}, {AclTag::group_object, 4}, {AclTag::other, 4}};
const Acl named = {{AclTag::user_object, 7}, {AclTag::user, 6, 1001}, {AclTag::group_object, 5},
                   {AclTag::group, 7, 200},  {AclTag::mask, 5},       {AclTag::other, 1}};

TEST(Acl, comes_back_from_its_xattr_form) {
  for (const Acl& acl : {minimal, named, Acl{}}) {
    const auto decoded = decode_acl(encode_acl(acl));
    ASSERT_TRUE(decoded);
    EXPECT_EQ(*decoded, acl);
  }
}

TEST(Acl, has_the_kernels_byte_layout) {
  const std::string expected(
      "\x02\0\0\0"
      "\x01\0\x06\0\xff\xff\xff\xff"
      "\x04\0\x04\0\xff\xff\xff\xff"
      "\x20\0\x04\0\xff\xff\xff\xff",
      28);
  EXPECT_EQ(encode_acl(minimal), expected);
}

TEST(Acl, refuses_what_is_not_an_acl) {
  const std::string good = encode_acl(named);
  for (std::size_t size = 0; size < good.size(); ++size) {
    // A header alone is the empty ACL; nothing else shorter is complete.
    EXPECT_EQ(decode_acl(good.substr(0, size)).has_value(), size == 4) << size;
  }
  std::string newer = good;
  newer[0] = 3;
  EXPECT_EQ(decode_acl(newer).error().code, ErrorCode::unsupported);
  const std::vector<Acl> bad = {
      {{AclTag::user_object, 6}, {AclTag::group_object, 4}},
      {{AclTag::group_object, 4}, {AclTag::user_object, 6}, {AclTag::other, 4}},
      {{AclTag::user_object, 8}, {AclTag::group_object, 4}, {AclTag::other, 4}},
      {{AclTag::user_object, 6},
       {AclTag::user_object, 6},
       {AclTag::group_object, 4},
       {AclTag::other, 4}},
      {{AclTag::user_object, 6},
       {AclTag::user, 6, 7},
       {AclTag::group_object, 4},
       {AclTag::other, 4}},  // no mask
      {{AclTag::user_object, 6},
       {AclTag::user, 6},
       {AclTag::group_object, 4},
       {AclTag::mask, 4},
       {AclTag::other, 4}},  // names no user and no group
      {{AclTag::user_object, 6},
       {AclTag{3}, 6, 7},
       {AclTag::group_object, 4},
       {AclTag::mask, 4},
       {AclTag::other, 4}},
  };
  for (std::size_t i = 0; i < bad.size(); ++i) {
    const auto decoded = decode_acl(encode_acl(bad[i]));
    ASSERT_FALSE(decoded) << i;
    EXPECT_EQ(decoded.error().code, ErrorCode::invalid_argument) << i;
  }
}

TEST(Acl, gives_the_mask_as_the_groups_bits) {
  EXPECT_EQ(mode_bits_of(minimal), 0644u);
  EXPECT_EQ(mode_bits_of(named), 0751u);
  EXPECT_TRUE(is_equivalent_to_mode(minimal));
  EXPECT_FALSE(is_equivalent_to_mode(named));
}

TEST(Acl, follows_chmod_through_the_mask) {
  Acl acl = named;
  apply_mode(acl, 0640);
  EXPECT_EQ(mode_bits_of(acl), 0640u);
  EXPECT_EQ(acl[2], (AclEntry{AclTag::group_object, 5})) << "the owning group keeps its entry";
  EXPECT_EQ(acl[4], (AclEntry{AclTag::mask, 4}));
  acl = minimal;
  apply_mode(acl, 0751);
  EXPECT_EQ(mode_bits_of(acl), 0751u);
}

TEST(Acl, is_inherited_within_the_mode_asked_for) {
  const InheritedAcl file = inherit_acl(named, S_ISUID | 0666);
  EXPECT_EQ(file.mode, S_ISUID | 0640u);
  EXPECT_EQ(file.access[0].permissions, 6);
  EXPECT_EQ(file.access[2].permissions, 5) << "the mask limits the group, its entry stays";
  EXPECT_EQ(file.access[4].permissions, 4);
  EXPECT_EQ(file.access[5].permissions, 0);

  const InheritedAcl plain = inherit_acl(minimal, 0777);
  EXPECT_EQ(plain.mode, 0644u);
  EXPECT_TRUE(plain.access.empty()) << "the mode says it all";
}

}  // namespace
}  // namespace nacre::fs
