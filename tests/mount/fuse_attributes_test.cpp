// SPDX-License-Identifier: Apache-2.0
// Attributes through the kernel: what is shown is what the volume has, set-id bits go when they
// must, birth times, inode flags.
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fs/fuse/capabilities.h"
#include "tests/mount/fuse_mount.h"

namespace nacre::tests {

namespace {

class FuseAttributes : public FuseMount {
 protected:
  // Compares everything the kernel shows of a file with what the volume has.
  void expect_in_step(std::string_view name) {
    const struct stat shown = stat_of(path(name));
    const auto kept = volume().attributes(metadata::InodeNumber{shown.st_ino});
    ASSERT_TRUE(kept) << name;
    EXPECT_EQ(shown.st_mode, kept->mode) << name;
    EXPECT_EQ(shown.st_nlink, kept->link_count) << name;
    EXPECT_EQ(shown.st_uid, kept->uid) << name;
    EXPECT_EQ(shown.st_gid, kept->gid) << name;
    EXPECT_EQ(static_cast<std::uint64_t>(shown.st_size), kept->size) << name;
    EXPECT_EQ(static_cast<std::uint64_t>(shown.st_blocks), kept->blocks) << name;
    const auto same = [&](const timespec& a, const Timestamp& b, const char* which) {
      EXPECT_EQ(a.tv_sec, b.seconds) << name << " " << which;
      EXPECT_EQ(static_cast<std::uint32_t>(a.tv_nsec), b.nanoseconds) << name << " " << which;
    };
    same(shown.st_atim, kept->accessed, "atime");
    same(shown.st_mtim, kept->modified, "mtime");
    same(shown.st_ctim, kept->changed, "ctime");
  }
  // Looks at the attributes so that the kernel has them cached, lets time go on, changes, compares.
  void expect_in_step_after(std::initializer_list<std::string_view> names,
                            const std::function<void()>& change) {
    for (const std::string_view name : names) {
      struct stat ignored;
      lstat(path(name).c_str(), &ignored);
    }
    usleep(20'000);
    change();
    // The kernel keeps times of regular files to itself until they are written back.
    for (const std::string_view name : names) {
      struct stat shown;
      if (lstat(path(name).c_str(), &shown) != 0 || !S_ISREG(shown.st_mode)) continue;
      ASSERT_EQ(fsync(File(path(name), O_RDONLY)), 0);
    }
    for (const std::string_view name : names)
      expect_in_step(name);
  }
};

TEST_F(FuseAttributes, stay_in_step_with_the_volume) {
  put(path("f"), "content");
  ASSERT_EQ(mkdir(path("d").c_str(), 0755), 0);
  ASSERT_EQ(mkdir(path("e").c_str(), 0755), 0);
  put(path("d/g"), "x");
  expect_in_step_after({".", "f", "d", "e", "d/g"}, [] {});
  expect_in_step_after({".", "f"}, [&] { put(path("new"), "n"); });
  expect_in_step_after({".", "d"}, [&] { mkdir(path("d/sub").c_str(), 0755); });
  expect_in_step_after({"d", "d/sub"}, [&] { symlink("t", path("d/sub/l").c_str()); });
  expect_in_step_after({"d/sub"}, [&] { unlink(path("d/sub/l").c_str()); });
  expect_in_step_after({".", "d"}, [&] { rmdir(path("d/sub").c_str()); });
  expect_in_step_after({"f", "d"}, [&] { link(path("f").c_str(), path("d/h").c_str()); });
  expect_in_step_after({"f", "d"}, [&] { unlink(path("d/h").c_str()); });
  expect_in_step_after({"d", "e"}, [&] { rename(path("d/g").c_str(), path("e/g").c_str()); });
  expect_in_step_after({"d", "e", "e/g", "f"}, [&] {
    renameat2(AT_FDCWD, path("e/g").c_str(), AT_FDCWD, path("f").c_str(), RENAME_EXCHANGE);
  });
  // A directory for a file and back: the link counts of both parents change.
  for (int i = 0; i < 2; ++i) {
    expect_in_step_after({".", "e", "d", "e/g"}, [&] {
      renameat2(AT_FDCWD, path("e/g").c_str(), AT_FDCWD, path("d").c_str(), RENAME_EXCHANGE);
    });
  }
  expect_in_step_after({".", "e"}, [&] { rename(path("d").c_str(), path("e/d").c_str()); });
  expect_in_step("e/d");
  expect_in_step_after({"f", "e"}, [&] { chmod(path("f").c_str(), 0600); });
  expect_in_step_after({"e"}, [&] { chmod(path("e").c_str(), 0700); });
  expect_in_step_after({"f"}, [&] { truncate(path("f").c_str(), 100'000); });
  expect_in_step_after({"f"}, [&] {
    const timespec times[2] = {{1000, 1}, {2000, 2}};
    utimensat(AT_FDCWD, path("f").c_str(), times, 0);
  });
  expect_in_step_after({"f"}, [&] { utimensat(AT_FDCWD, path("f").c_str(), nullptr, 0); });
  expect_in_step_after({"f"}, [&] {
    const File file(path("f"), O_WRONLY);
    ASSERT_EQ(pwrite(file, "abc", 3, 200'000), 3);
  });
  expect_in_step_after({"f"}, [&] {
    const File file(path("f"), O_RDWR);
    ASSERT_EQ(fallocate(file, 0, 0, 300'000), 0);
  });
  expect_in_step_after({"f"}, [&] {
    const File file(path("f"), O_RDWR);
    ASSERT_EQ(fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 300'000), 0);
  });
  put(path("source"), std::string(100'000, 's'));
  expect_in_step_after({"f", "source"}, [&] {
    const File from(path("source"), O_RDONLY), to(path("f"), O_RDWR);
    ASSERT_EQ(copy_file_range(from, nullptr, to, nullptr, 100'000, 0), 100'000);
  });
  if (is_root()) {
    expect_in_step_after({"f", "e"}, [&] {
      chown(path("f").c_str(), 7, 8);
      chown(path("e").c_str(), 7, 8);
    });
  }
}

TEST_F(FuseAttributes, change_time_of_a_link_moves_when_its_twin_goes) {
  put(path("f"), "x");
  ASSERT_EQ(link(path("f").c_str(), path("g").c_str()), 0);
  const struct stat before = stat_of(path("g"));
  usleep(20'000);
  ASSERT_EQ(unlink(path("f").c_str()), 0);
  const struct stat after = stat_of(path("g"));
  EXPECT_EQ(after.st_nlink, 1u);
  EXPECT_GT(std::pair(after.st_ctim.tv_sec, after.st_ctim.tv_nsec),
            std::pair(before.st_ctim.tv_sec, before.st_ctim.tv_nsec));
}

TEST_F(FuseAttributes, statx_tells_the_birth_time) {
  put(path("f"), "x");
  struct statx before = {}, after = {};
  ASSERT_EQ(statx(AT_FDCWD, path("f").c_str(), 0, STATX_BASIC_STATS | STATX_BTIME, &before), 0);
  ASSERT_NE(before.stx_mask & STATX_BTIME, 0u);
  EXPECT_NEAR(static_cast<double>(before.stx_btime.tv_sec), static_cast<double>(time(nullptr)), 5);
  usleep(20'000);
  put(path("f"), "changed");
  ASSERT_EQ(chmod(path("f").c_str(), 0600), 0);
  ASSERT_EQ(statx(AT_FDCWD, path("f").c_str(), 0, STATX_BASIC_STATS | STATX_BTIME, &after), 0);
  EXPECT_EQ(after.stx_btime.tv_sec, before.stx_btime.tv_sec);
  EXPECT_EQ(after.stx_btime.tv_nsec, before.stx_btime.tv_nsec);
  EXPECT_EQ(after.stx_size, 7u);
  EXPECT_EQ(after.stx_mode & 07777, 0600);
  const auto kept = volume().attributes(inode_of(path("f")));
  EXPECT_EQ(after.stx_btime.tv_nsec, kept->born.nanoseconds);
  EXPECT_GT(count(52), 0u);
}

TEST_F(FuseAttributes, times_carry_nanoseconds_and_centuries) {
  put(path("f"), "x");
  for (const time_t seconds : {time_t{-1'000'000'000}, time_t{0}, time_t{1} << 33}) {
    const timespec times[2] = {{seconds, 123'456'789}, {seconds, 987'654'321}};
    ASSERT_EQ(utimensat(AT_FDCWD, path("f").c_str(), times, 0), 0);
    const struct stat shown = stat_of(path("f"));
    EXPECT_EQ(shown.st_atim.tv_sec, seconds);
    EXPECT_EQ(shown.st_atim.tv_nsec, 123'456'789);
    EXPECT_EQ(shown.st_mtim.tv_sec, seconds);
    EXPECT_EQ(shown.st_mtim.tv_nsec, 987'654'321);
  }
}

TEST_F(FuseAttributes, statfs_tells_the_space) {
  struct statfs space = {};
  ASSERT_EQ(statfs(mount_point_.c_str(), &space), 0);
  const auto kept = volume().space();
  const auto block_size = static_cast<std::uint64_t>(space.f_bsize);
  EXPECT_EQ(space.f_blocks, kept->total_bytes / block_size);
  EXPECT_EQ(space.f_bavail, kept->available_bytes / block_size);
  EXPECT_EQ(space.f_ffree, kept->free_inodes);
  EXPECT_EQ(space.f_namelen, 255);
}

// The bits that give a program its owner's rights.
class FuseSetId : public FuseAttributes {
 protected:
  void SetUp() override {
    if (!is_root()) NACRE_SKIP("changing users needs root");
    FuseAttributes::SetUp();
  }
  void make(mode_t mode) {
    put(path("f"), std::string(10'000, 'x'));
    ASSERT_EQ(chmod(path("f").c_str(), mode), 0);
    put(path("source"), std::string(10'000, 'y'));
    ASSERT_EQ(chmod(path("source").c_str(), 0644), 0);
    ASSERT_EQ(stat_of(path("f")).st_mode & 07777, mode);
  }
  // The mode after a change by another user. The shown and the stored mode must agree.
  mode_t mode_after(mode_t mode, const std::function<int(int file)>& change, int flags = O_RDWR) {
    make(mode);
    EXPECT_EQ(run_as(other_user, other_user,
                     [&] {
                       const File file(path("f"), flags);
                       return file < 0 ? 100 : errno_of([&] { return change(file); });
                     }),
              0);
    const mode_t shown = stat_of(path("f")).st_mode & 07777;
    EXPECT_EQ(volume().attributes(inode_of(path("f")))->mode & 07777, shown);
    return shown;
  }
};

TEST_F(FuseSetId, go_when_somebody_else_writes) {
  const auto write_one = [](int file) { return static_cast<int>(write(file, "z", 1)); };
  EXPECT_EQ(mode_after(04757, write_one), 0757u);
  EXPECT_EQ(mode_after(02777, write_one), 0777u);
  EXPECT_EQ(mode_after(06777, write_one), 0777u);
  EXPECT_EQ(mode_after(02767, write_one), 0767u) << "without group execution, as on ext4";
  EXPECT_EQ(get(path("f")).front(), 'z');
}

TEST_F(FuseSetId, go_when_somebody_else_writes_directly) {
  const auto write_page = [](int file) {
    alignas(4096) static char page[4096] = {};
    return static_cast<int>(pwrite(file, page, sizeof page, 0));
  };
  EXPECT_EQ(mode_after(04757, write_page, O_RDWR | O_DIRECT), 0757u);
}

TEST_F(FuseSetId, go_when_somebody_else_truncates) {
  EXPECT_EQ(mode_after(06777, [](int file) { return ftruncate(file, 5); }), 0777u);
  EXPECT_EQ(mode_after(
                06777, [](int) { return 0; }, O_RDWR | O_TRUNC),
            0777u);
}

TEST_F(FuseSetId, go_when_somebody_else_allocates) {
  const auto allocate = [](int mode) {
    return [mode](int file) { return fallocate(file, mode, 0, 20'000); };
  };
  EXPECT_EQ(mode_after(06777, allocate(0)), 0777u);
  EXPECT_EQ(mode_after(06777, allocate(FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE)), 0777u);
  EXPECT_EQ(mode_after(06777, allocate(FALLOC_FL_ZERO_RANGE)), 0777u);
}

TEST_F(FuseSetId, go_when_somebody_else_copies_into_the_file) {
  const auto copy = [this](int file) {
    const File from(path("source"), O_RDONLY);
    return static_cast<int>(copy_file_range(from, nullptr, file, nullptr, 100, 0));
  };
  EXPECT_EQ(mode_after(06777, copy), 0777u);
}

// xfstests 683 to 685.
TEST_F(FuseSetId, without_group_execution_go_unless_a_member_of_the_group_did_it) {
  constexpr gid_t group = 4242;
  const auto mode_after_one = [&](gid_t first, const std::vector<gid_t>& further, auto change) {
    make(0644);
    EXPECT_EQ(chown(path("f").c_str(), -1u, group), 0);
    EXPECT_EQ(chmod(path("f").c_str(), 02766), 0);
    const auto body = [&] {
      const File file(path("f"), O_RDWR);
      return file < 0 ? 100 : errno_of([&] { return change(file); });
    };
    EXPECT_EQ(run_as(other_user, first, body, further), 0);
    const mode_t shown = stat_of(path("f")).st_mode & 07777;
    EXPECT_EQ(volume().attributes(inode_of(path("f")))->mode & 07777, shown);
    return shown;
  };
  const std::vector<std::function<int(int)>> changes = {
      [](int file) { return static_cast<int>(write(file, "z", 1)); },
      [](int file) { return ftruncate(file, 5); },
      [](int file) { return fallocate(file, 0, 0, 20'000); },
      [](int file) { return fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 5); },
      [](int file) { return fallocate(file, FALLOC_FL_ZERO_RANGE, 0, 5); },
      [this](int file) {
        const File from(path("source"), O_RDONLY);
        return static_cast<int>(copy_file_range(from, nullptr, file, nullptr, 100, 0));
      },
  };
  for (std::size_t i = 0; i < changes.size(); ++i) {
    EXPECT_EQ(mode_after_one(other_user, {}, changes[i]), 0766u) << "change " << i;
    EXPECT_EQ(mode_after_one(other_user, {7, group}, changes[i]), 02766u) << "change " << i;
    EXPECT_EQ(mode_after_one(group, {}, changes[i]), 02766u) << "change " << i;
  }
}

// In a user namespace of its own, the process has every capability, but not over this mount.
TEST_F(FuseSetId, go_when_root_of_a_user_namespace_of_his_own_writes) {
  constexpr int no_namespace = 77;
  const auto in_a_namespace = [&](auto change) {
    make(06777);
    const int result = run_as(other_user, other_user, [&] {
      if (unshare(CLONE_NEWUSER) != 0) return no_namespace;
      const File file(path("f"), O_RDWR);
      return file < 0 ? 100 : errno_of([&] { return change(file); });
    });
    EXPECT_EQ(volume().attributes(inode_of(path("f")))->mode, stat_of(path("f")).st_mode);
    return result;
  };
  const std::vector<std::function<int(int)>> changes = {
      [](int file) { return static_cast<int>(write(file, "z", 1)); },
      [](int file) { return ftruncate(file, 5); },
      [](int file) { return fallocate(file, 0, 0, 20'000); },
      [](int file) { return fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 5); },
      [](int file) { return fallocate(file, FALLOC_FL_ZERO_RANGE, 0, 5); },
      [this](int file) {
        const File from(path("source"), O_RDONLY);
        return static_cast<int>(copy_file_range(from, nullptr, file, nullptr, 100, 0));
      },
  };
  for (std::size_t i = 0; i < changes.size(); ++i) {
    const int result = in_a_namespace(changes[i]);
    if (result == no_namespace) NACRE_SKIP("no user namespace for an ordinary user");
    EXPECT_EQ(result, 0) << "change " << i;
    EXPECT_EQ(stat_of(path("f")).st_mode & 07777, 0777u) << "change " << i;
  }
}

TEST_F(FuseSetId, capabilities_count_only_of_whom_a_request_names) {
  const fs::Requester self{.process = getpid(), .uid = geteuid(), .gid = getegid()};
  EXPECT_TRUE(fs::has_capability(self, CAP_FSETID));
  // A server of files that asks for one of its users.
  EXPECT_FALSE(fs::has_capability({self.process, other_user, self.gid}, CAP_FSETID));
  EXPECT_FALSE(fs::has_capability({self.process, self.uid, other_user}, CAP_FSETID));
  EXPECT_FALSE(fs::has_capability({0, self.uid, self.gid}, CAP_FSETID));
  EXPECT_FALSE(fs::is_in_group({0, self.uid, self.gid}, other_user));
  EXPECT_TRUE(fs::is_in_group({0, self.uid, other_user}, other_user));
  const pid_t gone = fork();
  if (gone == 0) _exit(0);
  waitpid(gone, nullptr, 0);
  EXPECT_FALSE(fs::has_capability({gone, self.uid, self.gid}, CAP_FSETID));
  // A thread's own count, not those of its process.
  std::thread([&] {
    const auto thread = static_cast<pid_t>(syscall(SYS_gettid));
    EXPECT_TRUE(fs::has_capability({thread, self.uid, self.gid}, CAP_FSETID));
    syscall(SYS_setfsuid, other_user);
    EXPECT_FALSE(fs::has_capability({thread, other_user, self.gid}, CAP_FSETID));
  }).join();
  EXPECT_TRUE(fs::has_capability(self, CAP_FSETID));
}

TEST_F(FuseSetId, go_when_the_owner_changes) {
  make(06777);
  ASSERT_EQ(chown(path("f").c_str(), other_user, -1u), 0);
  EXPECT_EQ(stat_of(path("f")).st_mode & 07777, 0777u);
}

TEST_F(FuseSetId, stay_when_root_writes) {
  make(06777);
  const File file(path("f"), O_RDWR);
  ASSERT_EQ(write(file, "z", 1), 1);
  ASSERT_EQ(fallocate(file, 0, 0, 20'000), 0);
  ASSERT_EQ(ftruncate(file, 5), 0);
  ASSERT_EQ(fsync(file), 0);
  EXPECT_EQ(stat_of(path("f")).st_mode & 07777, 06777u);
  EXPECT_EQ(volume().attributes(inode_of(path("f")))->mode & 07777, 06777u);
}

// chattr and lsattr.
class FuseFlags : public FuseAttributes {
 protected:
  void SetUp() override {
    if (!is_root()) NACRE_SKIP("setting these flags needs root");
    FuseAttributes::SetUp();
  }
  void TearDown() override {
    if (session_) {
      set_flags("f", 0);
      set_flags("d", 0);
    }
    FuseAttributes::TearDown();
  }
  int set_flags(std::string_view name, int flags) {
    const File file(path(name), O_RDONLY);
    return errno_of([&] { return ioctl(file, FS_IOC_SETFLAGS, &flags); });
  }
  int flags_of(std::string_view name) {
    int flags = -1;
    const File file(path(name), O_RDONLY);
    EXPECT_EQ(ioctl(file, FS_IOC_GETFLAGS, &flags), 0);
    return flags;
  }
};

TEST_F(FuseFlags, are_kept_and_shown_in_both_spellings) {
  put(path("f"), "x");
  EXPECT_EQ(flags_of("f"), 0);
  ASSERT_EQ(set_flags("f", FS_NODUMP_FL | FS_NOATIME_FL), 0);
  EXPECT_EQ(flags_of("f"), FS_NODUMP_FL | FS_NOATIME_FL);
  const File file(path("f"), O_RDONLY);
  fsxattr shown = {};
  ASSERT_EQ(ioctl(file, FS_IOC_FSGETXATTR, &shown), 0);
  EXPECT_EQ(shown.fsx_xflags & (FS_XFLAG_NODUMP | FS_XFLAG_NOATIME),
            unsigned{FS_XFLAG_NODUMP | FS_XFLAG_NOATIME});
  shown.fsx_xflags = FS_XFLAG_NODUMP;
  ASSERT_EQ(ioctl(file, FS_IOC_FSSETXATTR, &shown), 0);
  EXPECT_EQ(flags_of("f"), FS_NODUMP_FL);
  EXPECT_EQ(set_flags("f", FS_COMPR_FL), EOPNOTSUPP);
  EXPECT_EQ(flags_of("f"), FS_NODUMP_FL);
  int version = 0;
  EXPECT_EQ(errno_of([&] { return ioctl(file, FS_IOC_GETVERSION, &version); }), ENOTTY);
}

TEST_F(FuseFlags, immutable_files_refuse_changes_but_keep_what_was_written_before) {
  const File file(path("f"), O_RDWR | O_CREAT);
  ASSERT_EQ(write(file, "late", 4), 4);  // still in the kernel
  ASSERT_EQ(set_flags("f", FS_IMMUTABLE_FL), 0);
  EXPECT_EQ(flags_of("f"), FS_IMMUTABLE_FL);
  Bytes kept(4);
  ASSERT_TRUE(volume().read(inode_of(path("f")), 0, kept));
  EXPECT_EQ(as_text(kept), "late");
  EXPECT_EQ(errno_of([&] { return truncate(path("f").c_str(), 0); }), EPERM);
  EXPECT_EQ(errno_of([&] { return chmod(path("f").c_str(), 0600); }), EPERM);
  EXPECT_EQ(errno_of([&] { return unlink(path("f").c_str()); }), EPERM);
  EXPECT_EQ(errno_of([&] { return rename(path("f").c_str(), path("g").c_str()); }), EPERM);
  EXPECT_EQ(errno_of([&] { return link(path("f").c_str(), path("g").c_str()); }), EPERM);
  // The kernel does not know the flag: it takes the write, and the failure shows when it is handed
  // over.
  const File late(path("f"), O_WRONLY);
  EXPECT_TRUE(write(late, "LATE", 4) < 0 || fsync(late) < 0);
  for (int i = 0; i < 500 && get(path("f")) != "late"; ++i)
    usleep(10'000);
  EXPECT_EQ(get(path("f")), "late");
  ASSERT_EQ(set_flags("f", 0), 0);
  EXPECT_EQ(truncate(path("f").c_str(), 2), 0);
}

TEST_F(FuseFlags, append_only_files_grow_and_do_nothing_else) {
  put(path("f"), "one,");
  ASSERT_EQ(set_flags("f", FS_APPEND_FL), 0);
  {
    const File file(path("f"), O_WRONLY | O_APPEND);
    ASSERT_EQ(write(file, "two", 3), 3);
    ASSERT_EQ(fsync(file), 0);
  }
  EXPECT_EQ(get(path("f")), "one,two");
  {
    const File file(path("f"), O_WRONLY);
    EXPECT_TRUE(write(file, "ONE", 3) < 0 || fsync(file) < 0);
  }
  Bytes kept(7);
  ASSERT_TRUE(volume().read(inode_of(path("f")), 0, kept));
  EXPECT_EQ(as_text(kept), "one,two");
  EXPECT_EQ(errno_of([&] { return truncate(path("f").c_str(), 0); }), EPERM);
  EXPECT_EQ(errno_of([&] { return unlink(path("f").c_str()); }), EPERM);
}

// The same as on ext4: touch(1) is allowed, but not times that are passed to utimensat(2).
TEST_F(FuseFlags, append_only_files_and_directories_take_no_chosen_times) {
  if (has_memory_volume()) GTEST_SKIP() << "the volume in memory takes any times";
  put(path("f"), "one,");
  ASSERT_EQ(mkdir(path("d").c_str(), 0755), 0);
  for (const char* const name : {"f", "d"}) {
    ASSERT_EQ(set_flags(name, FS_APPEND_FL), 0);
    const auto set = [&](const timespec& accessed, const timespec& modified) {
      const timespec times[] = {accessed, modified};
      return errno_of([&] { return utimensat(AT_FDCWD, path(name).c_str(), times, 0); });
    };
    const timespec past{1000, 0}, future{1LL << 33, 0}, none{0, UTIME_OMIT}, now{0, UTIME_NOW};
    EXPECT_EQ(set(past, past), EPERM) << name;
    EXPECT_EQ(set(past, none), EPERM) << name;
    EXPECT_EQ(set(none, past), EPERM) << name;
    EXPECT_EQ(set(none, future), EPERM) << name;
    EXPECT_EQ(set(now, past), EPERM) << name;
    EXPECT_EQ(set(now, none), EPERM) << name;
    EXPECT_EQ(errno_of([&] { return utimensat(AT_FDCWD, path(name).c_str(), nullptr, 0); }), 0)
        << name;
    EXPECT_GT(stat_of(path(name)).st_mtime, 1000) << name;
  }
  // Appended bytes bring their time along.
  const time_t before = stat_of(path("f")).st_mtime;
  const File file(path("f"), O_WRONLY | O_APPEND);
  ASSERT_EQ(write(file, "two", 3), 3);
  ASSERT_EQ(fsync(file), 0);
  EXPECT_GE(stat_of(path("f")).st_mtime, before);
  EXPECT_EQ(set_flags("f", 0), 0);
  const timespec past[] = {{1000, 0}, {1000, 0}};
  EXPECT_EQ(utimensat(AT_FDCWD, path("f").c_str(), past, 0), 0);
  EXPECT_EQ(stat_of(path("f")).st_mtime, 1000);
}

TEST_F(FuseFlags, immutable_directories_take_no_names) {
  ASSERT_EQ(mkdir(path("d").c_str(), 0755), 0);
  put(path("d/kept"), "x");
  ASSERT_EQ(set_flags("d", FS_IMMUTABLE_FL), 0);
  EXPECT_EQ(errno_of([&] { return mkdir(path("d/new").c_str(), 0755); }), EPERM);
  EXPECT_EQ(errno_of([&] { return unlink(path("d/kept").c_str()); }), EPERM);
}

// The kernel itself asks for CAP_LINUX_IMMUTABLE: the request does not even come here.
TEST_F(FuseFlags, are_not_for_owners_without_the_capability) {
  put(path("f"), "x");
  ASSERT_EQ(chown(path("f").c_str(), other_user, other_user), 0);
  const std::uint64_t changes = volume().attributes(inode_of(path("f")))->flags;
  for (const int flag : {FS_IMMUTABLE_FL, FS_APPEND_FL}) {
    EXPECT_EQ(run_as(other_user, other_user, [&] { return set_flags("f", flag); }), EPERM);
  }
  EXPECT_EQ(volume().attributes(inode_of(path("f")))->flags, changes);
  EXPECT_EQ(run_as(other_user, other_user, [&] { return set_flags("f", FS_NODUMP_FL); }), 0);
  EXPECT_EQ(flags_of("f"), FS_NODUMP_FL);
}

}  // namespace

}  // namespace nacre::tests
