// SPDX-License-Identifier: Apache-2.0
// The blocks that stat shows of files that are open: bytes that the kernel still holds count,
// however they were written and whichever process looks. Programs that only write pay nothing for
// it.
#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "tests/mount/fuse_mount.h"

namespace nacre::tests {

namespace {

class FuseBlocks : public FuseMount {
 protected:
  static constexpr off_t block = 64 << 10;  // holes are multiples of it

  static off_t shown_bytes(int file) {
    struct stat shown = {};
    EXPECT_EQ(fstat(file, &shown), 0);
    return shown.st_blocks * 512;
  }
  off_t shown_bytes(std::string_view name) const { return stat_of(path(name)).st_blocks * 512; }
  // The bytes that st_blocks counts for this many bytes at the start of a file. The volume in
  // memory has whole blocks.
  off_t taken(off_t size) const {
    const off_t unit = has_memory_volume() ? block : 512;
    return (size + unit - 1) / unit * unit;
  }
  off_t shown_with_birth(std::string_view name) const {
    struct statx shown = {};
    EXPECT_EQ(statx(AT_FDCWD, path(name).c_str(), 0, STATX_BASIC_STATS | STATX_BTIME, &shown), 0);
    return static_cast<off_t>(shown.stx_blocks) * 512;
  }
};

class Mapping {
 public:
  Mapping(int file, off_t at, std::size_t size)
      : size_(size), bytes_(mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, at)) {
    EXPECT_NE(bytes_, MAP_FAILED);
  }
  ~Mapping() { unmap(bytes_, size_); }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  char* bytes() const { return static_cast<char*>(bytes_); }

 private:
  std::size_t size_;
  void* bytes_;
};

TEST_F(FuseBlocks, of_a_file_that_is_written_are_there_before_it_is_synced_and_after) {
  const File file(path("f"), O_RDWR | O_CREAT);
  EXPECT_EQ(shown_bytes(file), 0);
  const std::string megabyte(1 << 20, 'w');
  for (off_t size = 1; size <= 4; ++size) {
    ASSERT_EQ(write(file, megabyte.data(), megabyte.size()), ssize_t{1 << 20});
    EXPECT_EQ(shown_bytes(file), size << 20) << "written";
    EXPECT_EQ(shown_bytes("f"), size << 20) << "again, by its name";
    if (size % 2 == 0) {
      ASSERT_EQ(fsync(file), 0);
      EXPECT_EQ(shown_bytes(file), size << 20) << "synced";
    }
  }
}

TEST_F(FuseBlocks, are_there_after_fsync_where_nobody_looked_before) {
  const File file(path("f"), O_RDWR | O_CREAT);
  ASSERT_EQ(write(file, "x", 1), 1);
  ASSERT_EQ(fsync(file), 0);
  EXPECT_EQ(shown_bytes(file), taken(1));
}

TEST_F(FuseBlocks, of_each_of_many_small_writes_are_there) {
  const File file(path("f"), O_RDWR | O_CREAT);
  const std::string page(4096, 'w');
  for (off_t size = 4096; size <= 32 * 4096; size += 4096) {
    ASSERT_EQ(write(file, page.data(), page.size()), 4096);
    ASSERT_EQ(size % 8192 == 0 ? shown_with_birth("f") : shown_bytes(file), taken(size));
  }
}

TEST_F(FuseBlocks, of_a_mapping_are_there_before_it_is_synced) {
  const File file(path("f"), O_RDWR | O_CREAT);
  ASSERT_EQ(ftruncate(file, 8 * block), 0);
  EXPECT_EQ(shown_bytes(file), 0);
  const Mapping mapping(file, 0, 8 * block);
  std::memset(mapping.bytes(), 'm', block);
  EXPECT_EQ(shown_bytes(file), block);
  EXPECT_EQ(shown_bytes(file), block) << "again";
  std::memset(mapping.bytes() + 4 * block, 'm', block);
  EXPECT_EQ(shown_bytes(file), 2 * block);
  std::memset(mapping.bytes() + 6 * block, 'm', block);
  EXPECT_EQ(shown_with_birth("f"), 3 * block);
  ASSERT_EQ(msync(mapping.bytes(), 8 * block, MS_SYNC), 0);
  EXPECT_EQ(shown_bytes(file), 3 * block);
}

TEST_F(FuseBlocks, of_a_mapping_of_a_file_that_was_there_before) {
  {
    const File file(path("f"), O_RDWR | O_CREAT);
    ASSERT_EQ(ftruncate(file, 8 * block), 0);
    ASSERT_EQ(pwrite(file, std::string(block, 'w').data(), block, block), block);
  }
  EXPECT_EQ(shown_bytes("f"), block);
  EXPECT_EQ(shown_bytes("f"), block);
  const File file(path("f"), O_RDWR);
  const Mapping mapping(file, 4 * block, block);
  std::memset(mapping.bytes(), 'm', block);
  EXPECT_EQ(shown_bytes("f"), 2 * block);
  ASSERT_EQ(chmod(path("f").c_str(), 0600), 0);
  EXPECT_EQ(shown_bytes("f"), 2 * block);
  // Within and behind a hole, by a call.
  ASSERT_EQ(pwrite(file, std::string(block, 'w').data(), block, 6 * block), block);
  EXPECT_EQ(shown_bytes(file), 3 * block);
  ASSERT_EQ(pwrite(file, std::string(block, 'w').data(), block, 20 * block), block);
  EXPECT_EQ(shown_bytes(file), 4 * block);
}

TEST_F(FuseBlocks, go_with_what_is_punched_or_cut_off) {
  const File file(path("f"), O_RDWR | O_CREAT);
  ASSERT_EQ(pwrite(file, std::string(8 * block, 'w').data(), 8 * block, 0), 8 * block);
  EXPECT_EQ(shown_bytes(file), 8 * block);
  ASSERT_EQ(fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, block, 2 * block), 0);
  EXPECT_EQ(shown_bytes(file), 6 * block);
  ASSERT_EQ(ftruncate(file, 4 * block), 0);
  EXPECT_EQ(shown_bytes(file), 2 * block);
  ASSERT_EQ(ftruncate(file, 0), 0);
  EXPECT_EQ(shown_bytes(file), 0);
  ASSERT_EQ(pwrite(file, "x", 1, 0), 1);
  EXPECT_EQ(shown_bytes(file), taken(1));
}

TEST_F(FuseBlocks, of_a_file_that_is_written_over_are_no_more_than_it_has) {
  const File file(path("f"), O_RDWR | O_CREAT);
  const std::string content(4 * block, 'w');
  for (int round = 0; round < 3; ++round) {
    ASSERT_EQ(pwrite(file, content.data(), content.size(), 0), 4 * block);
    EXPECT_EQ(shown_bytes(file), 4 * block) << "written";
    if (round == 1) continue;
    ASSERT_EQ(fsync(file), 0);
    EXPECT_EQ(shown_bytes(file), 4 * block) << "synced";
  }
}

// With a file's last page in the kernel's cache SEEK_DATA, SEEK_HOLE and st_blocks say the same.
TEST_F(FuseBlocks, agree_with_what_is_sought) {
  const File file(path("f"), O_RDWR | O_CREAT);
  ASSERT_EQ(ftruncate(file, 16 * block), 0);
  const std::string piece(block, 'w');
  for (off_t at = 2; at < 16; at += 4)
    ASSERT_EQ(pwrite(file, piece.data(), piece.size(), at * block), block);
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(shown_bytes(file), 4 * block);
    off_t data = 0, sum = 0;
    while ((data = lseek(file, data, SEEK_DATA)) >= 0) {
      const off_t hole = lseek(file, data, SEEK_HOLE);
      ASSERT_GT(hole, data);
      sum += hole - data;
      data = hole;
    }
    EXPECT_EQ(sum, 4 * block);
    ASSERT_EQ(fsync(file), 0);
  }
}

TEST_F(FuseBlocks, of_direct_writes_are_there) {
  const File file(path("f"), O_RDWR | O_CREAT | O_DIRECT);
  ASSERT_GE(file, 0);
  void* bytes = nullptr;
  ASSERT_EQ(posix_memalign(&bytes, 4096, block), 0);
  std::memset(bytes, 'd', block);
  for (off_t count = 1; count <= 3; ++count) {
    ASSERT_EQ(pwrite(file, bytes, block, 2 * (count - 1) * block), block);
    EXPECT_EQ(shown_bytes(file), count * block);
    EXPECT_EQ(shown_bytes("f"), count * block);
  }
  std::free(bytes);
}

// Readers at the end of such a file ask the kernel's question of a writer.
TEST_F(FuseBlocks, of_a_file_with_holes_cost_no_reader_his_answer_on_a_full_disk) {
  NACRE_NEEDS_MEMORY_VOLUME();
  const File file(path("f"), O_RDWR | O_CREAT);
  ASSERT_EQ(ftruncate(file, 4 * block), 0);
  ASSERT_EQ(pwrite(file, "text", 4, block), 4);
  ASSERT_EQ(fsync(file), 0);
  {
    const File full(path("full"), O_RDWR | O_CREAT);
    ASSERT_EQ(fsync(full), 0);
    memory().limit_room(0);
    ASSERT_EQ(pwrite(full, "text", 4, 0), 4);
    ASSERT_EQ(fsync(full), -1);
  }
  std::string text(2 * block, ' ');
  const auto expect_readable = [&](int which, int round) {
    EXPECT_EQ(pread(which, text.data(), text.size(), 3 * block), block) << round;
    EXPECT_EQ(pread(which, text.data(), text.size(), 4 * block), 0) << round;
    EXPECT_EQ(lseek(which, 0, SEEK_END), 4 * block) << round;
  };
  for (int round = 0; round < 10; ++round) {
    EXPECT_EQ(shown_bytes("f"), has_memory_volume() ? block : 4);
    expect_readable(file, round);
    expect_readable(File(path("f"), O_RDONLY), round);
    EXPECT_EQ(chmod(path("f").c_str(), 0600 + round % 2), 0);
    expect_readable(file, round);
    // Writers of the file are refused, perhaps not at once.
    if (pwrite(file, "more", 4, 0) == 4) {
      EXPECT_EQ(fsync(file), -1);
    }
    expect_readable(file, round);
  }
}

TEST_F(FuseBlocks, go_with_the_last_piece_that_is_punched_or_zeroed) {
  if (has_memory_volume()) GTEST_SKIP() << "the volume in memory gives whole blocks back";
  constexpr int keep = FALLOC_FL_KEEP_SIZE;
  for (const int mode : {FALLOC_FL_PUNCH_HOLE | keep, FALLOC_FL_ZERO_RANGE | keep}) {
    const File file(path("f"), O_RDWR | O_CREAT | O_TRUNC);
    ASSERT_EQ(pwrite(file, std::string(4 * block, 'w').data(), 4 * block, 0), 4 * block);
    ASSERT_EQ(fsync(file), 0);
    for (off_t at = 0; at < 4 * block; at += 4096)
      ASSERT_EQ(fallocate(file, mode, at, 4096), 0);
    ASSERT_EQ(fsync(file), 0);
    EXPECT_EQ(shown_bytes(file), 0) << mode;
    EXPECT_EQ(errno_of([&] { return static_cast<int>(lseek(file, 0, SEEK_DATA)); }), ENXIO);
    ASSERT_EQ(fallocate(file, mode, 4096, block), 0);  // within a hole
    EXPECT_EQ(shown_bytes(file), 0) << mode;
    EXPECT_EQ(get(path("f")), std::string(4 * block, '\0'));
  }
}

TEST_F(FuseBlocks, cost_writers_nothing_whom_nobody_looks_at) {
  const File file(path("f"), O_RDWR | O_CREAT);
  const File sparse(path("s"), O_RDWR | O_CREAT);
  ASSERT_EQ(ftruncate(sparse, 64 * block), 0);
  ASSERT_EQ(write(file, "x", 1), 1);
  ASSERT_EQ(write(sparse, "x", 1), 1);
  EXPECT_EQ(fewest(
                0,
                [this] {
                  return count({FUSE_GETATTR, FUSE_GETXATTR, fs::protocol::opcode_statx});
                },
                [&] {
                  for (off_t i = 0; i < 200; ++i) {
                    ASSERT_EQ(write(file, "x", 1), 1);
                    ASSERT_EQ(pwrite(sparse, "x", 1, i * 4096), 1);
                  }
                }),
            0u);
}

TEST_F(FuseBlocks, are_right_when_many_look_while_one_writes) {
  const File file(path("f"), O_RDWR | O_CREAT);
  std::vector<std::thread> watchers;
  std::atomic<bool> over{false};
  std::atomic<int> wrong{0};
  for (int t = 0; t < 3; ++t) {
    watchers.emplace_back([&] {
      while (!over) {
        struct stat shown = {};
        if (stat(path("f").c_str(), &shown) != 0 || shown.st_size < 0) ++wrong;
      }
    });
  }
  const std::string piece(10'000, 'w');
  for (int i = 0; i < 100; ++i)
    ASSERT_EQ(write(file, piece.data(), piece.size()), ssize_t{10'000});
  over = true;
  for (std::thread& watcher : watchers)
    watcher.join();
  EXPECT_EQ(wrong, 0);
  ASSERT_EQ(fsync(file), 0);
  EXPECT_GE(shown_bytes(file), 1'000'000);
  ASSERT_EQ(write(file, piece.data(), piece.size()), ssize_t{10'000});
  EXPECT_GE(shown_bytes(file), 1'010'000);
}

class FuseBlocksWithoutXattrs : public FuseBlocks {
  fs::FuseOptions options() const override {
    fs::FuseOptions options = FuseBlocks::options();
    options.no_xattr = true;
    return options;
  }
};

// The kernel asks for no capability there, and the daemon says "forget" behind its answer to the
// writer, not before.
TEST_F(FuseBlocksWithoutXattrs, of_a_file_that_was_just_made_or_emptied_are_there_in_a_moment) {
  for (const int how : {O_CREAT, O_TRUNC}) {
    const File file(path("f"), O_RDWR | how);
    EXPECT_EQ(shown_bytes(file), 0);
    ASSERT_EQ(write(file, "x", 1), 1);
    while (shown_bytes(file) != taken(1))
      std::this_thread::yield();
    EXPECT_EQ(shown_bytes("f"), taken(1)) << how;
    ASSERT_EQ(fsync(file), 0);
    EXPECT_EQ(shown_bytes(file), taken(1)) << how;
  }
}

}  // namespace

}  // namespace nacre::tests
