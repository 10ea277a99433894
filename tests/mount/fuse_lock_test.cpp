// SPDX-License-Identifier: Apache-2.0
// A volume is taken away from a mount and given back to it.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>

#include "tests/mount/fuse_mount.h"
#include "tests/support/error_of.h"
#include "tests/support/patience.h"

namespace nacre::tests {

namespace {

class FuseLock : public FuseMount {
 protected:
  void SetUp() override {
    FuseMount::SetUp();
    if (session_ && is_over_uring()) NACRE_SKIP("a mount over io_uring is not locked");
  }
  // What the volume holds of a file, as a commit would store it.
  std::string stored(metadata::InodeNumber inode) {
    const auto attributes = volume().attributes(inode);
    Bytes bytes(attributes ? attributes->size : 0);
    const auto size = volume().read(inode, 0, bytes);
    return size ? std::string(as_text(ByteView(bytes).first(*size))) : "(unreadable)";
  }
  static bool happens(const std::function<bool()>& event) {
    const auto end = std::chrono::steady_clock::now() + patience;
    while (!event()) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::yield();
    }
    return true;
  }
  static int stat_errno(const std::string& path) {
    struct stat status = {};
    return errno_of([&] { return ::stat(path.c_str(), &status); });
  }
  void expect_open(const std::string& name, std::string_view content) {
    EXPECT_EQ(get(path(name)), content);
    put(path("another"), "text");
    EXPECT_EQ(get(path("another")), "text");
  }
};

TEST_F(FuseLock, every_call_fails_until_the_volume_is_back) {
  put(path("file"), "content");
  const File file(path("file"), O_RDWR);
  const File folder(path(""), O_RDONLY | O_DIRECTORY);
  NACRE_ASSERT_OK(session_->suspend([] { return Result<>(); }));
  char byte = 'x';
  struct statvfs space = {};
  EXPECT_EQ(stat_errno(path("file")), EIO);
  EXPECT_EQ(errno_of([&] { return static_cast<int>(pread(file, &byte, 1, 0)); }), EIO);
  EXPECT_EQ(errno_of([&] { return static_cast<int>(pwrite(file, &byte, 1, 0)); }), EIO);
  EXPECT_EQ(errno_of([&] { return fsync(file); }), EIO);
  EXPECT_EQ(errno_of([&] { return openat(folder, "new", O_CREAT | O_RDWR, 0600); }), EIO);
  EXPECT_EQ(errno_of([&] { return fstatvfs(folder, &space); }), EIO);
  session_->resume(volume_.served());
  EXPECT_EQ(pread(file, &byte, 1, 0), 1);
  EXPECT_EQ(byte, 'c');
  expect_open("file", "content");
}

// Bytes of write(2) and of a mapping.
TEST_F(FuseLock, the_volume_has_what_programs_wrote_before_it_commits) {
  const std::string text(3 * 4096, 'a');
  put(path("file"), text);
  const File file(path("file"), O_RDWR);
  const metadata::InodeNumber inode = inode_of(path("file"));
  auto* mapped =
      static_cast<char*>(mmap(nullptr, text.size(), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
  ASSERT_NE(mapped, MAP_FAILED);
  mapped[5000] = 'm';
  ASSERT_EQ(pwrite(file, "written", 7, 0), 7);
  std::string expected = text;
  expected[5000] = 'm';
  expected.replace(0, 7, "written");
  std::string found;
  NACRE_ASSERT_OK(session_->suspend([&] {
    found = stored(inode);
    return Result<>();
  }));
  EXPECT_TRUE(found == expected);
  session_->resume(volume_.served());
  EXPECT_EQ(mapped[5000], 'm');
  mapped[5001] = 'n';
  ASSERT_EQ(msync(mapped, text.size(), MS_SYNC), 0);
  munmap(mapped, text.size());
  EXPECT_EQ(stored(inode)[5001], 'n');
}

TEST_F(FuseLock, a_commit_that_fails_leaves_all_as_it_was) {
  put(path("file"), "content");
  const auto refused =
      session_->suspend([] { return Result<>(fail(ErrorCode::no_space, "the disk is full")); });
  EXPECT_EQ(error_of(refused), ErrorCode::no_space);
  expect_open("file", "content");
  EXPECT_THROW((void)session_->suspend([]() -> Result<> { throw std::runtime_error("thrown"); }),
               std::runtime_error);
  expect_open("file", "content");
  NACRE_ASSERT_OK(session_->suspend([] { return Result<>(); }));
  EXPECT_EQ(stat_errno(path("file")), EIO);
  session_->resume(volume_.served());
  expect_open("file", "content");
}

TEST_F(FuseLock, what_the_kernel_forgets_meanwhile_is_forgotten_afterwards) {
  put(path("file"), "content");
  File file(path("file"), O_RDWR);
  const File kept(path("kept"), O_RDWR | O_CREAT);
  ASSERT_EQ(unlink(path("file").c_str()), 0);
  ASSERT_EQ(unlink(path("kept").c_str()), 0);
  const std::uint64_t before = inode_count();
  NACRE_ASSERT_OK(session_->suspend([] { return Result<>(); }));
  const std::uint64_t forgotten = count({FUSE_FORGET, FUSE_BATCH_FORGET});
  file.close();
  EXPECT_TRUE(happens([&] { return count({FUSE_FORGET, FUSE_BATCH_FORGET}) > forgotten; }));
  session_->resume(volume_.served());
  EXPECT_TRUE(happens([&] { return inode_count() < before; }));
  EXPECT_EQ(inode_count(), before - 1);
  struct stat status = {};
  EXPECT_EQ(fstat(kept, &status), 0);
}

// A program that waits for a commit gets its answer first.
TEST_F(FuseLock, requests_that_are_answered_later_are_answered_before) {
  NACRE_NEEDS_MEMORY_VOLUME();
  put(path("file"), "content");
  const File file(path("file"), O_RDWR);
  memory().hold_syncs(true);
  int synced = -1;
  std::thread syncing([&] { synced = errno_of([&] { return fsync(file); }); });
  EXPECT_TRUE(happens([&] { return memory().sync_count() > 0; }));
  std::thread releasing([&] {
    // Once it is refused, the gate is shut for programs.
    EXPECT_TRUE(happens([&] { return stat_errno(path("nothing")) == EIO; }));
    memory().hold_syncs(false);
  });
  NACRE_EXPECT_OK(session_->suspend([] { return Result<>(); }));
  syncing.join();
  releasing.join();
  EXPECT_EQ(synced, 0);
  session_->resume(volume_.served());
  expect_open("file", "content");
}

TEST_F(FuseLock, the_mount_ends_while_it_is_locked) {
  put(path("file"), "content");
  NACRE_ASSERT_OK(session_->suspend([] { return Result<>(); }));
  end();
  EXPECT_EQ(stat_errno(path("file")), ENOENT);
}

}  // namespace

}  // namespace nacre::tests
