// SPDX-License-Identifier: Apache-2.0
// Blocks of plain bytes: no block is given out twice, and unused memory goes back to the system.
#include "fs/store/plain_memory.h"

#include <sys/resource.h>

#include <algorithm>
#include <map>
#include <random>
#include <thread>

#include <gtest/gtest.h>

namespace nacre::fs {
namespace {

constexpr std::size_t block_size = 1u << 20;
constexpr std::size_t blocks_per_slab = PlainMemory::slab_size_bytes / block_size;

class PlainMemoryTest : public ::testing::Test {
 protected:
  std::vector<Byte*> take(std::size_t count) {
    std::vector<Byte*> blocks;
    for (std::size_t i = 0; i < count; ++i) {
      blocks.push_back(memory_.take());
      EXPECT_NE(blocks.back(), nullptr);
    }
    return blocks;
  }
  void give_back(const std::vector<Byte*>& blocks) {
    for (Byte* const block : blocks)
      EXPECT_TRUE(memory_.give_back(block));
  }

  std::unique_ptr<engine::Engine> engine_ =
      engine::Engine::create({.choice = engine::EngineChoice::cpu, .thread_count = 1}).value();
  PlainMemory memory_{*engine_, block_size};
};

TEST_F(PlainMemoryTest, gives_out_in_a_row_what_is_taken_in_a_row) {
  const auto blocks = take(blocks_per_slab);
  for (std::size_t i = 0; i < blocks.size(); ++i)
    EXPECT_EQ(blocks[i], blocks[0] + i * block_size);
  give_back({blocks[5], blocks[3]});
  EXPECT_EQ(memory_.take(), blocks[3]);
  EXPECT_EQ(memory_.take(), blocks[5]);
  give_back(blocks);
}

TEST_F(PlainMemoryTest, knows_the_slab_of_its_bytes_and_no_others) {
  const auto blocks = take(blocks_per_slab + 1);
  const ByteView first = memory_.slab_of({blocks[7] + 100, 5});
  EXPECT_EQ(first.data(), blocks[0]);
  EXPECT_EQ(first.size(), PlainMemory::slab_size_bytes);
  EXPECT_EQ(memory_.slab_of({blocks.back(), block_size}).data(), blocks.back());
  Bytes other(block_size);
  EXPECT_TRUE(memory_.slab_of(other).empty());
  EXPECT_TRUE(memory_.slab_of({}).empty());
  EXPECT_FALSE(memory_.give_back(other.data()));
  give_back(blocks);
}

// When slabs were freed as soon as they were empty, writers on a virtual machine had half the
// speed.
TEST_F(PlainMemoryTest, keeps_what_was_used_just_now) {
  using std::chrono::milliseconds;
  EXPECT_TRUE(memory_.is_empty());
  const auto blocks = take(4 * blocks_per_slab);
  EXPECT_EQ(memory_.stats().slab_count, 4u);
  EXPECT_EQ(memory_.stats().block_count, blocks.size());
  give_back({blocks.begin() + 1, blocks.end()});
  memory_.trim(std::chrono::hours(1));
  EXPECT_EQ(memory_.stats().slab_count, 4u);
  EXPECT_EQ(memory_.take(), blocks[1]);
  memory_.trim(milliseconds(0));  // but for the slab that two blocks are taken of
  EXPECT_EQ(memory_.stats().slab_count, 1u);
  EXPECT_EQ(memory_.stats().block_count, 2u);
  give_back({blocks[0], blocks[1]});
  memory_.trim(milliseconds(0));
  EXPECT_TRUE(memory_.is_empty());
}

TEST_F(PlainMemoryTest, keeps_no_more_empty_slabs_than_it_may) {
  PlainMemory memory(*engine_, block_size, 1);
  std::vector<Byte*> blocks;
  for (std::size_t i = 0; i < 3 * blocks_per_slab; ++i)
    blocks.push_back(memory.take());
  EXPECT_EQ(memory.stats().slab_count, 3u);
  for (std::size_t i = blocks_per_slab; i < blocks.size(); ++i)
    EXPECT_TRUE(memory.give_back(blocks[i]));
  EXPECT_EQ(memory.stats().slab_count, 2u) << "the first one and one that is empty";
  EXPECT_EQ(memory.take(), blocks[blocks_per_slab]);
  memory.give_back(blocks[blocks_per_slab]);
  for (std::size_t i = 0; i < blocks_per_slab; ++i)
    EXPECT_TRUE(memory.give_back(blocks[i]));
  EXPECT_EQ(memory.stats().slab_count, 1u);
}

// In an earlier version every mount wiped 32 MiB of pages at its end, even if they had held only
// one small file.
TEST_F(PlainMemoryTest, wipes_no_pages_that_nobody_took) {
  PlainMemory memory{*engine_, block_size, 0};
  Byte* const block = memory.take();
  ASSERT_NE(block, nullptr);
  std::fill_n(block, block_size, Byte{1});
  rusage before = {}, after = {};
  ASSERT_EQ(getrusage(RUSAGE_THREAD, &before), 0);
  EXPECT_TRUE(memory.give_back(block));
  ASSERT_EQ(getrusage(RUSAGE_THREAD, &after), 0);
  EXPECT_TRUE(memory.is_empty());
  EXPECT_LT(after.ru_minflt - before.ru_minflt, 100);
}

// A few used blocks keep their slabs. Later bytes of any size lie in the free blocks between them,
// so both together need no more memory than either.
TEST_F(PlainMemoryTest, that_keeps_few_empty_slabs_uses_its_free_blocks_first) {
  PlainMemory memory{*engine_, block_size, 1};
  std::vector<PlainBytes> whole, pieces;
  for (std::size_t i = 0; i < 4 * blocks_per_slab; ++i) {
    whole.emplace_back(&memory);
    whole.back().resize(block_size);
  }
  EXPECT_EQ(memory.stats().slab_count, 4u);
  std::vector<PlainBytes> staying;
  for (std::size_t i = 0; i < whole.size(); i += blocks_per_slab)
    staying.push_back(std::move(whole[i]));
  whole.clear();
  EXPECT_EQ(memory.stats().slab_count, 4u);
  std::size_t in_blocks = 0;
  for (std::size_t i = 0; i < 4 * blocks_per_slab; ++i) {
    pieces.emplace_back(&memory);
    pieces.back().resize(100 + i);
    std::fill_n(pieces.back().data(), pieces.back().size(), static_cast<Byte>(i));
    in_blocks += pieces.back().capacity() == block_size ? 1 : 0;
  }
  // All free blocks are used, except for those of one slab.
  EXPECT_EQ(in_blocks, 4 * blocks_per_slab - staying.size() - blocks_per_slab);
  EXPECT_EQ(memory.stats().block_count, in_blocks + staying.size());
  for (std::size_t i = 0; i < pieces.size(); ++i)
    EXPECT_EQ(std::ranges::count(ByteView(pieces[i]), static_cast<Byte>(i)),
              static_cast<std::ptrdiff_t>(100 + i));
  pieces.clear();
  staying.clear();
  EXPECT_EQ(memory.stats().block_count, 0u);
  EXPECT_EQ(memory.stats().slab_count, 1u);
}

TEST_F(PlainMemoryTest, of_many_threads_shares_no_block) {
  constexpr int thread_count = 4;
  std::vector<std::thread> threads;
  for (int number = 0; number < thread_count; ++number) {
    threads.emplace_back([&, number] {
      std::mt19937 random(static_cast<unsigned>(number));
      std::map<Byte*, Byte> mine;  // what I wrote at both ends
      for (int step = 0; step < 4000; ++step) {
        if (mine.size() < 20 && random() % 2 == 0) {
          Byte* const block = memory_.take();
          ASSERT_NE(block, nullptr);
          const auto mark = static_cast<Byte>(random());
          block[0] = block[block_size - 1] = mark;
          ASSERT_TRUE(mine.emplace(block, mark).second);
        } else if (!mine.empty()) {
          const auto one = std::next(mine.begin(), static_cast<long>(random() % mine.size()));
          ASSERT_EQ(one->first[0], one->second);
          ASSERT_EQ(one->first[block_size - 1], one->second);
          ASSERT_TRUE(memory_.give_back(one->first));
          mine.erase(one);
        }
      }
      for (const auto& [block, mark] : mine)
        memory_.give_back(block);
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_EQ(memory_.stats().block_count, 0u);
}

TEST_F(PlainMemoryTest, holds_bytes_of_just_its_size) {
  const Bytes plain(block_size, 'p');
  PlainBytes whole(plain, &memory_);
  EXPECT_EQ(memory_.stats().block_count, 1u);
  EXPECT_FALSE(memory_.slab_of(whole).empty());
  {
    PlainBytes part(ByteView(plain).first(block_size - 1), &memory_);
    EXPECT_TRUE(memory_.slab_of(part).empty());
    part = std::move(whole);
    EXPECT_EQ(memory_.stats().block_count, 1u);
    EXPECT_TRUE(std::ranges::equal(ByteView(part), plain));
    const PlainBytes copy = part;
    EXPECT_EQ(memory_.stats().block_count, 2u);
    EXPECT_TRUE(std::ranges::equal(ByteView(copy), plain));
  }
  EXPECT_EQ(memory_.stats().block_count, 0u);
}

TEST_F(PlainMemoryTest, holds_bytes_that_grow_through_its_size) {
  std::mt19937 random(3);
  for (PlainMemory* const memory : {&memory_, static_cast<PlainMemory*>(nullptr)}) {
    PlainBytes grown(memory);
    Bytes wanted;
    while (wanted.size() < 2 * block_size) {
      Bytes next(1 + random() % 100'000);
      for (Byte& byte : next)
        byte = static_cast<Byte>(random());
      if (wanted.size() < block_size && wanted.size() + next.size() > block_size / 2)
        grown.reserve(block_size);
      grown.append(next);
      wanted.insert(wanted.end(), next.begin(), next.end());
      ASSERT_TRUE(std::ranges::equal(ByteView(grown), wanted));
      ASSERT_EQ(memory_.stats().block_count,
                memory != nullptr && grown.capacity() == block_size ? 1u : 0u);
    }
    grown.shrink(grown.capacity() / 2);
    EXPECT_TRUE(std::ranges::equal(ByteView(grown), ByteView(wanted).first(grown.size())));
    grown.shrink(5);
    EXPECT_TRUE(std::ranges::equal(ByteView(grown), ByteView(wanted).first(5)));
    EXPECT_EQ(grown.capacity(), 5u);
  }
}

}  // namespace
}  // namespace nacre::fs
