// SPDX-License-Identifier: Apache-2.0
// While a volume has no room, write(2) itself fails with ENOSPC, although the kernel answers writes
// from its cache.
#include <dirent.h>
#include <fcntl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <string>
#include <thread>
#include <vector>

#include "tests/mount/fuse_mount.h"

namespace nacre::tests {

namespace {

class FuseWriteGate : public FuseMount {
 protected:
  static constexpr std::uint64_t plenty = 1ull << 40;

  static int write_errno(const File& file, std::size_t size = 5) {
    const std::string bytes(size, 'w');
    return errno_of([&] { return static_cast<int>(write(file, bytes.data(), size)); });
  }
  std::uint64_t kept_size(std::string_view name) {
    return volume().attributes(inode_of(path(name)))->size;
  }
  // An open file of which the volume refused pages. Returns when its writer has got the error and
  // the pages are gone.
  File refused(std::string_view name) {
    put(path(name), "text");
    File file(path(name), O_RDWR | O_APPEND);
    EXPECT_EQ(fsync(file), 0);
    memory().limit_room(0);
    EXPECT_EQ(write_errno(file), 0);
    EXPECT_EQ(errno_of([&] { return fsync(file); }), ENOSPC);
    while (errno_of([&] { return fsync(file); }) == ENOSPC)
      std::this_thread::yield();
    return file;
  }
};

// A program goes on writing its log after errors. The file has all lines that write() took, except
// for one.
TEST_F(FuseWriteGate, a_log_keeps_the_lines_that_were_taken) {
  NACRE_NEEDS_MEMORY_VOLUME();
  constexpr std::size_t line_size = 64u << 10;
  const File first = refused("first");  // from then on the daemon knows that there is little room
  memory().limit_room(8u << 20);
  const File log(path("log"), O_WRONLY | O_CREAT | O_APPEND);
  std::uint64_t taken = 0, refused = 0;
  for (int i = 0; i < 2000; ++i) {
    if (write_errno(log, line_size) == 0)
      ++taken;
    else
      ++refused;
  }
  (void)fsync(log);
  EXPECT_GT(taken, 0u);
  EXPECT_GT(refused, 1800u);
  EXPECT_LE(taken * line_size, kept_size("log") + line_size);
}

// Once, the volume was asked for a page, and took the first part of such a call.
TEST_F(FuseWriteGate, asks_for_all_bytes_of_a_call) {
  NACRE_NEEDS_MEMORY_VOLUME();
  const File first = refused("first");
  memory().limit_room(8u << 20);
  const File file(path("f"), O_RDWR | O_CREAT);
  const std::string large(12u << 20, 'l');
  EXPECT_EQ(errno_of([&] { return static_cast<int>(write(file, large.data(), large.size())); }),
            ENOSPC);
  EXPECT_EQ(errno_of([&] { return static_cast<int>(pwrite(file, large.data(), large.size(), 7)); }),
            ENOSPC);
  // Neither of its parts is too large.
  std::array<iovec, 3> parts = {};
  for (iovec& part : parts)
    part = {.iov_base = const_cast<char*>(large.data()), .iov_len = 4u << 20};
  EXPECT_EQ(errno_of([&] { return static_cast<int>(writev(file, parts.data(), 3)); }), ENOSPC);
  EXPECT_EQ(errno_of([&] { return static_cast<int>(pwritev(file, parts.data(), 3, 0)); }), ENOSPC);
  EXPECT_EQ(kept_size("f"), 0u);
  EXPECT_EQ(pwritev(file, parts.data(), 1, 0), 4 << 20);
  EXPECT_EQ(fsync(file), 0);
  EXPECT_EQ(kept_size("f"), 4u << 20);
}

// Once, the kernel held what was written over stored bytes, and the volume did not know of it.
TEST_F(FuseWriteGate, what_write_took_over_stored_bytes_is_stored) {
  NACRE_NEEDS_MEMORY_VOLUME();
  constexpr std::size_t piece_size = 64u << 10;
  put(path("f"), std::string(16u << 20, 'o'));
  const File file(path("f"), O_RDWR);
  ASSERT_EQ(fsync(file), 0);
  const File first = refused("first");
  memory().limit_room(4u << 20);
  std::size_t taken = 0, refused = 0;
  const std::string piece(piece_size, 'n');
  for (std::size_t i = 0; i < 256; ++i) {
    const auto at = static_cast<off_t>(i * 37 % 256 * piece_size);
    const bool is_taken = pwrite(file, piece.data(), piece_size, at) == piece_size;
    ++(is_taken ? taken : refused);
  }
  EXPECT_EQ(fsync(file), 0);
  EXPECT_GT(taken, 0u);
  EXPECT_GT(refused, 0u);
}

// The room of a call to one file is promised to no other.
TEST_F(FuseWriteGate, what_write_took_for_several_files_is_stored) {
  NACRE_NEEDS_MEMORY_VOLUME();
  const File first = refused("first");
  memory().limit_room(16u << 20);
  std::vector<File> files;
  std::size_t taken = 0;
  for (int i = 0; i < 12; ++i) {
    files.emplace_back(path("f" + std::to_string(i)), O_RDWR | O_CREAT);
    if (write_errno(files.back(), 3u << 20) == 0) ++taken;
  }
  for (const File& file : files)
    EXPECT_EQ(fsync(file), 0);
  EXPECT_GT(taken, 1u);
  EXPECT_LT(taken, 6u);
}

TEST_F(FuseWriteGate, stays_closed_until_there_is_room) {
  NACRE_NEEDS_MEMORY_VOLUME();
  const File file = refused("f");
  for (int i = 0; i < 1000; ++i)
    ASSERT_EQ(write_errno(file, 64u << 10), ENOSPC) << i;
  memory().limit_room(plenty);
  EXPECT_EQ(write_errno(file), 0);
  EXPECT_EQ(fsync(file), 0);
  EXPECT_EQ(kept_size("f"), 14u);  // a hole of five bytes: those that were refused
}

TEST_F(FuseWriteGate, stays_closed_whatever_brings_the_kernel_attributes) {
  NACRE_NEEDS_MEMORY_VOLUME();
  const File file = refused("f");
  for (int i = 0; i < 50; ++i) {
    stat_of(path("f"));
    EXPECT_EQ(write_errno(file), ENOSPC) << "after stat";
    struct statx with_birth = {};
    EXPECT_EQ(statx(AT_FDCWD, path("f").c_str(), AT_STATX_FORCE_SYNC, STATX_BTIME, &with_birth), 0);
    EXPECT_EQ(write_errno(file), ENOSPC) << "after statx";
    File(path("beside"), O_WRONLY | O_CREAT).close();  // so that the listing is asked for anew
    DIR* listing = opendir(mount_point_.c_str());
    ASSERT_NE(listing, nullptr);
    while (readdir(listing) != nullptr) {
    }
    closedir(listing);
    EXPECT_EQ(unlink(path("beside").c_str()), 0);
    EXPECT_EQ(write_errno(file), ENOSPC) << "after a listing";
  }
}

// The kernel accepts the answers to these requests, whatever it was told before.
TEST_F(FuseWriteGate, is_closed_again_by_the_next_page_after_a_change) {
  NACRE_NEEDS_MEMORY_VOLUME();
  const File file = refused("f");
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(chmod(path("f").c_str(), i % 2 == 0 ? 0600 : 0644), 0);
    if (write_errno(file) == 0) {
      EXPECT_EQ(errno_of([&] { return fsync(file); }), ENOSPC);
    }
    EXPECT_EQ(write_errno(file), ENOSPC) << "after chmod";
    EXPECT_EQ(link(path("f").c_str(), path("g").c_str()), 0);
    if (write_errno(file) == 0) {
      EXPECT_EQ(errno_of([&] { return fsync(file); }), ENOSPC);
    }
    EXPECT_EQ(write_errno(file), ENOSPC) << "after link";
    EXPECT_EQ(unlink(path("g").c_str()), 0);
  }
}

TEST_F(FuseWriteGate, is_for_writers_alone) {
  NACRE_NEEDS_MEMORY_VOLUME();
  const File file = refused("f");
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(write_errno(file), ENOSPC);
    char text[64];
    EXPECT_EQ(pread(file, text, 4, 0), 4);
    EXPECT_GE(pread(file, text, sizeof text, 0), 4) << strerror(errno);  // past the end
    EXPECT_GE(lseek(file, 0, SEEK_END), 4) << strerror(errno);
    struct stat found = {};
    EXPECT_EQ(fstat(file, &found), 0);
    EXPECT_EQ(get(path("f")).substr(0, 4), "text");
    EXPECT_EQ(fsync(file), 0);
  }
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(chmod(path("f").c_str(), 0600 + i % 2), 0);
    EXPECT_GE(lseek(file, 0, SEEK_END), 4) << strerror(errno);
    EXPECT_EQ(get(path("f")).substr(0, 4), "text");
  }
  EXPECT_EQ(ftruncate(file, 0), 0);
  EXPECT_EQ(unlink(path("f").c_str()), 0);
}

// echo text >file on a full disk.
TEST_F(FuseWriteGate, is_closed_for_files_that_are_made_or_emptied_while_the_disk_is_full) {
  NACRE_NEEDS_MEMORY_VOLUME();
  put(path("old"), "text");
  ASSERT_EQ(fsync(File(path("old"), O_RDWR)), 0);
  const File first = refused("first");
  {
    const File file(path("new"), O_WRONLY | O_CREAT | O_TRUNC);
    struct stat found = {};
    EXPECT_EQ(fstat(file, &found), 0);  // as cp does before it writes
    EXPECT_EQ(write_errno(file), ENOSPC);
  }
  EXPECT_EQ(write_errno(File(path("old"), O_WRONLY | O_CREAT | O_TRUNC)), ENOSPC);
  EXPECT_EQ(write_errno(File(mount_point_, O_WRONLY | O_TMPFILE)), ENOSPC);
  for (const char* name : {"new", "old"}) {
    EXPECT_EQ(stat_of(path(name)).st_size, 0);
    // Other readers of the file get to its end.
    std::thread([&] {
      char text[8];
      EXPECT_EQ(read(File(path(name), O_RDONLY), text, sizeof text), 0) << strerror(errno);
    }).join();
  }
  memory().limit_room(plenty);
  EXPECT_EQ(write_errno(File(path("new"), O_WRONLY)), 0);
  EXPECT_EQ(get(path("new")), "wwwww");
}

// The kernel may not cache attributes of such a file, so readers at its end ask as writers do.
// These are the process that made the file, and its children that got it open.
TEST_F(FuseWriteGate, is_open_for_readers_of_a_file_that_was_made_while_the_disk_is_full) {
  NACRE_NEEDS_MEMORY_VOLUME();
  put(path("old"), "text");
  ASSERT_EQ(fsync(File(path("old"), O_RDWR)), 0);
  const File first = refused("first");
  char text[8];
  iovec part = {.iov_base = text, .iov_len = sizeof text};
  const auto expect_readable = [&](int file) {
    EXPECT_EQ(read(file, text, sizeof text), 0) << strerror(errno);
    EXPECT_EQ(pread(file, text, sizeof text, 0), 0) << strerror(errno);
    EXPECT_EQ(readv(file, &part, 1), 0) << strerror(errno);
    EXPECT_EQ(preadv2(file, &part, 1, 0, 0), 0) << strerror(errno);
    EXPECT_EQ(lseek(file, 0, SEEK_END), 0) << strerror(errno);
  };
  for (const char* name : {"new", "old"}) {
    const File file(path(name), O_RDWR | O_CREAT | O_TRUNC);
    expect_readable(file);
    EXPECT_EQ(write_errno(file), ENOSPC) << name;
    expect_readable(file);
    const pid_t child = fork();
    if (child == 0) _exit(read(file, text, sizeof text) == 0 ? 0 : 1);
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0) << name;
    EXPECT_EQ(write_errno(file), ENOSPC) << name;
  }
}

TEST_F(FuseWriteGate, of_an_immutable_file_follows_the_flag) {
  NACRE_NEEDS_MEMORY_VOLUME();
  put(path("f"), "text");
  const File file(path("f"), O_RDWR | O_APPEND);
  ASSERT_EQ(fsync(file), 0);
  const metadata::InodeNumber inode = inode_of(path("f"));
  ASSERT_TRUE(volume().set_flags(inode, metadata::inode_flag_immutable));
  EXPECT_EQ(write_errno(file), 0);
  EXPECT_EQ(errno_of([&] { return fsync(file); }), EPERM);
  EXPECT_EQ(write_errno(file), EPERM);
  EXPECT_EQ(write_errno(file), EPERM);
  ASSERT_TRUE(volume().set_flags(inode, 0));
  EXPECT_EQ(write_errno(file), 0);
  EXPECT_EQ(fsync(file), 0);
}

// A write to a mount with room costs no additional message.
TEST_F(FuseWriteGate, costs_nothing_where_there_is_room) {
  const File file(path("f"), O_WRONLY | O_CREAT | O_APPEND);
  ASSERT_EQ(write_errno(file), 0);
  EXPECT_EQ(fewest(
                0, [this] { return count(FUSE_GETATTR); },
                [&] {
                  for (int i = 0; i < 100; ++i)
                    ASSERT_EQ(write_errno(file), 0);
                }),
            0u);
}

}  // namespace

}  // namespace nacre::tests
