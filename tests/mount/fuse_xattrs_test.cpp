// SPDX-License-Identifier: Apache-2.0
// Extended attributes and POSIX ACLs through the kernel.
#include <fcntl.h>
#include <sched.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <set>

#include "fs/volume/acl.h"
#include "tests/mount/fuse_mount.h"

namespace nacre::tests {

namespace {

class FuseXattrs : public FuseMount {
 protected:
  int set(std::string_view name, const char* key, std::string_view value, int flags = 0) {
    return errno_of(
        [&] { return setxattr(path(name).c_str(), key, value.data(), value.size(), flags); });
  }
  // The value; "errno N" when there is none.
  std::string value(std::string_view name, const char* key) {
    std::string result(64 << 10, '\0');
    const ssize_t size = getxattr(path(name).c_str(), key, result.data(), result.size());
    if (size < 0) return "errno " + std::to_string(errno);
    result.resize(static_cast<std::size_t>(size));
    return result;
  }
  std::set<std::string> names(std::string_view name) {
    std::string list(64 << 10, '\0');
    const ssize_t size = listxattr(path(name).c_str(), list.data(), list.size());
    std::set<std::string> result;
    for (ssize_t at = 0; at < size;) {
      result.emplace(list.data() + at);
      at += static_cast<ssize_t>(std::string_view(list.data() + at).size()) + 1;
    }
    return result;
  }
};

const std::string no_data = "errno " + std::to_string(ENODATA);

TEST_F(FuseXattrs, are_set_read_listed_and_removed) {
  put(path("f"), "x");
  ASSERT_EQ(mkdir(path("d").c_str(), 0755), 0);
  for (const char* file : {"f", "d"}) {
    EXPECT_EQ(value(file, "user.a"), no_data);
    EXPECT_EQ(set(file, "user.a", "one"), 0);
    EXPECT_EQ(set(file, "user.b", std::string_view("two\0bytes", 9)), 0);
    EXPECT_EQ(set(file, "user.empty", ""), 0);
    EXPECT_EQ(value(file, "user.a"), "one");
    EXPECT_EQ(value(file, "user.b"), std::string("two\0bytes", 9));
    EXPECT_EQ(value(file, "user.empty"), "");
    EXPECT_EQ(names(file), (std::set<std::string>{"user.a", "user.b", "user.empty"}));
    EXPECT_EQ(set(file, "user.a", "again", XATTR_CREATE), EEXIST);
    EXPECT_EQ(set(file, "user.c", "again", XATTR_REPLACE), ENODATA);
    EXPECT_EQ(set(file, "user.a", "again", XATTR_REPLACE), 0);
    EXPECT_EQ(set(file, "user.c", "new", XATTR_CREATE), 0);
    EXPECT_EQ(value(file, "user.a"), "again");
    EXPECT_EQ(errno_of([&] { return removexattr(path(file).c_str(), "user.a"); }), 0);
    EXPECT_EQ(errno_of([&] { return removexattr(path(file).c_str(), "user.a"); }), ENODATA);
    EXPECT_EQ(value(file, "user.a"), no_data);
  }
}

TEST_F(FuseXattrs, sizes_up_to_the_limit) {
  put(path("f"), "x");
  const std::string largest(64 << 10, 'v');
  EXPECT_EQ(set("f", "user.large", largest), 0);
  EXPECT_EQ(value("f", "user.large"), largest);
  EXPECT_EQ(set("f", "user.large", largest + "v"), E2BIG);
  EXPECT_EQ(getxattr(path("f").c_str(), "user.large", nullptr, 0), 64 << 10);
  char small[10];
  EXPECT_EQ(errno_of([&] {
              return static_cast<int>(getxattr(path("f").c_str(), "user.large", small, 10));
            }),
            ERANGE);
  EXPECT_EQ(errno_of([&] { return static_cast<int>(listxattr(path("f").c_str(), small, 2)); }),
            ERANGE);
  EXPECT_EQ(listxattr(path("f").c_str(), nullptr, 0), 11);
  const std::string longest = "user." + std::string(250, 'n');
  EXPECT_EQ(set("f", longest.c_str(), "x"), 0);
  EXPECT_EQ(value("f", longest.c_str()), "x");
}

TEST_F(FuseXattrs, change_time_follows_a_set_and_a_removal) {
  put(path("f"), "x");
  const auto change_time = [&] {
    const struct stat shown = stat_of(path("f"));
    return std::pair(shown.st_ctim.tv_sec, shown.st_ctim.tv_nsec);
  };
  const auto first = change_time();
  usleep(20'000);
  ASSERT_EQ(set("f", "user.a", "x"), 0);
  const auto second = change_time();
  EXPECT_GT(second, first);
  usleep(20'000);
  ASSERT_EQ(removexattr(path("f").c_str(), "user.a"), 0);
  EXPECT_GT(change_time(), second);
}

TEST_F(FuseXattrs, trusted_names_are_for_administrators) {
  if (!is_root()) NACRE_SKIP("trusted attributes need root");
  put(path("f"), "x");
  ASSERT_EQ(set("f", "trusted.secret", "s"), 0);
  ASSERT_EQ(set("f", "user.open", "o"), 0);
  EXPECT_EQ(names("f"), (std::set<std::string>{"trusted.secret", "user.open"}));
  const int seen =
      run_as(other_user, other_user, [&] { return static_cast<int>(names("f").size()); });
  EXPECT_EQ(seen, 1);
  // Root of a user namespace of his own is none.
  constexpr int no_namespace = 77;
  const int in_a_namespace = run_as(other_user, other_user, [&] {
    return unshare(CLONE_NEWUSER) == 0 ? static_cast<int>(names("f").size()) : no_namespace;
  });
  if (in_a_namespace == no_namespace) NACRE_SKIP("no user namespace for an ordinary user");
  EXPECT_EQ(in_a_namespace, 1);
}

TEST_F(FuseXattrs, capabilities_go_when_the_file_changes_whoever_changes_it) {
  if (!is_root()) NACRE_SKIP("file capabilities need root");
  // cap_net_raw, version 2: what setcap writes.
  const std::string capability(
      "\x01\x00\x00\x02\x00\x20\x00\x00\x00\x00\x00\x00"
      "\x00\x00\x00\x00\x00\x00\x00\x00",
      20);
  const auto kept = [&] { return value("f", "security.capability") == capability; };
  put(path("f"), "content");
  ASSERT_EQ(set("f", "security.capability", capability), 0);
  ASSERT_TRUE(kept());
  {
    const File file(path("f"), O_WRONLY);
    ASSERT_EQ(write(file, "x", 1), 1);
    ASSERT_EQ(fsync(file), 0);
  }
  EXPECT_FALSE(kept());
  ASSERT_EQ(set("f", "security.capability", capability), 0);
  ASSERT_EQ(truncate(path("f").c_str(), 1), 0);
  EXPECT_FALSE(kept());
  ASSERT_EQ(set("f", "security.capability", capability), 0);
  ASSERT_EQ(chown(path("f").c_str(), 1, 1), 0);
  EXPECT_FALSE(kept());
}

class FuseAcl : public FuseXattrs {
 protected:
  void SetUp() override {
    if (!is_root()) NACRE_SKIP("changing users needs root");
    FuseXattrs::SetUp();
  }
  // Owner rwx, user other_user with what is given, group and mask as given, others nothing.
  static std::string acl(std::uint16_t other, std::uint16_t group, std::uint16_t mask) {
    return fs::encode_acl({{fs::AclTag::user_object, 7},
                           {fs::AclTag::user, other, other_user},
                           {fs::AclTag::group_object, group},
                           {fs::AclTag::mask, mask},
                           {fs::AclTag::other, 0}});
  }
  int open_as_other(std::string_view name, int flags) {
    return run_as(other_user, other_user,
                  [&] { return errno_of([&] { return File(path(name), flags); }); });
  }
  static constexpr const char* access_name = "system.posix_acl_access";
  static constexpr const char* default_name = "system.posix_acl_default";
};

TEST_F(FuseAcl, lets_a_named_user_in_and_keeps_step_with_the_mode) {
  put(path("f"), "x", 0600);
  ASSERT_EQ(chmod(path("f").c_str(), 0600), 0);
  EXPECT_EQ(open_as_other("f", O_RDONLY), EACCES);
  ASSERT_EQ(set("f", access_name, acl(6, 0, 7)), 0);
  EXPECT_EQ(stat_of(path("f")).st_mode & 0777, 0770u);  // the mask stands for the group
  EXPECT_EQ(open_as_other("f", O_RDWR), 0);
  ASSERT_EQ(chmod(path("f").c_str(), 0740), 0);
  EXPECT_EQ(value("f", access_name), acl(6, 0, 4));
  EXPECT_EQ(open_as_other("f", O_RDONLY), 0);
  EXPECT_EQ(open_as_other("f", O_RDWR), EACCES);
  ASSERT_EQ(removexattr(path("f").c_str(), access_name), 0);
  EXPECT_EQ(open_as_other("f", O_RDONLY), EACCES);
}

TEST_F(FuseAcl, of_three_entries_is_only_the_mode) {
  put(path("f"), "x");
  const std::string plain = fs::encode_acl(
      {{fs::AclTag::user_object, 6}, {fs::AclTag::group_object, 4}, {fs::AclTag::other, 0}});
  ASSERT_EQ(set("f", access_name, plain), 0);
  EXPECT_EQ(stat_of(path("f")).st_mode & 0777, 0640u);
  EXPECT_EQ(value("f", access_name), no_data);
}

TEST_F(FuseAcl, of_a_directory_is_inherited_instead_of_the_umask) {
  ASSERT_EQ(mkdir(path("d").c_str(), 0755), 0);
  ASSERT_EQ(set("d", default_name, acl(7, 5, 7)), 0);
  const mode_t before = umask(077);
  put(path("d/f"), "x", 0666);
  const int made = mkdir(path("d/sub").c_str(), 0777);
  umask(before);
  ASSERT_EQ(made, 0);
  EXPECT_EQ(stat_of(path("d/f")).st_mode & 0777, 0660u);
  EXPECT_EQ(value("d/f", access_name), fs::encode_acl({{fs::AclTag::user_object, 6},
                                                       {fs::AclTag::user, 7, other_user},
                                                       {fs::AclTag::group_object, 5},
                                                       {fs::AclTag::mask, 6},
                                                       {fs::AclTag::other, 0}}));
  EXPECT_EQ(value("d/f", default_name), no_data);
  EXPECT_EQ(value("d/sub", default_name), acl(7, 5, 7));
  EXPECT_EQ(stat_of(path("d/sub")).st_mode & 0777, 0770u);
  EXPECT_EQ(open_as_other("d/f", O_RDWR), 0);
  // Also for files without a name.
  {
    const File file(path("d"), O_TMPFILE | O_RDWR, 0666);
    ASSERT_GE(file, 0);
    struct stat shown;
    ASSERT_EQ(fstat(file, &shown), 0);
    EXPECT_EQ(shown.st_mode & 0777, 0660u);
  }
  ASSERT_EQ(removexattr(path("d").c_str(), default_name), 0);
  put(path("d/plain"), "x", 0644);
  EXPECT_EQ(value("d/plain", access_name), no_data);
}

TEST_F(FuseAcl, of_an_owner_outside_the_group_clears_set_group_id) {
  put(path("f"), "x");
  ASSERT_EQ(chown(path("f").c_str(), other_user, 4242), 0);
  ASSERT_EQ(chmod(path("f").c_str(), 02770), 0);
  EXPECT_EQ(run_as(other_user, other_user, [&] { return set("f", access_name, acl(6, 5, 7)); }), 0);
  EXPECT_EQ(stat_of(path("f")).st_mode & 07777, 0770u);
  ASSERT_EQ(chmod(path("f").c_str(), 02770), 0);
  ASSERT_EQ(set("f", access_name, acl(6, 5, 7)), 0);  // root may keep it
  EXPECT_EQ(stat_of(path("f")).st_mode & 07777, 02770u);
}

class FuseWithoutXattrs : public FuseXattrs {
  fs::FuseOptions options() const override {
    fs::FuseOptions options = FuseMount::options();
    options.no_xattr = true;
    return options;
  }
};

TEST_F(FuseWithoutXattrs, every_call_is_refused_and_the_rest_works) {
  put(path("f"), "x");
  EXPECT_EQ(set("f", "user.a", "x"), EOPNOTSUPP);
  EXPECT_EQ(value("f", "user.a"), "errno " + std::to_string(EOPNOTSUPP));
  EXPECT_EQ(names("f"), std::set<std::string>());
  EXPECT_EQ(errno_of([&] { return removexattr(path("f").c_str(), "user.a"); }), EOPNOTSUPP);
  const mode_t before = umask(027);
  ASSERT_EQ(mkdir(path("d").c_str(), 0777), 0);
  umask(before);
  EXPECT_EQ(stat_of(path("d")).st_mode & 07777, 0750u);
}

}  // namespace

}  // namespace nacre::tests
