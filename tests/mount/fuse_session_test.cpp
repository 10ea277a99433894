// SPDX-License-Identifier: Apache-2.0
// A session from mounting to its end, and everything that can be in the way of a mount.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

#include "tests/mount/fuse_mount.h"

namespace nacre::tests {

namespace {

using fs::MountEnvironment;

class FuseSessionLife : public FuseMount {
 protected:
  std::string kept(std::uint64_t inode) {
    Bytes bytes(volume().attributes(metadata::InodeNumber{inode})->size);
    EXPECT_TRUE(volume().read(metadata::InodeNumber{inode}, 0, bytes));
    return std::string(as_text(bytes));
  }
  // Over io_uring the kernel cancels requests for a moment before.
  static int wait_until_cut_off(int file) {
    int error = 0;
    for (int tries = 0; tries < 30'000; ++tries) {
      error = errno_of([&] { return fsync(file); });
      if (error != ECANCELED && error != ECONNABORTED) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return error;
  }
  bool is_mounted() {
    std::ifstream table("/proc/self/mountinfo");
    const std::string text((std::istreambuf_iterator<char>(table)), {});
    return text.find(" " + mount_point_ + " ") != std::string::npos;
  }
};

TEST_F(FuseSessionLife, ends_when_the_file_system_is_unmounted) {
  put(path("f"), "kept");
  const std::uint64_t inode = stat_of(path("f")).st_ino;
  ASSERT_TRUE(fs::unmount(mount_point_, fs::UnmountMode::when_free, MountEnvironment::current()));
  wait_for_end();
  EXPECT_EQ(kept(inode), "kept");
  if (has_memory_volume()) {
    EXPECT_FALSE(memory().kernel_cache().is_set());
  }
}

TEST_F(FuseSessionLife, ends_on_request) {
  put(path("f"), "kept");
  const std::uint64_t inode = stat_of(path("f")).st_ino;
  session_->request_exit();
  wait_for_end();
  EXPECT_FALSE(is_mounted());
  EXPECT_EQ(kept(inode), "kept");
  EXPECT_TRUE(std::filesystem::is_empty(mount_point_));
}

TEST_F(FuseSessionLife, ends_on_request_while_files_are_open_and_loses_nothing_written) {
  const File file(path("f"), O_RDWR | O_CREAT);
  const std::string content(3u << 20, 'c');
  ASSERT_EQ(write(file, content.data(), content.size()), static_cast<ssize_t>(content.size()));
  const std::uint64_t inode = stat_of(path("f")).st_ino;
  session_->request_exit();
  wait_for_end();
  EXPECT_FALSE(is_mounted());
  EXPECT_EQ(kept(inode), content);
  // The program that has the file open gets an error.
  EXPECT_EQ(wait_until_cut_off(file), ENOTCONN);
}

// After the end of the session, every call on a file that was open must fail.
TEST_F(FuseSessionLife, leaves_its_users_nothing_to_write_into) {
  ASSERT_EQ(mkdir(path("d").c_str(), 0755), 0);
  put(path("d/other"), "content");
  const File file(path("f"), O_RDWR | O_CREAT);
  const File log(path("log"), O_WRONLY | O_CREAT | O_APPEND);
  const File folder(path("d"), O_RDONLY | O_DIRECTORY);
  const File other(path("d/other"), O_RDONLY);
  ASSERT_EQ(write(file, "content", 7), 7);
  ASSERT_EQ(write(log, "line\n", 5), 5);
  ASSERT_EQ(get(path("d/other")), "content");
  void* mapped = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  std::memcpy(mapped, "CONTENT", 7);
  session_->request_exit();
  wait_for_end();
  char byte;
  const auto told = [](const auto& call) { EXPECT_EQ(errno_of(call), ENOTCONN); };
  wait_until_cut_off(log);
  for (int i = 0; i < 3; ++i)
    told([&] { return write(log, "line\n", 5); });
  told([&] { return pread(file, &byte, 1, 0); });
  told([&] { return pread(other, &byte, 1, 0); });
  told([&] { return pwrite(file, "x", 1, 0); });
  told([&] { return ftruncate(file, 0); });
  struct stat status;
  told([&] { return fstat(log, &status); });
  told([&] { return openat(folder, "other", O_WRONLY); });
  told([&] { return openat(folder, "new", O_WRONLY | O_CREAT, 0644); });
  told([&] { return fsync(log); });
  // Runs in a child process, since the store ends the process that makes it.
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGBUS, SIG_DFL);
    *static_cast<volatile char*>(mapped) = 'x';
    _exit(0);
  }
  int ended = 0;
  ASSERT_EQ(waitpid(child, &ended, 0), child);
  EXPECT_TRUE(WIFSIGNALED(ended) && WTERMSIG(ended) == SIGBUS) << ended;
  unmap(mapped, 4096);
}

TEST_F(FuseSessionLife, goes_on_for_open_files_after_a_lazy_unmount) {
  {
    const File file(path("f"), O_RDWR | O_CREAT);
    ASSERT_TRUE(fs::unmount(mount_point_, fs::UnmountMode::detach, MountEnvironment::current()));
    ASSERT_EQ(write(file, "late", 4), 4);
    ASSERT_EQ(fsync(file), 0);
    struct stat shown;
    ASSERT_EQ(fstat(file, &shown), 0);
    EXPECT_EQ(kept(shown.st_ino), "late");
  }
  wait_for_end();
}

TEST_F(FuseSessionLife, ends_when_the_connection_is_aborted_and_takes_the_mount_away) {
  if (!is_root()) NACRE_SKIP("aborting the connection by umount -f needs root");
  const File file(path("f"), O_RDWR | O_CREAT);
  // Breaks the connection, and leaves the mount because a file is open.
  EXPECT_EQ(errno_of([&] { return umount2(mount_point_.c_str(), MNT_FORCE); }), EBUSY);
  wait_for_end();
  EXPECT_TRUE(is_mounted());
  session_.reset();
  EXPECT_FALSE(is_mounted());
}

TEST_F(FuseSessionLife, knows_its_device) {
  const dev_t device = stat_of(mount_point_).st_dev;
  EXPECT_EQ(session_->device(),
            std::to_string(major(device)) + ":" + std::to_string(minor(device)));
  EXPECT_EQ(session_->mount_point(), std::filesystem::canonical(mount_point_));
}

TEST_F(FuseSessionLife, raises_the_kernels_read_ahead_for_root) {
  if (!is_root()) NACRE_SKIP("only root can raise the kernel's read-ahead");
  std::ifstream file("/sys/class/bdi/" + session_->device() + "/read_ahead_kb");
  int kib = 0;
  file >> kib;
  EXPECT_EQ(kib, 1024);
}

TEST_F(FuseSessionLife, two_mounts_of_a_process_do_not_disturb_each_other) {
  const ScratchFolder other_folder;
  const std::string other_point = other_folder.path() + "/mnt";
  ASSERT_EQ(mkdir(other_point.c_str(), 0755), 0);
  MemoryVolume other_volume;
  auto other = fs::FuseSession::create(other_volume.served(), other_point, options());
  ASSERT_TRUE(other) << other.error().message;
  std::thread server([&] { EXPECT_TRUE((*other)->run()); });
  put(path("f"), "one");
  put(other_point + "/f", "two");
  EXPECT_EQ(get(path("f")), "one");
  EXPECT_EQ(get(other_point + "/f"), "two");
  (*other)->request_exit();
  server.join();
  EXPECT_EQ(get(path("f")), "one");
}

class FuseReadOnly : public FuseMount {
  fs::FuseOptions options() const override {
    fs::FuseOptions options = FuseMount::options();
    options.read_only = true;
    return options;
  }
};

TEST_F(FuseReadOnly, refuses_changes_and_serves_reads) {
  const auto made = volume().make_node(metadata::root_inode, "f", {}, S_IFREG | 0644, 0);
  ASSERT_TRUE(made);
  ASSERT_TRUE(volume().write(made->inode, 0, as_bytes("read me"), {}));
  EXPECT_EQ(get(path("f")), "read me");
  EXPECT_EQ(errno_of([&] { return File(path("g"), O_CREAT | O_WRONLY); }), EROFS);
  EXPECT_EQ(errno_of([&] { return unlink(path("f").c_str()); }), EROFS);
}

// Obstacles to a mount.
class MountPoint : public ::testing::Test {
 protected:
  static Error refusal(const Result<std::string>& result) {
    return result ? Error{ErrorCode::cancelled, "not refused"} : result.error();
  }
  ScratchFolder folder_;
  MountEnvironment here_ = MountEnvironment::current();
};

TEST_F(MountPoint, must_exist) {
  const Error error = refusal(check_mount_point(folder_.path() + "/missing", false, here_));
  EXPECT_EQ(error.code, ErrorCode::not_found);
  EXPECT_NE(error.message.find("mkdir"), std::string::npos) << error.message;
}

TEST_F(MountPoint, must_be_a_directory) {
  put(folder_.path() + "/file", "");
  EXPECT_EQ(refusal(check_mount_point(folder_.path() + "/file", false, here_)).code,
            ErrorCode::not_directory);
  EXPECT_EQ(refusal(check_mount_point(folder_.path() + "/file/below", false, here_)).code,
            ErrorCode::not_directory);
}

TEST_F(MountPoint, must_be_empty_unless_allowed) {
  put(folder_.path() + "/in-the-way", "");
  const Error error = refusal(check_mount_point(folder_.path(), false, here_));
  EXPECT_EQ(error.code, ErrorCode::not_empty);
  EXPECT_NE(error.message.find("in-the-way"), std::string::npos) << error.message;
  EXPECT_NE(error.message.find("nonempty"), std::string::npos) << error.message;
  EXPECT_TRUE(check_mount_point(folder_.path(), true, here_));
}

TEST_F(MountPoint, is_resolved) {
  ASSERT_EQ(mkdir((folder_.path() + "/real").c_str(), 0755), 0);
  ASSERT_EQ(symlink("real", (folder_.path() + "/link").c_str()), 0);
  const auto resolved = check_mount_point(folder_.path() + "/link/", false, here_);
  ASSERT_TRUE(resolved);
  EXPECT_EQ(*resolved, std::filesystem::canonical(folder_.path()).string() + "/real");
}

TEST_F(MountPoint, of_a_dead_daemon_says_how_to_clear_it) {
  if (const std::string why = why_no_fuse(); !why.empty()) NACRE_SKIP(why);
  const std::string point = folder_.path() + "/mnt";
  ASSERT_EQ(mkdir(point.c_str(), 0755), 0);
  const pid_t daemon = fork();
  if (daemon == 0) {
    MemoryVolume volume;
    auto session = fs::FuseSession::create(volume.served(), point, {});
    _exit(session ? 0 : 1);  // without unmounting
  }
  int status = 0;
  ASSERT_EQ(waitpid(daemon, &status, 0), daemon);
  ASSERT_EQ(status, 0);
  const Error error = refusal(check_mount_point(point, false, here_));
  EXPECT_EQ(error.code, ErrorCode::busy);
  EXPECT_NE(error.message.find("fusermount3 -u " + point), std::string::npos) << error.message;
  EXPECT_TRUE(fs::unmount(point, fs::UnmountMode::detach, here_));
  EXPECT_TRUE(check_mount_point(point, false, here_));
}

TEST_F(FuseSessionLife, its_mount_point_is_busy_for_another_volume_empty_or_not) {
  const auto refused = [&] {
    const auto checked = check_mount_point(mount_point_, false, MountEnvironment::current());
    EXPECT_FALSE(checked) << "a second volume would lie over the first";
    if (checked) return;
    EXPECT_EQ(checked.error().code, ErrorCode::busy) << checked.error().message;
    EXPECT_NE(checked.error().message.find("nacre umount"), std::string::npos);
  };
  refused();
  put(path("f"), "not empty");
  refused();
  EXPECT_TRUE(check_mount_point(mount_point_, true, MountEnvironment::current()));
}

TEST_F(MountPoint, must_be_writable_for_ordinary_users) {
  if (!is_root()) NACRE_SKIP("changing users needs root");
  EXPECT_EQ(run_as(other_user, other_user,
                   [&] {
                     const auto result =
                         check_mount_point(folder_.path(), false, MountEnvironment::current());
                     return static_cast<int>(refusal(result).code);
                   }),
            static_cast<int>(ErrorCode::permission));
}

class FuseEnvironment : public MountPoint {
 protected:
  static std::string message_of(const Result<>& result) {
    return result ? "accepted" : result.error().message;
  }
};

TEST_F(FuseEnvironment, without_the_device_says_how_to_get_it) {
  here_.device_path = folder_.path() + "/no-fuse";
  const std::string message = message_of(check_fuse(false, here_));
  EXPECT_NE(message.find("modprobe fuse"), std::string::npos) << message;
  EXPECT_NE(message.find(here_.device_path), std::string::npos) << message;
}

TEST_F(FuseEnvironment, without_fusermount_names_the_package) {
  if (const std::string why = why_no_fuse(); !why.empty()) NACRE_SKIP(why);
  here_.user = other_user;
  here_.search_path = folder_.path();
  const std::string message = message_of(check_fuse(false, here_));
  EXPECT_NE(message.find("fuse3"), std::string::npos) << message;
  here_.user = 0;  // root needs none
  EXPECT_EQ(message_of(check_fuse(false, here_)), "accepted");
}

TEST_F(FuseEnvironment, allow_other_needs_its_line_for_ordinary_users) {
  if (const std::string why = why_no_fuse(); !why.empty()) NACRE_SKIP(why);
  here_.configuration_path = folder_.path() + "/fuse.conf";
  here_.user = other_user;
  const auto verdict = [&](std::string_view text) {
    put(here_.configuration_path, text);
    return message_of(check_fuse(true, here_));
  };
  const std::string refused = verdict("#user_allow_other\n");
  EXPECT_NE(refused.find("the line user_allow_other to "), std::string::npos) << refused;
  EXPECT_NE(refused.find(here_.configuration_path), std::string::npos) << refused;
  EXPECT_NE(verdict(""), "accepted");
  EXPECT_NE(verdict("user_allow_others\n"), "accepted");
  EXPECT_EQ(verdict("mount_max = 5\n  user_allow_other  \n"), "accepted");
  put(here_.configuration_path, "");
  EXPECT_EQ(message_of(check_fuse(false, here_)), "accepted");
  here_.user = 0;
  EXPECT_EQ(message_of(check_fuse(true, here_)), "accepted");
}

TEST_F(MountPoint, options_that_libfuse_does_not_take_are_named) {
  if (const std::string why = why_no_fuse(); !why.empty()) NACRE_SKIP(why);
  MemoryVolume volume;
  fs::FuseOptions options;
  options.mount_options = {"no_such_option"};
  const auto session = fs::FuseSession::create(volume.served(), folder_.path(), options);
  ASSERT_FALSE(session);
  EXPECT_EQ(session.error().code, ErrorCode::invalid_argument);
  EXPECT_NE(session.error().message.find("no_such_option"), std::string::npos)
      << session.error().message;
}

}  // namespace

}  // namespace nacre::tests
