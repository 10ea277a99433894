// SPDX-License-Identifier: Apache-2.0
// Every queue of the cache has a bound, however many threads fill it and however slow the disk is.
#include <atomic>
#include <future>
#include <thread>

#include "tests/fs/store_fixture.h"

namespace nacre::tests {
namespace {

TEST(CacheBounds, what_is_to_be_read_ahead) {
  const auto backing = MemoryBacking::create();
  NACRE_ASSERT_OK(TestStore::format(backing));
  auto store = TestStore::open(backing);  // no thread takes anything off the queue
  NACRE_ASSERT_OK(store);
  for (std::uint64_t i = 0; i < 1000; ++i)
    (*store)->cache().want_read_ahead((*store)->shared_file(i % 50 + 1), {i << 23, 8u << 20});
  EXPECT_EQ((*store)->cache().stats().read_ahead_queue, fs::FileCache::queued_read_ahead_max);
  NACRE_EXPECT_OK((*store)->close());
}

TEST(CacheBounds, chunks_that_are_to_be_merged) {
  const auto backing = MemoryBacking::create();
  NACRE_ASSERT_OK(TestStore::format(backing));
  auto store = TestStore::open(backing);
  NACRE_ASSERT_OK(store);
  for (std::uint64_t i = 0; i < 100'000; ++i)
    (*store)->cache().note_patched(fs::InodeNumber{i % 7 + 1}, fs::ChunkIndex{i});
  const fs::PatchedChunks taken = (*store)->cache().take_patched();
  EXPECT_EQ(taken.chunks.size(), fs::FileCache::patched_chunk_count_max);
  EXPECT_FALSE(taken.are_all) << "those beyond are lost";
  const fs::PatchedChunks next = (*store)->cache().take_patched();
  EXPECT_TRUE(next.chunks.empty());
  EXPECT_TRUE(next.are_all);
  NACRE_EXPECT_OK((*store)->close());
}

// The disk takes nothing. Writers stop at the budget, each in the write that exceeds it.
TEST(CacheBounds, what_writers_leave_for_a_disk_that_does_not_answer) {
  constexpr std::uint64_t budget = 1u << 20;
  constexpr std::size_t write_size = 16u << 10;
  constexpr unsigned writer_count = 8;
  constexpr std::uint64_t writes_each = 256;  // 32 MiB together
  const auto backing = MemoryBacking::create();
  NACRE_ASSERT_OK(TestStore::format(backing));
  StoreOptions options{.threads = true};
  options.cache.dirty_budget_bytes = budget;
  auto opened = TestStore::open(backing, options);
  NACRE_ASSERT_OK(opened);
  TestStore& store = **opened;
  std::promise<void> disk;
  const std::shared_future<void> answers = disk.get_future().share();
  backing->watch([&](std::uint32_t operation, std::string_view path) {
    if (operation != operation_read && path.starts_with("segments/")) answers.wait();
  });
  std::atomic<std::uint64_t> written{0};
  std::vector<std::thread> writers;
  for (unsigned i = 0; i < writer_count; ++i) {
    writers.emplace_back([&, i, file = store.shared_file(i + 1)] {
      const Bytes bytes(write_size, static_cast<Byte>(i));
      for (std::uint64_t at = 0; at < writes_each; ++at) {
        NACRE_EXPECT_OK(file->write(at * write_size, bytes));
        ++written;
      }
    });
  }
  const auto bound = budget + writer_count * write_size;
  // The writers stop at the end of the budget. None of them gets past it during these looks.
  while (store.cache().dirty_bytes() <= budget)
    std::this_thread::yield();
  for (int looks = 0; looks < 200; ++looks) {
    EXPECT_LE(store.cache().dirty_bytes(), bound);
    EXPECT_LE(written * write_size, bound);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  disk.set_value();
  for (std::thread& writer : writers)
    writer.join();
  EXPECT_EQ(written, writer_count * writes_each);
  NACRE_EXPECT_OK(store.sync_all());
  EXPECT_EQ(store.cache().dirty_bytes(), 0u);
  store.check_map();
  NACRE_EXPECT_OK(store.close());
}

}  // namespace
}  // namespace nacre::tests
