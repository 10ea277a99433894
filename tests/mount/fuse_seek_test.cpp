// SPDX-License-Identifier: Apache-2.0
// SEEK_HOLE and SEEK_DATA on files that are being written.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>

#include "tests/mount/fuse_mount.h"

namespace nacre::tests {

namespace {

class FuseSeek : public FuseMount {
 protected:
  static constexpr off_t block = 64 << 10;

  static void append(const File& file, std::size_t size) {
    const std::string bytes(size, 'b');
    ASSERT_EQ(write(file, bytes.data(), size), static_cast<ssize_t>(size));
  }
};

TEST_F(FuseSeek, the_hole_at_the_end_is_where_the_kernels_pages_end) {
  const File file(path("f"), O_RDWR | O_CREAT);
  append(file, 2 * block);
  ASSERT_EQ(fsync(file), 0);
  append(file, 100'000);
  EXPECT_EQ(lseek(file, 0, SEEK_HOLE), 2 * block + 100'000);
  EXPECT_EQ(lseek(file, block + 5, SEEK_HOLE), 2 * block + 100'000);
  EXPECT_EQ(errno_of([&] { return lseek(file, 2 * block + 100'000, SEEK_HOLE); }), ENXIO);
}

TEST_F(FuseSeek, a_file_that_was_never_synced_ends_where_it_ends) {
  const File file(path("f"), O_RDWR | O_CREAT);
  append(file, 70'000);
  EXPECT_EQ(lseek(file, 0, SEEK_HOLE), 70'000);
}

// Programs take st_blksize for the size of blocks, and expect a hole in each that was never
// written.
TEST_F(FuseSeek, data_and_holes_are_told_from_each_other_in_blocks) {
  const File file(path("f"), O_RDWR | O_CREAT);
  struct stat status {};
  ASSERT_EQ(fstat(file, &status), 0);
  const off_t unit = status.st_blksize;
  ASSERT_GE(unit, 4096);
  ASSERT_EQ(ftruncate(file, 102 * unit), 0);
  const std::string bytes(static_cast<std::size_t>(unit), 'b');
  for (const off_t at : {10 * unit, 100 * unit})
    ASSERT_EQ(pwrite(file, bytes.data(), unit, at), unit);
  for (int synced = 0; synced < 2; ++synced) {
    SCOPED_TRACE(synced);
    EXPECT_EQ(lseek(file, 0, SEEK_HOLE), 0);
    EXPECT_EQ(lseek(file, 1, SEEK_HOLE), 1);
    EXPECT_EQ(lseek(file, 0, SEEK_DATA), 10 * unit);
    EXPECT_EQ(lseek(file, 10 * unit, SEEK_HOLE), 11 * unit);
    EXPECT_EQ(lseek(file, 11 * unit, SEEK_DATA), 100 * unit);
    EXPECT_EQ(lseek(file, 100 * unit, SEEK_HOLE), 101 * unit);
    ASSERT_EQ(fsync(file), 0);
  }
  // A single byte makes no data of the blocks before its own.
  const File small(path("g"), O_RDWR | O_CREAT);
  ASSERT_EQ(pwrite(small, "b", 1, unit), 1);
  EXPECT_EQ(lseek(small, 0, SEEK_DATA), unit);
}

// An archiver reads a sparse file while a program fills it.
TEST_F(FuseSeek, holes_that_fill_up_to_the_end_leave_the_one_at_the_end) {
  const File file(path("f"), O_RDWR | O_CREAT);
  ASSERT_EQ(ftruncate(file, 8 * block), 0);
  const std::string bytes(static_cast<std::size_t>(5 * block), 'b');
  ASSERT_EQ(pwrite(file, bytes.data(), block, 7 * block), block);
  ASSERT_EQ(pwrite(file, bytes.data(), block, block), block);
  ASSERT_EQ(fsync(file), 0);
  ASSERT_EQ(pwrite(file, bytes.data(), 5 * block, 2 * block), 5 * block);
  EXPECT_EQ(lseek(file, 0, SEEK_DATA), block);
  EXPECT_EQ(lseek(file, block, SEEK_HOLE), 8 * block);
}

TEST_F(FuseSeek, below_the_size_it_finds_something_while_the_file_grows) {
  const File file(path("f"), O_RDWR | O_CREAT | O_APPEND);
  append(file, 1000);
  std::atomic<bool> done{false};
  std::thread writer([&] {
    const File own(path("f"), O_WRONLY | O_APPEND);
    const std::string line(999, 'l');
    for (int i = 0; i < 20'000 && !done; ++i)
      ASSERT_EQ(write(own, line.data(), line.size()), static_cast<ssize_t>(line.size()));
  });
  for (int i = 0; i < 200; ++i) {
    const off_t size = stat_of(path("f")).st_size;
    const off_t hole = lseek(file, 0, SEEK_HOLE);
    ASSERT_GE(hole, size) << strerror(errno);
    ASSERT_EQ(lseek(file, 0, SEEK_DATA), 0) << strerror(errno);
  }
  done = true;
  writer.join();
}

}  // namespace

}  // namespace nacre::tests
