// SPDX-License-Identifier: Apache-2.0
// What many files share when they become durable together: a commit and its flushes, and the write
// that brings their chunks to a segment.
#include <atomic>
#include <latch>
#include <string>
#include <thread>
#include <vector>

#include "tests/fs/disk_gate.h"
#include "tests/fs/volume_counts_fixture.h"

namespace nacre::tests {
namespace {

class VolumeSharedCounts : public VolumeCounts {
 protected:
  // A segment that is being filled: its own header is no part of what follows.
  void SetUp() override {
    options_.inline_commit_bytes_max = fs::VolumeOptions().inline_commit_bytes_max;
    VolumeCounts::SetUp();
    write(make_file(root, "first"), 0, std::string(2 * chunk_size, 'x'));
    commit();
  }
  std::vector<fs::InodeNumber> make_files(int count) {
    std::vector<fs::InodeNumber> files;
    for (int i = 0; i < count; ++i)
      files.push_back(make_file(root, "f" + std::to_string(i)));
    commit();
    return files;
  }
  static std::string content(std::size_t file, std::size_t size) {
    return std::string(size, static_cast<char>('a' + file % 26));
  }
  // The counts of writing and syncing each file. All others come while the disk flushes for the
  // first one.
  OperationCounts sync_at_once(const std::vector<fs::InodeNumber>& files, std::size_t size);
};

OperationCounts VolumeSharedCounts::sync_at_once(const std::vector<fs::InodeNumber>& files,
                                                 std::size_t size) {
  const OperationCounts before = counts();
  DiskGate gate(change_sync);
  backing_->watch(
      [&](std::uint32_t operation, std::string_view path) { gate.pass(operation, path); });
  std::latch answered(static_cast<std::ptrdiff_t>(files.size()));
  std::atomic<std::size_t> answered_count{0};
  // Like a request of the kernel: this thread does not wait for the answer.
  const auto write_and_sync = [&](std::size_t i) {
    write(files[i], 0, content(i, size));
    volume().sync_inode(files[i], [&](Result<> outcome) {
      NACRE_EXPECT_OK(outcome);
      ++answered_count;
      answered.count_down();
    });
  };
  gate.set_open(false);
  write_and_sync(0);
  gate.wait_for_one();
  std::latch ready(static_cast<std::ptrdiff_t>(files.size()) - 1);
  std::vector<std::thread> others;
  for (std::size_t i = 1; i < files.size(); ++i) {
    others.emplace_back([&, i] {
      ready.arrive_and_wait();
      write_and_sync(i);
    });
  }
  for (std::thread& other : others)
    other.join();
  EXPECT_EQ(answered_count, 0u) << "before the disk had flushed";
  gate.set_open(true);
  answered.wait();
  backing_->watch({});
  return counts() - before;
}

TEST_F(VolumeSharedCounts, fsyncs_one_after_the_other_flush_once_each) {
  const auto files = make_files(16);
  const OperationCounts before = counts();
  for (std::size_t i = 0; i < files.size(); ++i) {
    write(files[i], 0, content(i, 4096));
    NACRE_EXPECT_OK(sync(files[i]));
  }
  const OperationCounts taken = counts() - before;
  EXPECT_EQ(taken.batches, 16u);
  EXPECT_EQ(taken.syncs, 16u);
}

// The group commit: all requests that come while a commit is writing join the next commit.
TEST_F(VolumeSharedCounts, sixteen_fsyncs_at_once_are_two_commits) {
  const auto files = make_files(16);
  const OperationCounts taken = sync_at_once(files, 4096);
  EXPECT_EQ(taken.batches, 2u) << taken;
  EXPECT_EQ(taken.syncs, 2u) << taken;
  EXPECT_EQ(taken.database_writes, 2u) << taken;
  EXPECT_EQ(taken.segment_writes, 0u) << taken;  // bytes are rows
  lose_power();
  for (std::size_t i = 0; i < files.size(); ++i)
    EXPECT_EQ(read(files[i]), content(i, 4096)) << i;
}

// More than a commit takes as rows: records of all files in one write, before the log's.
TEST_F(VolumeSharedCounts, fsyncs_of_whole_chunks_share_the_segments_flush_too) {
  const auto files = make_files(16);
  ASSERT_GT((files.size() - 1) * chunk_size, options_.inline_commit_bytes_max);
  const OperationCounts taken = sync_at_once(files, chunk_size);
  EXPECT_EQ(taken.batches, 2u) << taken;
  EXPECT_EQ(taken.segment_writes, 1u) << taken;
  EXPECT_EQ(taken.syncs, 3u) << taken;
  lose_power();
  for (std::size_t i = 0; i < files.size(); ++i)
    EXPECT_EQ(read(files[i]), content(i, chunk_size)) << i;
}

// The files have 1 to 16 KiB each.
TEST_F(VolumeSharedCounts, chunks_of_64_small_files_go_in_one_append) {
  const auto files = make_files(64);
  const auto size_of = [](std::size_t i) { return (i % 16 + 1) << 10; };
  std::uint64_t size_sum = 0;
  for (std::size_t i = 0; i < files.size(); ++i) {
    write(files[i], 0, content(i, size_of(i)));
    size_sum += size_of(i);
  }
  // The rows: chunk and inode of each file, the segment, and the count of data bytes.
  expect_commit("commit of 64 small files", {.puts = 130,
                                             .batches = 1,
                                             .batch_rows = 130,
                                             .segment_writes = 1,
                                             .database_writes = 1,
                                             .syncs = 2});
  // Nothing is rounded up: a record takes at most 128 bytes beyond its chunk.
  EXPECT_LE(bytes_.segment_written, size_sum + 64 * 128);
  remount();
  for (std::size_t i = 0; i < files.size(); ++i)
    EXPECT_EQ(read(files[i]), content(i, size_of(i))) << i;
}

// A flush takes 256 files at most.
TEST_F(VolumeSharedCounts, chunks_of_a_thousand_small_files_go_in_four_appends) {
  const auto files = make_files(1000);
  for (std::size_t i = 0; i < files.size(); ++i)
    write(files[i], 0, content(i, 512));
  expect_commit("commit of 1,000 small files", {.puts = 2002,
                                                .batches = 1,
                                                .batch_rows = 2002,
                                                .segment_writes = 4,
                                                .database_writes = 1,
                                                .syncs = 2});
}

}  // namespace
}  // namespace nacre::tests
