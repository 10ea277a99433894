// SPDX-License-Identifier: Apache-2.0
// A volume that is closed and opened again behind the same mount: the kernel goes on with the
// inodes that it knows.
#include <algorithm>

#include <fmt/format.h>

#include "tests/fs/volume_fixture.h"

namespace nacre::tests {
namespace {

using fs::InodeNumber;

class VolumeKernelKnowledge : public VolumeTest {
 protected:
  void lock() {
    knowledge_ = {};
    NACRE_ASSERT_OK(mounted().close(&knowledge_));
    volume_.reset();
  }
  void unlock() {
    options_.knowledge = &knowledge_;
    mount();
    options_.knowledge = nullptr;
  }
  std::uint64_t lookups_of(InodeNumber inode) const {
    for (const auto& [number, count] : knowledge_.lookups) {
      if (number == inode) return count;
    }
    return 0;
  }
  fs::KernelKnowledge knowledge_;
};

TEST_F(VolumeKernelKnowledge, counts_of_lookups_stay) {
  const InodeNumber file = make_file(root, "file");
  write(file, 0, "content");
  EXPECT_EQ(find(root, "file"), file);
  const InodeNumber other = make_file(root, "other");
  volume().forget(other, 1);
  lock();
  EXPECT_EQ(lookups_of(file), 2u);
  EXPECT_EQ(lookups_of(other), 0u);
  unlock();
  EXPECT_EQ(read(file), "content");
  EXPECT_TRUE(volume().forget(file, 1));
  EXPECT_FALSE(volume().forget(file, 1));
}

// A program has it open. When it closes it, also while the volume is locked, the file goes.
TEST_F(VolumeKernelKnowledge, files_without_a_name_live_until_they_are_forgotten) {
  const InodeNumber file = make_file(root, "file");
  write(file, 0, "content");
  NACRE_ASSERT_OK(volume().unlink(root, "file"));
  const std::uint64_t count = mounted().stats().inode_count;
  for (int round = 0; round < 2; ++round) {
    lock();
    unlock();
    EXPECT_EQ(read(file), "content");
    EXPECT_EQ(mounted().stats().inode_count, count);
  }
  volume().forget(file, 1);
  NACRE_ASSERT_OK(volume().sync_all());
  EXPECT_EQ(mounted().stats().inode_count, count - 1);
  EXPECT_CODE(stale, volume().attributes(file));
}

TEST_F(VolumeKernelKnowledge, a_file_made_without_a_name_may_still_get_one) {
  const auto made = volume().make_unnamed(root, caller_, S_IFREG | 0600);
  NACRE_ASSERT_OK(made);
  const InodeNumber unlinked = make_file(root, "unlinked");
  NACRE_ASSERT_OK(volume().unlink(root, "unlinked"));
  write(made->inode, 0, "content");
  lock();
  unlock();
  NACRE_ASSERT_OK(volume().link(made->inode, root, "named"));
  EXPECT_CODE(not_found, volume().link(unlinked, root, "again"));
  EXPECT_EQ(read(find(root, "named")), "content");
}

// Also of inodes that are only a count in memory, and of counts that need more than 16 bits.
TEST_F(VolumeKernelKnowledge, many_inodes_and_large_counts_stay) {
  unmount();
  options_.loaded_inodes_max = 64;
  mount();
  std::vector<InodeNumber> files;
  for (int i = 0; i < 1000; ++i)
    files.push_back(make_file(root, fmt::format("f{}", i)));
  for (int i = 0; i < 70'000; ++i)
    find(root, "f0");
  NACRE_ASSERT_OK(volume().sync_all());
  lock();
  EXPECT_EQ(lookups_of(files[0]), 70'001u);
  EXPECT_TRUE(std::all_of(files.begin() + 1, files.end(),
                          [&](InodeNumber file) { return lookups_of(file) == 1; }));
  unlock();
  for (const InodeNumber file : files)
    EXPECT_EQ(volume().forget(file, 1), file == files[0]);
}

// The next mount, whose kernel knows nothing, removes what nobody can reach.
TEST_F(VolumeKernelKnowledge, a_mount_that_ends_while_locked_leaves_them_to_the_next) {
  const InodeNumber file = make_file(root, "file");
  NACRE_ASSERT_OK(volume().unlink(root, "file"));
  const std::uint64_t count = mounted().stats().inode_count;
  lock();
  mount();
  EXPECT_EQ(mounted().stats().inode_count, count - 1);
  EXPECT_CODE(stale, volume().attributes(file));
}

}  // namespace
}  // namespace nacre::tests
