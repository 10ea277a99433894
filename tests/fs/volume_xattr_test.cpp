// SPDX-License-Identifier: Apache-2.0
// Extended attributes, ACLs, and the capability that must not outlive a change.
#include "tests/fs/volume_fixture.h"

#include "fs/volume/acl.h"

namespace nacre::tests {
namespace {

using fs::Acl;
using fs::AclTag;
using fs::InodeNumber;
using fs::XattrMode;
using metadata::Table;

class VolumeXattr : public VolumeTest {
 protected:
  Result<> set(InodeNumber inode, std::string_view name, std::string_view value,
               XattrMode mode = XattrMode::set) {
    return volume().set_xattr(inode, name, value, mode, false);
  }
  std::vector<std::string> names(InodeNumber inode) {
    auto names = volume().list_xattrs(inode);
    NACRE_EXPECT_OK(names);
    if (!names) return {};
    std::sort(names->begin(), names->end());
    return *names;
  }
  std::optional<Acl> acl(InodeNumber inode, std::string_view name) {
    const auto value = volume().get_xattr(inode, name);
    if (!value) return std::nullopt;
    return fs::decode_acl(*value).value();
  }
  const Acl named_ = {{AclTag::user_object, 7},
                      {AclTag::user, 6, 1001},
                      {AclTag::group_object, 5},
                      {AclTag::mask, 7},
                      {AclTag::other, 0}};
};

TEST_F(VolumeXattr, values_come_back_after_a_remount_too) {
  const InodeNumber file = make_file(root, "f");
  const std::vector<std::pair<std::string, std::string>> values = {
      {"user.text", "value"},
      {"user.empty", ""},
      {"user.bytes", std::string("\0\xff\0", 3)},
      {"user.largest", std::string(64u << 10, 'v')},
      {"trusted.x", "t"},
      {"security.selinux", "label"},
      {"user." + std::string(250, 'n'), "longest name"}};
  for (const auto& [name, value] : values)
    NACRE_EXPECT_OK(set(file, name, value));
  remount();
  find(root, "f");
  EXPECT_EQ(names(file).size(), values.size());
  for (const auto& [name, value] : values) {
    EXPECT_EQ(volume().get_xattr(file, name).value_or("?"), value) << name;
    NACRE_EXPECT_OK(volume().remove_xattr(file, name));
    EXPECT_CODE(no_attribute, volume().get_xattr(file, name));
  }
  EXPECT_TRUE(names(file).empty());
}

TEST_F(VolumeXattr, modes_of_setting_are_kept) {
  const InodeNumber file = make_file(root, "f");
  EXPECT_CODE(no_attribute, set(file, "user.x", "1", XattrMode::replace));
  NACRE_EXPECT_OK(set(file, "user.x", "1", XattrMode::create));
  EXPECT_CODE(exists, set(file, "user.x", "2", XattrMode::create));
  NACRE_EXPECT_OK(set(file, "user.x", "2", XattrMode::replace));
  NACRE_EXPECT_OK(set(file, "user.x", "3"));
  EXPECT_EQ(volume().get_xattr(file, "user.x").value(), "3");
  EXPECT_CODE(no_attribute, volume().remove_xattr(file, "user.y"));
}

TEST_F(VolumeXattr, names_and_sizes_have_limits) {
  const InodeNumber file = make_file(root, "f");
  EXPECT_CODE(range, set(file, "user." + std::string(251, 'n'), ""));
  EXPECT_CODE(range, set(file, "", ""));
  EXPECT_CODE(invalid_argument, set(file, "user.", ""));
  EXPECT_CODE(unsupported, set(file, "system.other", ""));
  EXPECT_CODE(unsupported, set(file, "nothing", ""));
  EXPECT_CODE(unsupported, volume().get_xattr(file, "os2.x"));
  EXPECT_CODE(too_big, set(file, "user.x", std::string((64u << 10) + 1, 'v')));
  // The list of names must fit in what listxattr can return.
  std::size_t size = 0;
  for (int i = 0;; ++i) {
    const std::string name = "user." + std::to_string(1000 + i) + std::string(240, 'n');
    const auto outcome = set(file, name, "");
    if (size + name.size() + 1 > 64u << 10) {
      EXPECT_CODE(no_space, outcome);
      break;
    }
    NACRE_ASSERT_OK(outcome);
    size += name.size() + 1;
  }
  const auto symlink = volume().make_symlink(root, "l", caller_, "x");
  EXPECT_CODE(not_permitted, set(symlink->inode, "user.x", ""));
  NACRE_EXPECT_OK(set(symlink->inode, "trusted.x", ""));
}

TEST_F(VolumeXattr, changes_show_in_the_change_time) {
  const InodeNumber file = make_file(root, "f");
  auto before = stat(file);
  NACRE_EXPECT_OK(set(file, "user.x", "1"));
  EXPECT_GT(stat(file).changed, before.changed);
  before = stat(file);
  NACRE_EXPECT_OK(volume().remove_xattr(file, "user.x"));
  EXPECT_GT(stat(file).changed, before.changed);
}

TEST_F(VolumeXattr, attributes_go_with_their_file) {
  const InodeNumber file = make_file(root, "f");
  const InodeNumber directory = make_directory(root, "d");
  for (const InodeNumber inode : {file, directory}) {
    for (int i = 0; i < 5; ++i)
      NACRE_EXPECT_OK(set(inode, "user." + std::to_string(i), "v"));
  }
  NACRE_EXPECT_OK(volume().sync_all());
  NACRE_EXPECT_OK(volume().unlink(root, "f"));
  NACRE_EXPECT_OK(volume().remove_directory(root, "d"));
  unmount();
  EXPECT_EQ(count_rows()[Table::xattrs], 0u);
  mount();
}

TEST_F(VolumeXattr, a_capability_is_gone_after_any_change_of_the_program) {
  const InodeNumber file = make_file(root, "f");
  const std::vector<std::function<void()>> changes = {
      [&] { write(file, 0, "x"); },
      [&] { NACRE_EXPECT_OK(volume().change_attributes(file, {.size = 0})); },
      [&] { NACRE_EXPECT_OK(volume().change_attributes(file, {.uid = 3})); },
      [&] { NACRE_EXPECT_OK(volume().allocate(file, fs::AllocateMode::zero, 0, 3)); },
      [&] { NACRE_EXPECT_OK(volume().copy_range(find(root, "other"), 0, file, 0, 1)); }};
  write(make_file(root, "other"), 0, "y");
  for (const auto& change : changes) {
    for (const bool fresh : {false, true}) {
      NACRE_EXPECT_OK(set(file, "security.capability", "cap"));
      NACRE_EXPECT_OK(set(file, "user.stays", "v"));
      if (fresh) {
        remount();
        find(root, "f");
      }
      change();
      EXPECT_EQ(names(file), std::vector<std::string>{"user.stays"});
    }
  }
  NACRE_EXPECT_OK(set(file, "security.capability", "cap"));
  NACRE_EXPECT_OK(volume().change_attributes(file, {.mode = 0755}));
  read(file);
  EXPECT_EQ(volume().get_xattr(file, "security.capability").value_or(""), "cap");
}

TEST_F(VolumeXattr, an_access_acl_and_the_mode_are_kept_in_step) {
  const InodeNumber file = make_file(root, "f");
  NACRE_EXPECT_OK(set(file, fs::acl_access_name, fs::encode_acl(named_)));
  EXPECT_EQ(stat(file).mode, S_IFREG | 0770u);
  NACRE_EXPECT_OK(volume().change_attributes(file, {.mode = 0641}));
  auto expected = named_;
  expected[0].permissions = 6;
  expected[3].permissions = 4;
  expected[4].permissions = 1;
  EXPECT_EQ(acl(file, fs::acl_access_name), expected);
  remount();
  find(root, "f");
  EXPECT_EQ(acl(file, fs::acl_access_name), expected);
  // An ACL that the mode alone can express is not stored.
  const Acl minimal = {{AclTag::user_object, 6}, {AclTag::group_object, 6}, {AclTag::other, 4}};
  NACRE_EXPECT_OK(set(file, fs::acl_access_name, fs::encode_acl(minimal)));
  EXPECT_EQ(stat(file).mode, S_IFREG | 0664u);
  EXPECT_TRUE(names(file).empty());
  NACRE_EXPECT_OK(volume().remove_xattr(file, fs::acl_access_name));
  EXPECT_EQ(stat(file).mode, S_IFREG | 0664u);
}

TEST_F(VolumeXattr, an_acl_set_by_a_stranger_to_the_group_takes_set_gid) {
  const InodeNumber file = make_file(root, "f");
  NACRE_EXPECT_OK(volume().change_attributes(file, {.mode = 06755}));
  const std::string value = fs::encode_acl(named_);
  NACRE_EXPECT_OK(volume().set_xattr(file, fs::acl_access_name, value, XattrMode::set, false));
  EXPECT_EQ(stat(file).mode, S_IFREG | 06770u);
  NACRE_EXPECT_OK(volume().set_xattr(file, fs::acl_access_name, value, XattrMode::set, true));
  EXPECT_EQ(stat(file).mode, S_IFREG | 04770u);
}

TEST_F(VolumeXattr, acls_are_checked) {
  const InodeNumber file = make_file(root, "f");
  EXPECT_CODE(invalid_argument, set(file, fs::acl_access_name, "rubbish"));
  EXPECT_CODE(permission, set(file, fs::acl_default_name, fs::encode_acl(named_)));
  NACRE_EXPECT_OK(set(file, fs::acl_default_name, fs::encode_acl({})));
  const auto symlink = volume().make_symlink(root, "l", caller_, "x");
  EXPECT_CODE(unsupported, set(symlink->inode, fs::acl_access_name, fs::encode_acl(named_)));
  EXPECT_TRUE(names(file).empty());
}

TEST_F(VolumeXattr, a_default_acl_is_handed_on) {
  const InodeNumber directory = make_directory(root, "d");
  NACRE_EXPECT_OK(set(directory, fs::acl_default_name, fs::encode_acl(named_)));
  EXPECT_EQ(stat(directory).mode, S_IFDIR | 0755u) << "it says nothing about the directory itself";
  for (const bool fresh : {false, true}) {
    if (fresh) {
      remount();
      find(root, "d");
    }
    const std::string suffix = fresh ? "2" : "1";
    // The umask does not count, the mode asked for does.
    const InodeNumber file = make_file(directory, "f" + suffix, 0666);
    EXPECT_EQ(stat(file).mode, S_IFREG | 0660u);
    auto expected = named_;
    expected[0].permissions = 6;
    expected[3].permissions = 6;
    EXPECT_EQ(acl(file, fs::acl_access_name), expected);
    EXPECT_EQ(acl(file, fs::acl_default_name), std::nullopt);
    const InodeNumber below = make_directory(directory, "s" + suffix, 0777);
    EXPECT_EQ(stat(below).mode, S_IFDIR | 0770u);
    EXPECT_EQ(acl(below, fs::acl_access_name), named_);
    EXPECT_EQ(acl(below, fs::acl_default_name), named_);
    const auto unnamed = volume().make_unnamed(directory, caller_, 0666);
    EXPECT_EQ(unnamed->mode, S_IFREG | 0660u);
    const auto symlink = volume().make_symlink(directory, "l" + suffix, caller_, "x");
    EXPECT_EQ(symlink->mode, S_IFLNK | 0777u);
    EXPECT_TRUE(names(symlink->inode).empty());
  }
  NACRE_EXPECT_OK(volume().remove_xattr(directory, fs::acl_default_name));
  EXPECT_EQ(stat(make_file(directory, "after", 0666)).mode, S_IFREG | 0644u);
}

}  // namespace
}  // namespace nacre::tests
