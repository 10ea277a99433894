// SPDX-License-Identifier: Apache-2.0
// Names through the kernel: every kind of file, links, renames, listing while things change, files
// without a name, handles.
#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <map>
#include <set>
#include <vector>

#include "tests/mount/fuse_mount.h"

namespace nacre::tests {

namespace {

using FuseNames = FuseMount;

TEST_F(FuseNames, all_kinds_of_files) {
  ASSERT_EQ(mkfifo(path("fifo").c_str(), 0640), 0);
  EXPECT_TRUE(S_ISFIFO(stat_of(path("fifo")).st_mode));
  EXPECT_EQ(symlink("some/where", path("link").c_str()), 0);
  char target[100] = {};
  EXPECT_EQ(readlink(path("link").c_str(), target, sizeof target), 10);
  EXPECT_STREQ(target, "some/where");
  const int server = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const File closes_server(server);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  const std::string name = path("socket");
  ASSERT_LT(name.size(), sizeof address.sun_path);
  std::copy(name.begin(), name.end(), address.sun_path);
  ASSERT_EQ(bind(server, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  EXPECT_TRUE(S_ISSOCK(stat_of(name).st_mode));
  if (!is_root()) NACRE_SKIP("making device nodes needs root");
  ASSERT_EQ(mknod(path("null").c_str(), S_IFCHR | 0666, makedev(1, 3)), 0);
  EXPECT_EQ(stat_of(path("null")).st_rdev, makedev(1, 3));
  put(path("null"), "gone");  // root's mounts allow devices
  EXPECT_EQ(get(path("null")), "");
  ASSERT_EQ(mknod(path("disk").c_str(), S_IFBLK | 0600, makedev(259, 70000)), 0);
  EXPECT_EQ(stat_of(path("disk")).st_rdev, makedev(259, 70000));
}

TEST_F(FuseNames, lengths_up_to_the_limit) {
  const std::string longest(255, 'n');
  put(path(longest), "x");
  EXPECT_EQ(get(path(longest)), "x");
  EXPECT_EQ(errno_of([&] { return access(path(std::string(256, 'n')).c_str(), F_OK); }),
            ENAMETOOLONG);
  const std::string target(4095, 't');
  ASSERT_EQ(symlink(target.c_str(), path("link").c_str()), 0);
  std::string back(5000, '\0');
  EXPECT_EQ(readlink(path("link").c_str(), back.data(), back.size()), 4095);
  put(path("not utf-8 \xff\xfe\n"), "x");
  EXPECT_EQ(get(path("not utf-8 \xff\xfe\n")), "x");
}

TEST_F(FuseNames, umask_and_set_group_id_directories) {
  const mode_t before = umask(027);
  const File file(path("f"), O_CREAT | O_WRONLY, 0666);
  ASSERT_EQ(mkdir(path("d").c_str(), 0777), 0);
  umask(before);
  EXPECT_EQ(stat_of(path("f")).st_mode & 07777, 0640u);
  EXPECT_EQ(stat_of(path("d")).st_mode & 07777, 0750u);
  if (!is_root()) NACRE_SKIP("changing groups needs root");
  ASSERT_EQ(chown(path("d").c_str(), 0, 4242), 0);
  ASSERT_EQ(chmod(path("d").c_str(), 02777), 0);
  ASSERT_EQ(mkdir(path("d/sub").c_str(), 0755), 0);
  put(path("d/f"), "x");
  EXPECT_EQ(stat_of(path("d/sub")).st_gid, 4242u);
  EXPECT_EQ(stat_of(path("d/sub")).st_mode & S_ISGID, unsigned{S_ISGID});
  EXPECT_EQ(stat_of(path("d/f")).st_gid, 4242u);
  EXPECT_EQ(run_as(other_user, other_user,
                   [&] { return errno_of([&] { return File(path("d/g"), O_CREAT | O_RDWR); }); }),
            0);
  EXPECT_EQ(stat_of(path("d/g")).st_uid, other_user);
  EXPECT_EQ(stat_of(path("d/g")).st_gid, 4242u);
}

TEST_F(FuseNames, rename_in_all_its_ways) {
  const auto rename_with = [&](const char* from, const char* to, unsigned flags) {
    return errno_of(
        [&] { return renameat2(AT_FDCWD, path(from).c_str(), AT_FDCWD, path(to).c_str(), flags); });
  };
  put(path("a"), "a");
  put(path("b"), "b");
  EXPECT_EQ(rename_with("a", "b", RENAME_NOREPLACE), EEXIST);
  EXPECT_EQ(rename_with("a", "b", RENAME_EXCHANGE), 0);
  EXPECT_EQ(get(path("a")), "b");
  EXPECT_EQ(get(path("b")), "a");
  EXPECT_EQ(rename_with("a", "c", RENAME_NOREPLACE), 0);
  EXPECT_EQ(rename_with("c", "missing", RENAME_EXCHANGE), ENOENT);
  EXPECT_EQ(rename_with("c", "b", 0), 0);
  EXPECT_EQ(get(path("b")), "b");
  EXPECT_EQ(errno_of([&] { return access(path("c").c_str(), F_OK); }), ENOENT);
  ASSERT_EQ(mkdir(path("d").c_str(), 0755), 0);
  ASSERT_EQ(mkdir(path("e").c_str(), 0755), 0);
  put(path("e/f"), "x");
  EXPECT_EQ(rename_with("d", "e", 0), ENOTEMPTY);
  EXPECT_EQ(rename_with("b", "d", 0), EISDIR);
  EXPECT_EQ(rename_with("d", "b", 0), ENOTDIR);
  EXPECT_EQ(rename_with("e", "e/sub", 0), EINVAL);
  EXPECT_EQ(rename_with("e", "d", 0), 0);
  EXPECT_EQ(get(path("d/f")), "x");
  // The file that is open under a name that another takes stays what it was.
  const File file(path("b"), O_RDONLY);
  put(path("n"), "new");
  EXPECT_EQ(rename_with("n", "b", 0), 0);
  char back[1];
  EXPECT_EQ(read(file, back, 1), 1);
  EXPECT_EQ(back[0], 'b');
  EXPECT_EQ(get(path("b")), "new");
}

// A whiteout after a rename, which overlayfs needs in its upper directory.
TEST_F(FuseNames, rename_can_leave_a_whiteout) {
  const auto rename_with = [&](const char* from, const char* to, unsigned flags) {
    return errno_of(
        [&] { return renameat2(AT_FDCWD, path(from).c_str(), AT_FDCWD, path(to).c_str(), flags); });
  };
  const auto expect_whiteout = [&](const char* name) {
    const struct stat found = stat_of(path(name));
    EXPECT_EQ(found.st_mode, mode_t{S_IFCHR}) << name;
    EXPECT_EQ(found.st_rdev, 0u) << name;
    EXPECT_EQ(found.st_nlink, 1u) << name;
    EXPECT_EQ(found.st_uid, geteuid()) << name;
  };
  const auto entries_of = [&](const char* name) {
    std::map<std::string, int> types;
    DIR* stream = opendir(path(name).c_str());
    while (const dirent* entry = readdir(stream))
      types[entry->d_name] = entry->d_type;
    closedir(stream);
    types.erase(".");
    types.erase("..");
    return types;
  };
  const std::uint64_t inodes = inode_count();
  ASSERT_EQ(mkdir(path("d").c_str(), 0755), 0);
  ASSERT_EQ(mkdir(path("e").c_str(), 0755), 0);
  put(path("d/a"), "a");
  put(path("d/b"), "b");
  EXPECT_EQ(rename_with("d/a", "d/b", RENAME_WHITEOUT | RENAME_NOREPLACE), EEXIST);
  EXPECT_EQ(rename_with("d/a", "d/b", RENAME_WHITEOUT | RENAME_EXCHANGE), EINVAL);
  EXPECT_EQ(rename_with("d/none", "d/b", RENAME_WHITEOUT), ENOENT);
  EXPECT_EQ(rename_with("d/a", "d/c", RENAME_WHITEOUT | RENAME_NOREPLACE), 0);
  expect_whiteout("d/a");
  EXPECT_EQ(get(path("d/c")), "a");
  // Over another file, into another directory, and a whiteout itself.
  put(path("e/taken"), "gone");
  EXPECT_EQ(rename_with("d/b", "e/taken", RENAME_WHITEOUT), 0);
  expect_whiteout("d/b");
  EXPECT_EQ(get(path("e/taken")), "b");
  EXPECT_EQ(rename_with("d/b", "e/w", RENAME_WHITEOUT), 0);
  expect_whiteout("d/b");
  expect_whiteout("e/w");
  // A directory takes its ".." along.
  ASSERT_EQ(mkdir(path("d/sub").c_str(), 0755), 0);
  EXPECT_EQ(stat_of(path("d")).st_nlink, 3u);
  EXPECT_EQ(rename_with("d/sub", "e/sub", RENAME_WHITEOUT), 0);
  expect_whiteout("d/sub");
  EXPECT_EQ(stat_of(path("d")).st_nlink, 2u);
  EXPECT_EQ(stat_of(path("e")).st_nlink, 3u);
  EXPECT_EQ(entries_of("d"), (std::map<std::string, int>{
                                 {"a", DT_CHR}, {"b", DT_CHR}, {"c", DT_REG}, {"sub", DT_CHR}}));
  EXPECT_EQ(entries_of("e"),
            (std::map<std::string, int>{{"taken", DT_REG}, {"w", DT_CHR}, {"sub", DT_DIR}}));
  for (const char* name : {"d/a", "d/b", "d/c", "d/sub", "e/taken", "e/w"})
    EXPECT_EQ(unlink(path(name).c_str()), 0) << name;
  for (const char* name : {"e/sub", "d", "e"})
    EXPECT_EQ(rmdir(path(name).c_str()), 0) << name;
  for (int i = 0; i < 500 && inode_count() != inodes; ++i)
    usleep(10'000);
  EXPECT_EQ(inode_count(), inodes);
}

// Programs of 32 bits get EOVERFLOW from readdir() and statfs() for larger numbers.
TEST_F(FuseNames, numbers_that_programs_of_32_bits_are_told_fit) {
  constexpr int file_count = 3000;
  ASSERT_EQ(mkdir(path("d").c_str(), 0755), 0);
  for (int i = 0; i < file_count; ++i)
    put(path("d/" + std::to_string(i)), "");
  const File directory(path("d"), O_RDONLY | O_DIRECTORY);
  // Listed as a whole, and again from behind every hundredth name.
  std::vector<std::string> names;
  std::vector<std::pair<std::int64_t, std::size_t>> places;
  alignas(8) char buffer[4096];
  const auto list = [&](const auto& take) {
    while (true) {
      const long size = syscall(SYS_getdents64, static_cast<int>(directory), buffer, sizeof buffer);
      ASSERT_GE(size, 0) << strerror(errno);
      if (size == 0) return;
      for (long at = 0; at < size;) {
        const auto* const entry = reinterpret_cast<const dirent64*>(buffer + at);
        take(*entry);
        at += entry->d_reclen;
      }
    }
  };
  list([&](const dirent64& entry) {
    EXPECT_GE(entry.d_off, 0);
    EXPECT_LE(entry.d_off, 0x7fff'ffff) << entry.d_name;
    names.emplace_back(entry.d_name);
    if (names.size() % 100 == 0) places.emplace_back(entry.d_off, names.size());
  });
  EXPECT_EQ(names.size(), file_count + 2u);
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size());
  for (const auto& [offset, count] : places) {
    ASSERT_EQ(lseek(directory, offset, SEEK_SET), offset);
    std::vector<std::string> rest;
    list([&](const dirent64& entry) { rest.emplace_back(entry.d_name); });
    EXPECT_EQ(rest,
              std::vector<std::string>(names.begin() + static_cast<long>(count), names.end()));
  }
  struct statfs space = {};
  ASSERT_EQ(statfs(mount_point_.c_str(), &space), 0);
  EXPECT_LE(space.f_files, 0xffff'ffffu);
  EXPECT_LE(space.f_ffree, 0xffff'ffffu);
  EXPECT_EQ(space.f_files - space.f_ffree, inode_count());
}

TEST_F(FuseNames, files_without_a_name_can_get_one) {
  const std::uint64_t inodes = inode_count();
  {
    const File file(mount_point_, O_TMPFILE | O_RDWR, 0600);
    ASSERT_GE(file, 0) << strerror(errno);
    ASSERT_EQ(write(file, "nameless", 8), 8);
    struct stat shown;
    ASSERT_EQ(fstat(file, &shown), 0);
    EXPECT_EQ(shown.st_nlink, 0u);
    EXPECT_EQ(shown.st_mode, mode_t{S_IFREG | 0600});
    const std::string self = "/proc/self/fd/" + std::to_string(file);
    ASSERT_EQ(linkat(AT_FDCWD, self.c_str(), AT_FDCWD, path("named").c_str(), AT_SYMLINK_FOLLOW),
              0);
    EXPECT_EQ(count(FUSE_TMPFILE), 1u);
  }
  EXPECT_EQ(get(path("named")), "nameless");
  EXPECT_EQ(stat_of(path("named")).st_nlink, 1u);
  {
    const File file(mount_point_, O_TMPFILE | O_RDWR, 0600);
    ASSERT_EQ(write(file, "lost", 4), 4);
    EXPECT_EQ(inode_count(), inodes + 2);
  }
  for (int i = 0; i < 500 && inode_count() != inodes + 1; ++i)
    usleep(10'000);
  EXPECT_EQ(inode_count(), inodes + 1);
}

// Reads a directory in small pieces, so that listing takes many requests.
class SmallReader {
 public:
  explicit SmallReader(const std::string& path) : file_(path, O_RDONLY | O_DIRECTORY) {}
  // The next names; empty at the end.
  std::vector<std::string> next() {
    alignas(8) char buffer[2048];
    const long size = syscall(SYS_getdents64, static_cast<int>(file_), buffer, sizeof buffer);
    EXPECT_GE(size, 0);
    std::vector<std::string> names;
    for (long at = 0; at < size;) {
      const auto* entry = reinterpret_cast<const dirent64*>(buffer + at);
      names.emplace_back(entry->d_name);
      at += entry->d_reclen;
    }
    return names;
  }

 private:
  File file_;
};

TEST_F(FuseNames, listing_while_names_go_and_come_misses_and_repeats_nothing) {
  constexpr int file_count = 10'000;
  const auto name_of = [](int i) { return "file-" + std::to_string(i); };
  for (int i = 0; i < file_count; ++i) {
    ASSERT_TRUE(volume().make_node(metadata::root_inode, name_of(i), {}, S_IFREG | 0644, 0));
  }
  std::map<std::string, int> seen;
  std::set<std::string> removed;
  SmallReader reader(mount_point_);
  int round = 0;
  for (std::vector<std::string> names = reader.next(); !names.empty(); names = reader.next()) {
    for (const std::string& name : names)
      ++seen[name];
    // Removes half of the names that were just listed, and as many that may come later, and adds
    // some names.
    for (std::size_t i = 0; i < names.size(); i += 2) {
      if (names[i].starts_with("file-") && unlink(path(names[i]).c_str()) == 0) {
        removed.insert(names[i]);
      }
      const std::string ahead = name_of((round * 7919 + static_cast<int>(i) * 31) % file_count);
      if (unlink(path(ahead).c_str()) == 0) removed.insert(ahead);
    }
    if (round < 100) put(path("new-" + std::to_string(round)), "");
    ++round;
  }
  EXPECT_GT(round, 100);
  for (const auto& [name, times] : seen)
    EXPECT_EQ(times, 1) << name;
  for (int i = 0; i < file_count; ++i) {
    if (removed.contains(name_of(i))) continue;
    EXPECT_EQ(seen[name_of(i)], 1) << name_of(i);
  }
  EXPECT_EQ(seen["."], 1);
  EXPECT_EQ(seen[".."], 1);
}

TEST_F(FuseNames, positions_in_a_directory_stay_right_while_names_go) {
  for (int i = 0; i < 500; ++i)
    put(path("f" + std::to_string(i)), "");
  DIR* directory = opendir(mount_point_.c_str());
  std::vector<std::pair<long, std::string>> places;  // where each entry is read from
  for (long at = telldir(directory);; at = telldir(directory)) {
    const dirent* entry = readdir(directory);
    if (entry == nullptr) break;
    places.emplace_back(at, entry->d_name);
  }
  ASSERT_EQ(places.size(), 502u);
  for (std::size_t i = 0; i < places.size(); i += 3)
    unlink(path(places[i].second).c_str());
  for (std::size_t i = 1; i < places.size(); i += 3) {
    seekdir(directory, places[i].first);
    const dirent* entry = readdir(directory);
    ASSERT_NE(entry, nullptr);
    EXPECT_EQ(entry->d_name, places[i].second);
  }
  closedir(directory);
}

TEST_F(FuseNames, a_listing_changes_when_the_directory_does) {
  const auto list = [&] {
    std::set<std::string> names;
    DIR* directory = opendir(mount_point_.c_str());
    while (const dirent* entry = readdir(directory))
      names.insert(entry->d_name);
    closedir(directory);
    return names;
  };
  put(path("a"), "");
  EXPECT_EQ(list(), (std::set<std::string>{".", "..", "a"}));
  EXPECT_EQ(list(), (std::set<std::string>{".", "..", "a"}));  // from the kernel's cache
  put(path("b"), "");
  EXPECT_EQ(list(), (std::set<std::string>{".", "..", "a", "b"}));
  ASSERT_EQ(rename(path("a").c_str(), path("c").c_str()), 0);
  EXPECT_EQ(list(), (std::set<std::string>{".", "..", "b", "c"}));
  ASSERT_EQ(unlink(path("b").c_str()), 0);
  EXPECT_EQ(list(), (std::set<std::string>{".", "..", "c"}));
}

// Opens files by handle, as an NFS server does.
class FuseHandles : public FuseMount {
 protected:
  struct Handle {
    alignas(file_handle) unsigned char space[sizeof(file_handle) + MAX_HANDLE_SZ] = {};
    file_handle* get() { return reinterpret_cast<file_handle*>(space); }
  };
  void SetUp() override {
    if (!is_root()) NACRE_SKIP("opening handles needs root");
    FuseMount::SetUp();
  }
  Handle handle_of(const std::string& name) {
    Handle handle;
    handle.get()->handle_bytes = MAX_HANDLE_SZ;
    int mount_id;
    EXPECT_EQ(name_to_handle_at(AT_FDCWD, path(name).c_str(), handle.get(), &mount_id, 0), 0)
        << strerror(errno);
    return handle;
  }
  File open_handle(Handle& handle, int flags) {
    const File mount(mount_point_, O_RDONLY | O_DIRECTORY);
    return File(open_by_handle_at(mount, handle.get(), flags | O_CLOEXEC));
  }
};

TEST_F(FuseHandles, open_files_and_directories_after_the_kernel_has_forgotten_them) {
  ASSERT_EQ(mkdir(path("d").c_str(), 0755), 0);
  put(path("d/f"), "by handle");
  Handle file_handle = handle_of("d/f");
  Handle directory_handle = handle_of("d");
  drop_kernel_caches();
  {
    const File file = open_handle(file_handle, O_RDONLY);
    ASSERT_GE(file, 0) << strerror(errno);
    char back[9];
    EXPECT_EQ(read(file, back, 9), 9);
    EXPECT_EQ(std::string(back, 9), "by handle");
  }
  drop_kernel_caches();
  const File directory = open_handle(directory_handle, O_RDONLY | O_DIRECTORY);
  ASSERT_GE(directory, 0) << strerror(errno);
  struct stat shown;
  EXPECT_EQ(fstatat(directory, "f", &shown, 0), 0);
  EXPECT_EQ(fstatat(directory, "../d/f", &shown, 0), 0);
}

TEST_F(FuseHandles, of_files_that_are_gone_are_stale) {
  put(path("f"), "x");
  Handle handle = handle_of("f");
  ASSERT_EQ(unlink(path("f").c_str()), 0);
  drop_kernel_caches();
  EXPECT_EQ(errno_of([&] { return open_handle(handle, O_RDONLY); }), ESTALE);
}

// Mounts without file handles, as overlayfs needs them if all its directories are in one mount
// (docs/KERNEL.md).
class FuseWithoutHandles : public FuseHandles {
  fs::FuseOptions options() const override {
    fs::FuseOptions options = FuseHandles::options();
    options.no_handles = true;
    return options;
  }
};

TEST_F(FuseWithoutHandles, nothing_is_opened_by_handle) {
  put(path("f"), "x");
  Handle handle;
  handle.get()->handle_bytes = MAX_HANDLE_SZ;
  int mount_id;
  if (name_to_handle_at(AT_FDCWD, path("f").c_str(), handle.get(), &mount_id, 0) == 0) {
    drop_kernel_caches();  // before Linux 6.9 handles of what the kernel has are good
    EXPECT_EQ(errno_of([&] { return open_handle(handle, O_RDONLY); }), ESTALE);
  } else {
    EXPECT_EQ(errno, EOPNOTSUPP);
  }
}

TEST_F(FuseHandles, inodes_that_the_kernel_forgets_are_forgotten) {
  ASSERT_EQ(mkdir(path("d").c_str(), 0755), 0);
  for (int i = 0; i < 100; ++i)
    put(path("d/f" + std::to_string(i)), "x");
  const std::uint64_t before = count({FUSE_FORGET, FUSE_BATCH_FORGET});
  drop_kernel_caches();
  for (int i = 0; i < 500 && count({FUSE_FORGET, FUSE_BATCH_FORGET}) == before; ++i)
    usleep(10'000);
  EXPECT_GT(count({FUSE_FORGET, FUSE_BATCH_FORGET}), before);
  // Lookups that were counted but never given back would keep these in memory for ever.
  const std::uint64_t inodes = inode_count();
  for (int i = 0; i < 100; ++i)
    ASSERT_EQ(unlink(path("d/f" + std::to_string(i)).c_str()), 0);
  drop_kernel_caches();
  for (int i = 0; i < 500 && inode_count() != inodes - 100; ++i)
    usleep(10'000);
  EXPECT_EQ(inode_count(), inodes - 100);
}

}  // namespace

}  // namespace nacre::tests
