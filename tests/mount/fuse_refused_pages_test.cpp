// SPDX-License-Identifier: Apache-2.0
// Pages that the kernel took from programs and that the volume refuses when they are written back.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "tests/mount/fuse_mount.h"

namespace nacre::tests {

namespace {

class FuseRefusedPages : public FuseMount {
 protected:
  static constexpr std::size_t size = 4u << 20;
  static constexpr std::uint64_t plenty = 1ull << 40;

  void SetUp() override {
    FuseMount::SetUp();
    if (!session_ || !has_memory_volume()) return;
    put(path("f"), std::string(size, 'A'));
    ASSERT_EQ(fsync(File(path("f"), O_RDWR)), 0);
    put(path("other"), "other");
  }
  static void overwrite(const File& file, char content, off_t offset = 0) {
    const std::string bytes(size, content);
    ASSERT_EQ(pwrite(file, bytes.data(), size, offset), static_cast<ssize_t>(size));
  }
  static std::string shown(const std::string& name) {
    const File file(name, O_RDONLY);
    std::string bytes(size, '\0');
    const ssize_t count = pread(file, bytes.data(), size, 0);
    EXPECT_GE(count, 0);
    bytes.resize(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    return bytes;
  }
  std::string kept(std::string_view name) {
    const metadata::InodeNumber inode = inode_of(path(name));
    Bytes bytes(volume().attributes(inode)->size);
    EXPECT_TRUE(volume().read(inode, 0, bytes));
    return std::string(as_text(bytes));
  }
  // Returns when the daemon has told the kernel all that it has begun to tell it: the answer comes
  // from the thread that does that.
  void wait_for_the_kernel() {
    const File other(path("other"), O_RDONLY);
    EXPECT_EQ(lseek(other, 0, SEEK_HOLE), 5);
  }
  static int sync_errno(const File& file) {
    return errno_of([&] { return fsync(file); });
  }
};

TEST_F(FuseRefusedPages, are_not_shown_as_content) {
  NACRE_NEEDS_MEMORY_VOLUME();
  const File file(path("f"), O_RDWR);
  memory().limit_room(0);
  overwrite(file, 'B');
  EXPECT_EQ(sync_errno(file), ENOSPC);
  wait_for_the_kernel();
  const File later(path("f"), O_RDWR);
  EXPECT_EQ(sync_errno(later), 0);
  EXPECT_TRUE(shown(path("f")) == std::string(size, 'A'));
  EXPECT_TRUE(kept("f") == std::string(size, 'A'));
}

TEST_F(FuseRefusedPages, go_for_any_error) {
  NACRE_NEEDS_MEMORY_VOLUME();
  for (const ErrorCode code :
       {ErrorCode::io, ErrorCode::read_only, ErrorCode::out_of_memory, ErrorCode::not_permitted}) {
    const File file(path("f"), O_RDWR);
    memory().before_writes(inode_of(path("f")), [code]() -> Result<> { return fail(code); });
    overwrite(file, 'B');
    EXPECT_EQ(sync_errno(file), fs::to_errno(code));
    wait_for_the_kernel();
    EXPECT_TRUE(shown(path("f")) == std::string(size, 'A'));
    memory().before_writes(inode_of(path("f")), {});
    // The next write is refused as well: the file cannot know whether its writer saw what fsync
    // said.
    EXPECT_EQ(errno_of([&] { return static_cast<int>(pwrite(file, "A", 1, 0)); }),
              fs::to_errno(code));
    EXPECT_EQ(pwrite(file, "A", 1, 0), 1);
    EXPECT_EQ(sync_errno(file), 0);
  }
}

TEST_F(FuseRefusedPages, are_told_to_each_who_had_the_file_open) {
  NACRE_NEEDS_MEMORY_VOLUME();
  const File writer(path("f"), O_RDWR), holder(path("f"), O_RDONLY);
  memory().limit_room(0);
  overwrite(writer, 'B');
  EXPECT_EQ(sync_errno(writer), ENOSPC);
  EXPECT_EQ(sync_errno(holder), ENOSPC);
  wait_for_the_kernel();
  EXPECT_EQ(sync_errno(writer), 0);
  EXPECT_EQ(sync_errno(holder), 0);
}

TEST_F(FuseRefusedPages, of_one_part_leave_the_others_alone) {
  NACRE_NEEDS_MEMORY_VOLUME();
  const File file(path("f"), O_RDWR);
  ASSERT_EQ(pwrite(file, "stored", 6, size / 2), 6);
  ASSERT_EQ(fsync(file), 0);
  memory().limit_room(0);
  ASSERT_EQ(pwrite(file, "refused", 7, 10), 7);
  EXPECT_EQ(sync_errno(file), ENOSPC);
  wait_for_the_kernel();
  std::string wanted(size, 'A');
  wanted.replace(size / 2, 6, "stored");
  EXPECT_TRUE(shown(path("f")) == wanted);
}

TEST_F(FuseRefusedPages, of_a_mapping_go_and_can_be_written_again) {
  NACRE_NEEDS_MEMORY_VOLUME();
  const File file(path("f"), O_RDWR);
  char* mapped =
      static_cast<char*>(mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
  ASSERT_NE(mapped, MAP_FAILED);
  memory().limit_room(0);
  std::memset(mapped, 'B', size);
  EXPECT_EQ(errno_of([&] { return msync(mapped, size, MS_SYNC); }), ENOSPC);
  wait_for_the_kernel();
  EXPECT_TRUE(std::string(mapped, size) == std::string(size, 'A'));
  memory().limit_room(plenty);
  std::memset(mapped, 'C', size);
  EXPECT_EQ(msync(mapped, size, MS_SYNC), 0);
  EXPECT_TRUE(kept("f") == std::string(size, 'C'));
  unmap(mapped, size);
}

TEST_F(FuseRefusedPages, that_are_dirty_again_are_written_not_lost) {
  NACRE_NEEDS_MEMORY_VOLUME();
  const File file(path("f"), O_RDWR);
  char* mapped =
      static_cast<char*>(mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
  ASSERT_NE(mapped, MAP_FAILED);
  for (int round = 0; round < 10; ++round) {
    const char content = static_cast<char>('a' + round % 26);
    memory().limit_room(0);
    std::memset(mapped, 'B', size);
    EXPECT_EQ(errno_of([&] { return msync(mapped, size, MS_SYNC); }), ENOSPC);
    memory().limit_room(plenty);
    // Writes the pages while the daemon has just begun to make the kernel drop them.
    for (std::size_t at = 0; at < size; at += 4096)
      mapped[at] = content;
    wait_for_the_kernel();  // until then every sync reports the refusal
    EXPECT_EQ(msync(mapped, size, MS_SYNC), 0);
    const std::string now = kept("f");
    for (std::size_t at = 0; at < size; at += 4096) {
      ASSERT_EQ(mapped[at], content) << "round " << round << ", " << at;
      ASSERT_EQ(now[at], content) << "round " << round << ", " << at;
    }
  }
  unmap(mapped, size);
}

TEST_F(FuseRefusedPages, behind_the_end_leave_no_longer_file_once_it_is_closed) {
  NACRE_NEEDS_MEMORY_VOLUME();
  ASSERT_EQ(mkdir(path("d").c_str(), 0755), 0);
  put(path("d/new"), "");
  {
    const File file(path("d/new"), O_RDWR);
    memory().limit_room(0);
    overwrite(file, 'B');
    EXPECT_EQ(sync_errno(file), ENOSPC);
    wait_for_the_kernel();
    // While it is open the kernel keeps its size; zeros are shown of what is not there.
    const std::string content = shown(path("d/new"));
    EXPECT_TRUE(content == std::string(content.size(), '\0'));
  }
  EXPECT_EQ(stat_of(path("d/new")).st_size, 0);
  EXPECT_TRUE(shown(path("d/new")).empty());
}

TEST_F(FuseRefusedPages, of_a_writer_without_a_pause_keep_nobody_waiting) {
  NACRE_NEEDS_MEMORY_VOLUME();
  const File file(path("f"), O_RDWR);
  char* mapped =
      static_cast<char*>(mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
  ASSERT_NE(mapped, MAP_FAILED);
  memory().limit_room(0);
  std::atomic<bool> done{false};
  std::thread writer([&] {
    for (char content = 'a'; !done; content = content == 'z' ? 'a' : static_cast<char>(content + 1))
      std::memset(mapped, content, 16 * 4096);
  });
  for (int i = 0; i < 100; ++i) {
    (void)msync(mapped, size, MS_SYNC);
    wait_for_the_kernel();
  }
  done = true;
  writer.join();
  (void)msync(mapped, size, MS_SYNC);
  while (sync_errno(File(path("f"), O_RDWR)) != 0)
    wait_for_the_kernel();
  EXPECT_TRUE(shown(path("f")) == std::string(size, 'A'));
  unmap(mapped, size);
}

}  // namespace

}  // namespace nacre::tests
