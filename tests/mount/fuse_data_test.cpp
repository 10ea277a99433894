// SPDX-License-Identifier: Apache-2.0
// File content through the kernel: truncating, holes, copying, mapping, making durable, errors.
#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <new>
#include <vector>

#include "tests/mount/fuse_mount.h"

namespace nacre::tests {

namespace {

class FuseData : public FuseMount {
 protected:
  // The content that the volume holds, whatever the kernel has cached.
  std::string kept(std::string_view name) {
    const metadata::InodeNumber inode = inode_of(path(name));
    Bytes bytes(volume().attributes(inode)->size);
    EXPECT_TRUE(volume().read(inode, 0, bytes));
    return std::string(as_text(bytes));
  }
};

constexpr off_t block = 64 << 10;  // of the volume in memory: holes are multiples of it

TEST_F(FuseData, truncating_at_open_drops_the_old_bytes_for_good) {
  put(path("f"), std::string(10'000, 'o'));
  ASSERT_EQ(fsync(File(path("f"), O_RDWR)), 0);
  File(path("f"), O_WRONLY | O_TRUNC).close();
  EXPECT_EQ(stat_of(path("f")).st_size, 0);
  EXPECT_EQ(kept("f"), "");
  ASSERT_EQ(truncate(path("f").c_str(), 10'000), 0);
  EXPECT_EQ(get(path("f")), std::string(10'000, '\0'));
}

TEST_F(FuseData, shrinking_and_growing_shows_zeros) {
  put(path("f"), std::string(10'000, 'o'));
  ASSERT_EQ(truncate(path("f").c_str(), 5'000), 0);
  ASSERT_EQ(truncate(path("f").c_str(), 10'000), 0);
  EXPECT_EQ(get(path("f")), std::string(5'000, 'o') + std::string(5'000, '\0'));
}

TEST_F(FuseData, seeking_sees_pages_that_the_kernel_still_holds) {
  const File file(path("f"), O_RDWR | O_CREAT);
  ASSERT_EQ(ftruncate(file, 32 * block), 0);
  EXPECT_EQ(errno_of([&] { return static_cast<int>(lseek(file, 0, SEEK_DATA)); }), ENXIO);
  ASSERT_EQ(pwrite(file, "dirty", 5, 8 * block), 5);
  EXPECT_EQ(lseek(file, 0, SEEK_DATA), 8 * block);
  EXPECT_EQ(lseek(file, 0, SEEK_HOLE), 0);
  EXPECT_EQ(lseek(file, 8 * block, SEEK_HOLE), 9 * block);
  // A hole that is none any more, right behind data.
  ASSERT_EQ(pwrite(file, "dirty", 5, 9 * block), 5);
  EXPECT_EQ(lseek(file, 8 * block, SEEK_HOLE), 10 * block);
  // Past the size that the volume knows.
  ASSERT_EQ(pwrite(file, "dirty", 5, 40 * block), 5);
  EXPECT_EQ(lseek(file, 10 * block, SEEK_DATA), 40 * block);
  EXPECT_EQ(lseek(file, 40 * block, SEEK_HOLE), 40 * block + 5);
  EXPECT_EQ(errno_of([&] { return static_cast<int>(lseek(file, 41 * block, SEEK_DATA)); }), ENXIO);
  // A page that only a mapping has written to.
  void* mapped = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 20 * block);
  ASSERT_NE(mapped, MAP_FAILED);
  std::memcpy(mapped, "mapped", 6);
  EXPECT_EQ(lseek(file, 10 * block, SEEK_DATA), 20 * block);
  unmap(mapped, 4096);
}

TEST_F(FuseData, seeking_leaves_data_in_the_kernels_cache) {
  put(path("f"), std::string(2 * block, 'd'));
  const File file(path("f"), O_RDWR);
  ASSERT_EQ(ftruncate(file, 4 * block), 0);
  ASSERT_EQ(fsync(file), 0);
  // Otherwise the kernel's read-ahead asks for the rest of the file at any time.
  ASSERT_EQ(posix_fadvise(file, 0, 0, POSIX_FADV_RANDOM), 0);
  std::string content(2 * block, '\0');
  ASSERT_EQ(pread(file, content.data(), content.size(), 0), 2 * block);
  const auto seek_and_read = [&] {
    EXPECT_EQ(lseek(file, 0, SEEK_HOLE), 2 * block);
    EXPECT_EQ(lseek(file, 0, SEEK_DATA), 0);
    ASSERT_EQ(pread(file, content.data(), content.size(), 0), 2 * block);
  };
  EXPECT_EQ(fewest(
                0, [this] { return count(FUSE_READ); }, seek_and_read),
            0u);
}

TEST_F(FuseData, many_seeks_at_once_all_get_answers) {
  const File file(path("f"), O_RDWR | O_CREAT);
  for (off_t i = 0; i < 64; i += 2)
    ASSERT_EQ(pwrite(file, "x", 1, i * block), 1);
  std::atomic<int> wrong{0};
  std::vector<std::thread> seekers;
  for (int t = 0; t < 8; ++t) {
    seekers.emplace_back([&, t] {
      const File own(path("f"), O_RDWR);
      for (off_t i = 0; i < 62; i += 2) {
        if (lseek(own, (i + t % 2) * block, SEEK_DATA) != (i + 2 * (t % 2)) * block) ++wrong;
      }
    });
  }
  for (std::thread& seeker : seekers)
    seeker.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(FuseData, allocating_and_punching) {
  put(path("f"), std::string(3 * block, 'd'));
  const File file(path("f"), O_RDWR);
  ASSERT_EQ(fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, block, block), 0);
  const std::string punched =
      std::string(block, 'd') + std::string(block, '\0') + std::string(block, 'd');
  EXPECT_EQ(get(path("f")), punched);
  EXPECT_EQ(lseek(file, 0, SEEK_HOLE), block);
  EXPECT_EQ(lseek(file, block, SEEK_DATA), 2 * block);
  ASSERT_EQ(fallocate(file, FALLOC_FL_ZERO_RANGE, 10, 10), 0);
  EXPECT_EQ(get(path("f")).substr(8, 14), "dd" + std::string(10, '\0') + "dd");
  ASSERT_EQ(fallocate(file, FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE, 3 * block, block), 0);
  EXPECT_EQ(stat_of(path("f")).st_size, 3 * block);
  ASSERT_EQ(fallocate(file, FALLOC_FL_KEEP_SIZE, 3 * block, block), 0);
  EXPECT_EQ(stat_of(path("f")).st_size, 3 * block);
  ASSERT_EQ(fallocate(file, 0, 3 * block, block), 0);
  EXPECT_EQ(stat_of(path("f")).st_size, 4 * block);
  ASSERT_EQ(fallocate(file, FALLOC_FL_ZERO_RANGE, 4 * block, block), 0);
  EXPECT_EQ(stat_of(path("f")).st_size, 5 * block);
  EXPECT_EQ(get(path("f")).substr(3 * block), std::string(2 * block, '\0'));
}

TEST_F(FuseData, the_kernel_itself_refuses_the_other_ways_to_allocate) {
  put(path("f"), std::string(3 * block, 'd'));
  const File file(path("f"), O_RDWR);
  const std::uint64_t before = count(FUSE_FALLOCATE);
  for (const int mode :
       {FALLOC_FL_COLLAPSE_RANGE, FALLOC_FL_INSERT_RANGE, FALLOC_FL_UNSHARE_RANGE}) {
    EXPECT_EQ(errno_of([&] { return fallocate(file, mode, 0, block); }), EOPNOTSUPP);
  }
  EXPECT_EQ(count(FUSE_FALLOCATE), before);
}

TEST_F(FuseData, copying_inside_the_daemon_sees_dirty_pages_on_both_sides) {
  put(path("from"), std::string(3 * block, 'o'));
  put(path("to"), std::string(3 * block, 't'));
  const File from(path("from"), O_RDWR), to(path("to"), O_RDWR);
  ASSERT_EQ(pwrite(from, "FRESH", 5, block), 5);
  ASSERT_EQ(pwrite(to, "KEPT", 4, 0), 4);
  ASSERT_EQ(pwrite(to, "LOST", 4, block), 4);
  const std::uint64_t before = count(FUSE_COPY_FILE_RANGE);
  loff_t in = block, out = block;
  ASSERT_EQ(copy_file_range(from, &in, to, &out, block, 0), block);
  EXPECT_EQ(count(FUSE_COPY_FILE_RANGE), before + 1);
  const std::string wanted = "KEPT" + std::string(block - 4, 't') + "FRESH" +
                             std::string(block - 5, 'o') + std::string(block, 't');
  EXPECT_EQ(get(path("to")), wanted);
  // Up to the source's end, and into growth.
  in = 2 * block, out = 3 * block;
  EXPECT_EQ(copy_file_range(from, &in, to, &out, 10 * block, 0), block);
  EXPECT_EQ(stat_of(path("to")).st_size, 4 * block);
  EXPECT_EQ(get(path("to")).substr(3 * block), std::string(block, 'o'));
  in = 5 * block;
  EXPECT_EQ(copy_file_range(from, &in, to, &out, block, 0), 0);
}

TEST_F(FuseData, mapped_pages_and_calls_agree) {
  put(path("f"), std::string(8192, 'f'));
  const File file(path("f"), O_RDWR);
  char* mapped =
      static_cast<char*>(mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
  ASSERT_NE(mapped, MAP_FAILED);
  ASSERT_EQ(pwrite(file, "call", 4, 100), 4);
  EXPECT_EQ(std::string(mapped + 100, 4), "call");
  std::memcpy(mapped + 5000, "page", 4);
  char back[4];
  ASSERT_EQ(pread(file, back, 4, 5000), 4);
  EXPECT_EQ(std::string(back, 4), "page");
  ASSERT_EQ(msync(mapped, 8192, MS_SYNC), 0);
  EXPECT_EQ(kept("f").substr(5000, 4), "page");
  unmap(mapped, 8192);
}

TEST_F(FuseData, direct_and_cached_access_agree) {
  alignas(4096) static char page[4096];
  std::memset(page, 'p', sizeof page);
  const File cached(path("f"), O_RDWR | O_CREAT);
  const File direct(path("f"), O_RDWR | O_DIRECT);
  ASSERT_GE(direct, 0);
  ASSERT_EQ(write(cached, "cached", 6), 6);
  ASSERT_EQ(pwrite(direct, page, sizeof page, 4096), 4096);
  EXPECT_EQ(stat_of(path("f")).st_size, 8192);
  ASSERT_EQ(pread(direct, page, sizeof page, 0), 4096);
  EXPECT_EQ(std::string(page, 6), "cached");
  char back[2];
  ASSERT_EQ(pread(cached, back, 2, 4096), 2);
  EXPECT_EQ(std::string(back, 2), "pp");
}

TEST_F(FuseData, files_may_be_sparse_and_large) {
  const File file(path("f"), O_RDWR | O_CREAT);
  const off_t far = off_t{5} << 40;
  ASSERT_EQ(pwrite(file, "far", 3, far), 3);
  EXPECT_EQ(stat_of(path("f")).st_size, far + 3);
  char back[3];
  ASSERT_EQ(pread(file, back, 3, far), 3);
  EXPECT_EQ(std::string(back, 3), "far");
  EXPECT_EQ(lseek(file, 0, SEEK_DATA), far);
  EXPECT_LT(stat_of(path("f")).st_blocks, 1024);
}

TEST_F(FuseData, appends_of_several_files_do_not_overwrite_each_other) {
  constexpr int writer_count = 4, line_count = 200;
  std::vector<std::thread> writers;
  for (int w = 0; w < writer_count; ++w) {
    writers.emplace_back([this, w] {
      const File file(path("log"), O_WRONLY | O_APPEND | O_CREAT);
      const std::string line(99, static_cast<char>('a' + w));
      for (int i = 0; i < line_count; ++i) {
        ASSERT_EQ(write(file, (line + "\n").data(), 100), 100);
      }
    });
  }
  for (std::thread& writer : writers)
    writer.join();
  const std::string content = get(path("log"));
  ASSERT_EQ(content.size(), 100u * writer_count * line_count);
  for (std::size_t at = 0; at < content.size(); at += 100) {
    EXPECT_EQ(content.substr(at, 99), std::string(99, content[at]));
  }
}

TEST_F(FuseData, files_without_a_name_live_while_they_are_open) {
  const std::uint64_t inodes = inode_count();
  {
    File file(path("f"), O_RDWR | O_CREAT);
    ASSERT_EQ(write(file, "still here", 10), 10);
    ASSERT_EQ(unlink(path("f").c_str()), 0);
    ASSERT_EQ(fsync(file), 0);
    char back[10];
    ASSERT_EQ(pread(file, back, 10, 0), 10);
    EXPECT_EQ(std::string(back, 10), "still here");
    EXPECT_EQ(inode_count(), inodes + 1);
  }
  // FORGET comes on its own time.
  for (int i = 0; i < 500 && inode_count() != inodes; ++i)
    usleep(10'000);
  EXPECT_EQ(inode_count(), inodes);
}

TEST_F(FuseData, fsync_reaches_the_volume_and_brings_dirty_pages_first) {
  NACRE_NEEDS_MEMORY_VOLUME();
  const File file(path("f"), O_RDWR | O_CREAT);
  ASSERT_EQ(write(file, "durable", 7), 7);
  const std::uint64_t before = memory().sync_count();
  ASSERT_EQ(fsync(file), 0);
  EXPECT_EQ(memory().sync_count(), before + 1);
  EXPECT_EQ(kept("f"), "durable");
  ASSERT_EQ(fdatasync(file), 0);
  EXPECT_EQ(memory().sync_count(), before + 2);
  ASSERT_EQ(fsync(File(mount_point_, O_RDONLY | O_DIRECTORY)), 0);
  EXPECT_EQ(memory().sync_count(), before + 3);
  const File synchronous(path("g"), O_WRONLY | O_CREAT | O_SYNC);
  ASSERT_EQ(write(synchronous, "x", 1), 1);
  EXPECT_EQ(memory().sync_count(), before + 4);
}

TEST_F(FuseData, the_volume_can_call_for_dirty_pages) {
  NACRE_NEEDS_MEMORY_VOLUME();
  const File file(path("f"), O_RDWR | O_CREAT);
  const std::string content(300'000, 'd');
  ASSERT_EQ(write(file, content.data(), content.size()), 300'000);
  ASSERT_TRUE(memory().kernel_cache().is_set());
  memory().kernel_cache().write_out(inode_of(path("f")));
  EXPECT_EQ(kept("f"), content);
}

TEST_F(FuseData, errors_of_the_volume_become_errno) {
  NACRE_NEEDS_MEMORY_VOLUME();
  put(path("f"), std::string(10'000, 'x'));
  const metadata::InodeNumber inode = inode_of(path("f"));
  const File file(path("f"), O_RDONLY | O_DIRECT);
  const auto read_errno = [&] {
    alignas(4096) static char page[4096];
    return errno_of([&] { return static_cast<int>(pread(file, page, sizeof page, 0)); });
  };
  ASSERT_EQ(read_errno(), 0);
  for (const ErrorCode code : {ErrorCode::corrupt, ErrorCode::tampered, ErrorCode::missing,
                               ErrorCode::rolled_back, ErrorCode::io}) {
    memory().before_reads(inode, [code]() -> Result<> { return fail(code, "forced by the test"); });
    EXPECT_EQ(read_errno(), EIO);
  }
  memory().before_reads(inode, []() -> Result<> { throw std::bad_alloc(); });
  EXPECT_EQ(read_errno(), ENOMEM);
  memory().before_reads(inode,
                        []() -> Result<> { throw std::runtime_error("forced by the test"); });
  EXPECT_EQ(read_errno(), EIO);
  memory().before_reads(inode, []() -> Result<> { throw 7; });
  EXPECT_EQ(read_errno(), EIO);
  memory().before_reads(inode, {});
  EXPECT_EQ(read_errno(), 0);
}

}  // namespace

}  // namespace nacre::tests
