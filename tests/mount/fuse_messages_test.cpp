// SPDX-License-Identifier: Apache-2.0
// The messages that the kernel sends, and those that it no longer sends. The speed of the FUSE
// layer depends on them.
#include <dirent.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <sys/file.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "tests/mount/fuse_mount.h"

namespace nacre::tests {

namespace {

using FuseMessages = FuseMount;

TEST_F(FuseMessages, buffered_writes_do_not_ask_for_capabilities) {
  const File file(path("f"), O_WRONLY | O_CREAT);
  const std::uint64_t before = count(FUSE_GETXATTR);
  const std::string piece(100, 'x');
  for (int i = 0; i < 1000; ++i)
    ASSERT_EQ(write(file, piece.data(), piece.size()), 100);
  EXPECT_LE(count(FUSE_GETXATTR) - before, 1u);
}

TEST_F(FuseMessages, opening_and_closing_costs_nothing_after_the_first_time) {
  put(path("f"), "content");
  ASSERT_EQ(get(path("f")), "content");
  closedir(opendir(mount_point_.c_str()));
  const auto opens = [this] {
    return count({FUSE_OPEN, FUSE_RELEASE, FUSE_FLUSH, FUSE_OPENDIR, FUSE_RELEASEDIR});
  };
  const auto open_all = [this] {
    for (int i = 0; i < 50; ++i) {
      ASSERT_EQ(get(path("f")), "content");
      put(path("g" + std::to_string(i)), "more");
      DIR* directory = opendir(mount_point_.c_str());
      ASSERT_NE(directory, nullptr);
      while (readdir(directory) != nullptr) {
      }
      closedir(directory);
    }
  };
  // The kernel notes in bit fields which messages it need not send, and changes them without a
  // lock. So a note may be lost to a change of its neighbour, and the message is sent once more.
  EXPECT_EQ(fewest(0, opens, open_all), 0u);
}

TEST_F(FuseMessages, missing_names_are_remembered) {
  std::string name;
  const auto look_ten_times = [&] {
    name += "missing";  // one not looked for before
    for (int i = 0; i < 10; ++i)
      EXPECT_NE(access(path(name).c_str(), F_OK), 0);
  };
  EXPECT_EQ(fewest(
                1, [this] { return count(FUSE_LOOKUP); }, look_ten_times),
            1u);
  put(path(name), "not any more");
  EXPECT_EQ(get(path(name)), "not any more");
}

TEST_F(FuseMessages, listing_brings_the_attributes_along) {
  for (int i = 0; i < 100; ++i)
    put(path("f" + std::to_string(i)), "x");
  if (!is_root()) NACRE_SKIP("dropping the kernel's caches needs root");
  const auto list = [this] {
    drop_kernel_caches();
    const std::uint64_t listings = count(FUSE_READDIRPLUS);
    DIR* directory = opendir(mount_point_.c_str());
    int seen = 0;
    while (const dirent* entry = readdir(directory)) {
      if (entry->d_name[0] == '.') continue;
      EXPECT_EQ(stat_of(path(entry->d_name)).st_size, 1);
      ++seen;
    }
    closedir(directory);
    EXPECT_EQ(seen, 100);
    EXPECT_GE(count(FUSE_READDIRPLUS), listings + 1);
  };
  const auto others = [this] { return count({FUSE_LOOKUP, FUSE_GETATTR, FUSE_READDIR}); };
  // The root's own attributes may be asked for.
  EXPECT_LE(fewest(2, others, list), 2u);
}

// All three kinds of lock, each held here and tried by another process.
TEST_F(FuseMessages, locks_exclude_and_cost_nothing) {
  put(path("f"), "lock me");
  const std::uint64_t before = count({FUSE_GETLK, FUSE_SETLK, FUSE_SETLKW});
  struct flock whole = {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  const auto tried_elsewhere = [&](const std::function<int(int)>& try_lock) {
    return run_as(geteuid(), getegid(), [&] {
      const File file(path("f"), O_RDWR);
      return file < 0 ? 100 : errno_of([&] { return try_lock(file); });
    });
  };
  const auto try_flock = [](int fd) { return flock(fd, LOCK_EX | LOCK_NB); };
  const auto try_posix = [&](int fd) { return fcntl(fd, F_SETLK, &whole); };
  const auto try_ofd = [&](int fd) { return fcntl(fd, F_OFD_SETLK, &whole); };
  if (!is_root()) NACRE_SKIP("changing the groups of a child process needs root");
  {
    const File file(path("f"), O_RDWR);
    ASSERT_EQ(try_flock(file), 0);
    EXPECT_EQ(tried_elsewhere(try_flock), EWOULDBLOCK);
  }
  EXPECT_EQ(tried_elsewhere(try_flock), 0);
  {
    const File file(path("f"), O_RDWR);
    ASSERT_EQ(try_posix(file), 0);
    EXPECT_EQ(tried_elsewhere(try_posix), EAGAIN);
  }
  EXPECT_EQ(tried_elsewhere(try_posix), 0);
  {
    const File file(path("f"), O_RDWR);
    ASSERT_EQ(try_ofd(file), 0);
    EXPECT_EQ(tried_elsewhere(try_ofd), EAGAIN);
    EXPECT_EQ(tried_elsewhere(try_posix), EAGAIN);
  }
  EXPECT_EQ(tried_elsewhere(try_ofd), 0);
  EXPECT_EQ(count({FUSE_GETLK, FUSE_SETLK, FUSE_SETLKW}) - before, 0u);
}

TEST_F(FuseMessages, large_writes_come_in_large_requests) {
  const std::string megabytes(8u << 20, 'x');
  const File file(path("f"), O_WRONLY | O_CREAT);
  const std::uint64_t before = count(FUSE_WRITE);
  ASSERT_EQ(write(file, megabytes.data(), megabytes.size()),
            static_cast<ssize_t>(megabytes.size()));
  ASSERT_EQ(fsync(file), 0);
  // 8 would do; the kernel may cut some short.
  EXPECT_LE(count(FUSE_WRITE) - before, 24u);
}

TEST_F(FuseMessages, sequential_reads_come_in_large_requests_for_root) {
  if (!is_root()) NACRE_SKIP("only root can raise the kernel's read-ahead");
  const std::string megabytes(8u << 20, 'x');
  put(path("f"), megabytes);
  ASSERT_EQ(fsync(File(path("f"), O_RDWR)), 0);
  drop_kernel_caches();
  const std::uint64_t before = count(FUSE_READ);
  ASSERT_EQ(get(path("f")), megabytes);
  EXPECT_LE(count(FUSE_READ) - before, 24u);  // 64 with the kernel's default
}

// A signal during a request makes the kernel send INTERRUPT until it is told that the daemon does
// not support it.
TEST_F(FuseMessages, interrupts_are_declined_once_and_requests_finish) {
  NACRE_NEEDS_MEMORY_VOLUME();
  struct sigaction action = {};
  action.sa_handler = [](int) {};
  sigaction(SIGUSR1, &action, nullptr);
  const File file(path("f"), O_WRONLY | O_CREAT);
  for (int round = 0; round < 3; ++round) {
    memory().hold_syncs(true);
    const std::uint64_t syncs = count(FUSE_FSYNC);
    int result = -1;
    ASSERT_EQ(write(file, "x", 1), 1);
    std::thread waiting([&] { result = fsync(file); });
    while (count(FUSE_FSYNC) == syncs)
      std::this_thread::yield();
    pthread_kill(waiting.native_handle(), SIGUSR1);
    if (round == 0) {
      while (count(FUSE_INTERRUPT) == 0)
        std::this_thread::yield();
    }
    memory().hold_syncs(false);
    waiting.join();
    EXPECT_EQ(result, 0);
  }
  // Over io_uring the kernel does not take the answer (6.18): it asks for each signal.
  EXPECT_LE(count(FUSE_INTERRUPT), is_over_uring() ? 3u : 1u);
}

class FuseOneThread : public FuseMount {
  fs::FuseOptions options() const override {
    fs::FuseOptions options = FuseMount::options();
    options.thread_count = 1;
    return options;
  }
};

TEST_F(FuseOneThread, a_pending_fsync_blocks_nobody) {
  NACRE_NEEDS_MEMORY_VOLUME();
  memory().hold_syncs(true);
  const File file(path("f"), O_WRONLY | O_CREAT);
  ASSERT_EQ(write(file, "x", 1), 1);
  std::atomic<int> result = -1;
  std::thread waiting([&] { result = fsync(file); });
  while (count(FUSE_FSYNC) == 0)
    std::this_thread::yield();
  put(path("g"), "meanwhile");
  EXPECT_EQ(get(path("g")), "meanwhile");
  EXPECT_EQ(result, -1);
  memory().hold_syncs(false);
  waiting.join();
  EXPECT_EQ(result, 0);
}

class FuseNoXattr : public FuseMount {
  fs::FuseOptions options() const override {
    fs::FuseOptions options = FuseMount::options();
    options.no_xattr = true;
    return options;
  }
};

TEST_F(FuseNoXattr, attributes_are_asked_for_once_and_never_again) {
  for (int i = 0; i < 20; ++i)
    put(path("f" + std::to_string(i)), "x");
  EXPECT_LE(count(FUSE_GETXATTR), 1u);
}

class FuseSyncNames : public FuseMount {
  fs::FuseOptions options() const override {
    fs::FuseOptions options = FuseMount::options();
    options.sync_names = true;
    return options;
  }
};

TEST_F(FuseSyncNames, every_change_of_names_is_made_durable) {
  NACRE_NEEDS_MEMORY_VOLUME();
  const auto syncs_of = [this](const std::function<void()>& change) {
    const std::uint64_t before = memory().sync_count();
    change();
    return memory().sync_count() - before;
  };
  EXPECT_EQ(syncs_of([&] { mkdir(path("d").c_str(), 0755); }), 1u);
  EXPECT_EQ(syncs_of([&] { put(path("f"), ""); }), 1u);
  EXPECT_EQ(syncs_of([&] { link(path("f").c_str(), path("g").c_str()); }), 1u);
  EXPECT_EQ(syncs_of([&] { symlink("f", path("l").c_str()); }), 1u);
  EXPECT_EQ(syncs_of([&] { rename(path("g").c_str(), path("d/g").c_str()); }), 2u);
  EXPECT_EQ(syncs_of([&] { unlink(path("d/g").c_str()); }), 1u);
  EXPECT_EQ(syncs_of([&] { rmdir(path("d").c_str()); }), 1u);
}

}  // namespace

}  // namespace nacre::tests
