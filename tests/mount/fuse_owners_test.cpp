// SPDX-License-Identifier: Apache-2.0
// Mounts that show other owners than the stored ones, mounts that end when no process uses them,
// and the counts of the kernel's requests.
#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>

#include "tests/mount/fuse_mount.h"

namespace nacre::tests {

namespace {

class FuseOwners : public FuseMount {
 protected:
  fs::FuseOptions options() const override {
    fs::FuseOptions result = FuseMount::options();
    result.owners = {.uid = 4242, .gid = 4243, .hidden_bits = 027};
    return result;
  }
};

TEST_F(FuseOwners, shows_all_files_as_one_owners_and_stores_them_as_they_are) {
  if (!is_root()) NACRE_SKIP("files of somebody else can be changed by root alone");
  put(path("f"), "content", 0666);
  ASSERT_EQ(mkdir(path("d").c_str(), 0777), 0);
  ASSERT_EQ(chmod(path("f").c_str(), 0666), 0);
  ASSERT_EQ(chmod(path("d").c_str(), 0777), 0);
  for (const char* name : {"f", "d"}) {
    const struct stat shown = stat_of(path(name));
    EXPECT_EQ(shown.st_uid, 4242u) << name;
    EXPECT_EQ(shown.st_gid, 4243u) << name;
    EXPECT_EQ(shown.st_mode & 0777, name[0] == 'f' ? 0640u : 0750u) << name;
    const auto stored = volume().attributes(inode_of(path(name)));
    ASSERT_TRUE(stored);
    EXPECT_EQ(stored->uid, geteuid()) << name;
    EXPECT_EQ(stored->mode & 0777, name[0] == 'f' ? 0666u : 0777u) << name;
  }
  // The same attributes when a listing brings them.
  drop_kernel_caches();
  DIR* directory = opendir(mount_point_.c_str());
  ASSERT_NE(directory, nullptr);
  while (readdir(directory) != nullptr) {
  }
  closedir(directory);
  EXPECT_EQ(stat_of(path("f")).st_uid, 4242u);
  struct statx extended {};
  ASSERT_EQ(statx(AT_FDCWD, path("f").c_str(), AT_STATX_FORCE_SYNC, STATX_BASIC_STATS | STATX_BTIME,
                  &extended),
            0);
  EXPECT_EQ(extended.stx_uid, 4242u);
  EXPECT_EQ(extended.stx_mode & 0777, 0640);
}

TEST_F(FuseOwners, lends_nobodys_identity) {
  if (!is_root()) NACRE_SKIP("only root may set another's set-id bits");
  put(path("f"), "content");
  ASSERT_EQ(chmod(path("f").c_str(), 06755), 0);
  const auto stored = volume().attributes(inode_of(path("f")));
  ASSERT_TRUE(stored);
  EXPECT_EQ(stored->mode & 07777, 06755u);
  EXPECT_EQ(stat_of(path("f")).st_mode & 06000, 0u);
}

TEST_F(FuseOwners, takes_bits_that_it_does_not_show_with_every_change) {
  if (!is_root()) NACRE_SKIP("only root may set another's set-id bits");
  const std::vector<std::function<int(int)>> changes = {
      [](int file) { return static_cast<int>(write(file, "z", 1)); },
      [](int file) { return ftruncate(file, 2); },
      [](int file) { return fallocate(file, 0, 0, 20'000); },
  };
  for (std::size_t i = 0; i < changes.size(); ++i) {
    put(path("f"), "content");
    ASSERT_EQ(chmod(path("f").c_str(), 06745), 0);
    {
      const File file(path("f"), O_RDWR);
      ASSERT_EQ(errno_of([&] { return changes[i](file); }), 0) << "change " << i;
      ASSERT_EQ(fsync(file), 0);
    }
    const auto stored = volume().attributes(inode_of(path("f")));
    ASSERT_TRUE(stored);
    EXPECT_EQ(stored->mode & 07777, 0745u) << "change " << i;
  }
}

class FuseIdle : public FuseMount {
 protected:
  fs::FuseOptions options() const override {
    fs::FuseOptions result = FuseMount::options();
    result.idle_ms = 500;
    return result;
  }
  // If the limit passed before the file could be opened, that mount is over, and the next one is
  // tried.
  File open_before_it_ends() {
    for (;;) {
      File file(::open(path("f").c_str(), O_RDWR | O_CREAT, 0644));
      struct statfs where = {};
      if (file >= 0 && fstatfs(file, &where) == 0 && where.f_type == FUSE_SUPER_MAGIC) return file;
      wait_for_end();
      session_.reset();
      folder_.reset();
      mount();
    }
  }
};

TEST_F(FuseIdle, ends_when_nobody_uses_it_and_not_while_a_file_is_open) {
  {
    const File open_file = open_before_it_ends();
    ASSERT_EQ(pwrite(open_file, "content", 7, 0), 7);
    std::this_thread::sleep_for(std::chrono::milliseconds(1500));
    char letter = 0;
    ASSERT_EQ(pread(open_file, &letter, 1, 0), 1) << "unmounted while a file was open";
  }
  wait_for_end();
  EXPECT_TRUE(served_);
  EXPECT_NE(access(path("f").c_str(), F_OK), 0) << "still mounted";
}

// The session asks at each of its looks. This many looks take longer than the limit.
TEST(FuseNeeded, stays_mounted_without_users_while_its_volume_is_needed) {
  if (const std::string why = why_no_fuse(); !why.empty()) NACRE_SKIP(why);
  constexpr unsigned look_count = 20;
  const ScratchFolder folder;
  const std::string point = folder.path() + "/mnt";
  ASSERT_EQ(mkdir(point.c_str(), 0755), 0);
  MemoryVolume volume;
  fs::ServedVolume served = volume.served();
  std::atomic<unsigned> asked{0};
  served.is_needed = [&] { return ++asked <= look_count; };
  fs::FuseOptions options;
  options.idle_ms = 500;
  auto session = fs::FuseSession::create(served, point, options);
  ASSERT_TRUE(session) << session.error().message;
  EXPECT_TRUE((*session)->run());
  EXPECT_GT(asked, look_count) << "unmounted while it was needed";
}

using FuseRequests = FuseMount;

std::uint64_t answers(const fs::RequestStats& stats, std::string_view name) {
  for (const fs::OperationStats& one : stats.operations) {
    if (one.name == name) return one.latency_ns.count;
  }
  return 0;
}

TEST_F(FuseRequests, every_request_that_is_answered_is_timed_once) {
  put(path("f"), std::string(3'000'000, 'x'));
  const File file(path("f"), O_RDWR);
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(pwrite(file, "y", 1, i), 1);
    ASSERT_EQ(fsync(file), 0);  // answered on another thread
  }
  ASSERT_NE(lseek(file, 0, SEEK_DATA), -1);  // and this
  EXPECT_EQ(errno_of([&] { return removexattr(path("f").c_str(), "user.none"); }), ENODATA);
  if (is_root()) drop_kernel_caches();
  EXPECT_EQ(get(path("f")).size(), 3'000'000u);
  const fs::RequestStats stats = session_->request_stats();
  for (const fs::OperationStats& one : stats.operations) {
    std::uint32_t opcode = 0;
    std::string name = one.name;
    std::transform(name.begin(), name.end(), name.begin(), ::toupper);
    while (fs::opcode_name(opcode) != name)
      ++opcode;
    // Requests may come meanwhile: counted when they come, timed when they are answered.
    EXPECT_LE(one.latency_ns.count, count(opcode)) << one.name;
    EXPECT_LE(one.latency_ns.max, one.latency_ns.sum) << one.name;
  }
  EXPECT_EQ(answers(stats, "fsync"), 5u);
  EXPECT_EQ(answers(stats, "fsync"), count(FUSE_FSYNC));
  EXPECT_EQ(answers(stats, "lseek"), count(FUSE_LSEEK));
  EXPECT_EQ(answers(stats, "write"), count(FUSE_WRITE));
  EXPECT_EQ(answers(stats, "init"), 1u);
  const auto found = std::find_if(stats.errors.begin(), stats.errors.end(),
                                  [](const auto& one) { return one.first == "ENODATA"; });
  ASSERT_NE(found, stats.errors.end());
  EXPECT_GE(found->second, 1u);
}

}  // namespace

}  // namespace nacre::tests
