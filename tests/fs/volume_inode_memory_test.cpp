// SPDX-License-Identifier: Apache-2.0
// Inodes that the kernel keeps but no program uses shrink to a count. Their content, their names
// and the promises of fsync stay as they were.
#include <random>
#include <thread>

#include <fmt/format.h>

#include "tests/fs/volume_fixture.h"

namespace nacre::tests {
namespace {

using fs::InodeNumber;

class VolumeInodeMemory : public VolumeTest {
 protected:
  static constexpr std::uint64_t loaded_max = 64;
  static constexpr std::size_t file_count = 1000;
  // A flush locks the files that it takes, and thread sanitizers know 64 locks of a thread.
  static constexpr std::size_t dirty_count_max = 32;

  void SetUp() override {
    options_.loaded_inodes_max = loaded_max;
    VolumeTest::SetUp();
  }
  static std::string content_of(std::size_t i) { return fmt::format("content of file {}", i); }
  std::vector<InodeNumber> make_files() {
    std::vector<InodeNumber> files;
    for (std::size_t i = 0; i < file_count; ++i) {
      files.push_back(make_file(root, fmt::format("f{}", i)));
      write(files.back(), 0, content_of(i));
      if (i % dirty_count_max == 0) NACRE_EXPECT_OK(volume().sync_all());
    }
    NACRE_EXPECT_OK(volume().sync_all());
    return files;
  }
  // Each new inode passes over a few others. So it takes a round until inodes that were in use
  // before are dropped.
  void use_all(const std::vector<InodeNumber>& files) {
    for (int round = 0; round < 2; ++round) {
      for (const InodeNumber file : files)
        stat(file);
    }
  }
};

TEST_F(VolumeInodeMemory, is_bounded_whatever_the_kernel_keeps) {
  const auto files = make_files();
  use_all(files);
  EXPECT_EQ(mounted().stats().known_inodes, file_count + 1);
  EXPECT_LE(mounted().stats().loaded_inodes, loaded_max + 16);
  for (std::size_t i = 0; i < file_count; ++i)
    EXPECT_EQ(read(files[i]), content_of(i));
  for (const InodeNumber file : files)
    volume().forget(file, 1);
  NACRE_EXPECT_OK(volume().sync_all());  // their access times
  EXPECT_EQ(mounted().stats().known_inodes, 1u);
  remount();
  for (std::size_t i = 0; i < file_count; ++i)
    EXPECT_EQ(read(find(root, fmt::format("f{}", i))), content_of(i));
}

TEST_F(VolumeInodeMemory, lookups_are_counted_on) {
  const auto files = make_files();
  use_all(files);
  EXPECT_EQ(find(root, "f0"), files[0]);  // two now
  use_all(files);
  volume().forget(files[0], 1);
  EXPECT_EQ(mounted().stats().known_inodes, file_count + 1);
  // The file loses its last name, and lives on until the kernel forgets it.
  NACRE_EXPECT_OK(volume().unlink(root, "f0"));
  use_all({files.begin() + 1, files.end()});
  EXPECT_EQ(read(files[0]), content_of(0));
  volume().forget(files[0], 1);
  NACRE_EXPECT_OK(volume().sync_all());
  EXPECT_CODE(stale, volume().attributes(files[0]));
}

TEST_F(VolumeInodeMemory, what_is_changed_while_others_shrink_is_kept) {
  const auto files = make_files();
  for (std::size_t i = 0; i < file_count; ++i) {
    write(files[i], 0, "C");
    if (i % dirty_count_max == 0) NACRE_EXPECT_OK(volume().sync_all());
  }
  use_all(files);
  NACRE_EXPECT_OK(volume().sync_all());
  lose_power();
  for (std::size_t i = 0; i < file_count; ++i)
    EXPECT_EQ(read(find(root, fmt::format("f{}", i))), "C" + content_of(i).substr(1));
}

TEST_F(VolumeInodeMemory, many_threads_use_what_shrinks_and_comes_back) {
  constexpr unsigned thread_count = 4;
  const auto files = make_files();
  std::vector<std::thread> threads;
  for (unsigned mine = 0; mine < thread_count; ++mine) {
    threads.emplace_back([&, mine] {
      std::mt19937 random(mine);
      for (int i = 0; i < 3000; ++i) {
        // Each writes files of its own, and reads those of all.
        const std::size_t any = random() % file_count;
        const InodeNumber file = find(root, fmt::format("f{}", any));
        EXPECT_EQ(file, files[any]);
        EXPECT_EQ(stat(file).size, content_of(any).size());
        if (any < dirty_count_max && any % thread_count == mine)
          write(file, 0, i % 2 == 0 ? "c" : "C");
        Bytes bytes(100);
        const auto count = volume().read(file, 1, bytes);
        NACRE_EXPECT_OK(count);
        EXPECT_EQ(as_text(ByteView(bytes).first(count.value_or(0))), content_of(any).substr(1));
        volume().forget(file, 1);
        if (i % 500 == 0) NACRE_EXPECT_OK(sync(file));
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  NACRE_EXPECT_OK(volume().sync_all());
  EXPECT_EQ(mounted().stats().known_inodes, file_count + 1);
  for (const InodeNumber file : files)
    volume().forget(file, 1);
  NACRE_EXPECT_OK(volume().sync_all());
  EXPECT_EQ(mounted().stats().known_inodes, 1u);
}

// The rows of the failed commit are in no table yet. An inode that is loaded again from them must
// not count as durable.
TEST_F(VolumeInodeMemory, fsync_of_a_forgotten_file_waits_for_what_a_failed_commit_left) {
  const InodeNumber file = make_file(root, "f");
  write(file, 0, std::string(100'000, 'a'));
  NACRE_EXPECT_OK(sync(file));  // its name, too
  write(file, 0, std::string(100'000, 'b'));
  backing_->inject({.operations = change_write, .path_part = "db/", .code = ErrorCode::no_space});
  EXPECT_CODE(no_space, volume().sync_all());
  volume().forget(file, 1);
  EXPECT_EQ(mounted().stats().known_inodes, 1u);
  EXPECT_EQ(find(root, "f"), file);
  EXPECT_CODE(no_space, sync(file));
  backing_->clear_failures();
  NACRE_EXPECT_OK(sync(file));
  lose_power();
  EXPECT_EQ(read(find(root, "f")), std::string(100'000, 'b'));
}

}  // namespace
}  // namespace nacre::tests
