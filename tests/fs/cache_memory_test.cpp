// SPDX-License-Identifier: Apache-2.0
// The cache's budget holds for memory, not only for bytes: also if chunks of all lengths come and
// go, and leave slabs half empty.
#include <algorithm>
#include <memory>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "fs/cache/chunk_cache.h"
#include "fs/store/plain_memory.h"

namespace nacre::fs {
namespace {

constexpr std::uint32_t budgeted_chunk_size = 64u << 10;
constexpr std::uint64_t budget = 128u << 20;
constexpr std::size_t empty_slab_count_max = 1;

class ChunkCacheMemory : public ::testing::Test {
 protected:
  void insert(std::uint64_t chunk, std::uint32_t size) {
    const ChunkCache::Key key{InodeNumber{2}, ChunkIndex{chunk}, {}};
    const auto lookup = cache_.acquire(key, ChunkCache::Need::chunk, {0, 1});
    if (!lookup.claimed) return;
    auto content = std::make_shared<ChunkContent>(&memory_);
    content->resize(size);
    alive_.push_back(content);
    cache_.finish(key, lookup.load, content, {0, 1});
  }
  // The bytes of slabs, and of chunks outside of slabs.
  std::uint64_t memory_bytes() {
    std::erase_if(alive_, [](const auto& one) { return one.expired(); });
    std::uint64_t bytes = memory_.stats().slab_count * PlainMemory::slab_size_bytes;
    for (const auto& one : alive_) {
      const auto content = one.lock();
      if (memory_.slab_of(*content).empty()) bytes += content->capacity();
    }
    return bytes;
  }

  std::unique_ptr<engine::Engine> engine_ =
      engine::Engine::create({.choice = engine::EngineChoice::cpu, .thread_count = 1}).value();
  PlainMemory memory_{*engine_, budgeted_chunk_size, empty_slab_count_max};
  std::vector<std::weak_ptr<const ChunkContent>> alive_;
  ChunkCache cache_{budget};
};

// In an earlier version, slabs with a few used blocks stayed, and as much memory was taken from the
// heap besides.
TEST_F(ChunkCacheMemory, is_bounded_whatever_lengths_come_and_go) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  std::uint64_t chunk = 0;
  for (int phase = 0; phase < 6; ++phase) {
    const std::uint64_t first_whole = chunk;
    for (std::uint64_t i = 0; i < budget / budgeted_chunk_size; ++i)
      insert(chunk++, budgeted_chunk_size);
    // Some of these chunks, which lie in all slabs, are read again and again while short chunks
    // come.
    const std::uint64_t every = 4 + random() % 12;
    const auto longest = static_cast<std::uint32_t>(1u << (12 + random() % 5));
    std::uint64_t bytes = 0;
    for (std::uint64_t i = 0; bytes < 2 * budget; ++i) {
      const auto size = 1 + static_cast<std::uint32_t>(random() % longest);
      insert(chunk++, size);
      bytes += size;
      insert(first_whole + i * every % (budget / budgeted_chunk_size), budgeted_chunk_size);
      if (i % 500 != 0) continue;
      // One slab's blocks may be free here and there, and some slabs empty.
      ASSERT_LE(memory_bytes(), budget + (1 + empty_slab_count_max) * PlainMemory::slab_size_bytes)
          << "phase " << phase << ", " << i << ": " << memory_.stats().slab_count << " slabs, "
          << memory_.stats().block_count << " blocks, " << cache_.stats().bytes << " cached";
    }
  }
  EXPECT_GT(cache_.stats().bytes, budget / 2);
}

}  // namespace
}  // namespace nacre::fs
