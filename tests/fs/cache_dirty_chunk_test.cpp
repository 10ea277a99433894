// SPDX-License-Identifier: Apache-2.0
// DirtyChunk against a plain array of bytes and flags, with seeded random operations.
#include "fs/cache/dirty_chunk.h"

#include <random>

#include <gtest/gtest.h>

#include "fs/cache/read_ahead.h"

namespace nacre::fs {
namespace {

constexpr std::uint32_t chunk_size = 4096;

struct Plain {
  Bytes bytes = Bytes(chunk_size, 0);
  std::vector<bool> dirty = std::vector<bool>(chunk_size, false);

  void write(std::uint32_t offset, const Bytes& from) {
    std::copy(from.begin(), from.end(), bytes.begin() + offset);
    std::fill_n(dirty.begin() + offset, from.size(), true);
  }
  void erase(std::uint32_t from, std::uint32_t to) {
    std::fill(dirty.begin() + from, dirty.begin() + to, false);
  }
};

void expect_same(const DirtyChunk& chunk, const Plain& plain) {
  // overlay() copies the dirty bytes and leaves all others.
  Bytes out(chunk_size, 0xEE);
  chunk.overlay(0, out);
  std::uint64_t size = 0;
  std::uint32_t end = 0;
  for (std::uint32_t i = 0; i < chunk_size; ++i) {
    ASSERT_EQ(out[i], plain.dirty[i] ? plain.bytes[i] : 0xEE) << "byte " << i;
    size += plain.dirty[i];
    if (plain.dirty[i]) end = i + 1;
  }
  ASSERT_EQ(chunk.size(), size);
  ASSERT_EQ(chunk.end(), end);
  // Sorted, not empty, neither overlapping nor touching.
  for (std::size_t i = 0; i < chunk.pieces().size(); ++i) {
    ASSERT_FALSE(chunk.pieces()[i].bytes.empty());
    if (i > 0) {
      ASSERT_GT(chunk.pieces()[i].offset, chunk.pieces()[i - 1].end());
    }
  }
}

class DirtyChunkTest : public ::testing::Test {
 protected:
  std::unique_ptr<engine::Engine> engine_ =
      engine::Engine::create({.choice = engine::EngineChoice::cpu, .thread_count = 1}).value();
  PlainMemory memory_{*engine_, chunk_size};
};

TEST_F(DirtyChunkTest, equals_a_plain_array_under_random_operations) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 40; ++round) {
    DirtyChunk chunk(round % 4 == 0 ? nullptr : &memory_);
    Plain plain;
    for (int step = 0; step < 60; ++step) {
      const auto from = static_cast<std::uint32_t>(random() % chunk_size);
      const auto to = from + static_cast<std::uint32_t>(random() % (chunk_size - from + 1));
      switch (random() % 4) {
        case 0:
          chunk.erase(from, to);
          plain.erase(from, to);
          break;
        case 1: {  // right after the end: an append
          if (chunk.end() == chunk_size) break;
          Bytes bytes(1 + random() % std::min(100u, chunk_size - chunk.end()));
          for (Byte& byte : bytes)
            byte = static_cast<Byte>(random());
          plain.write(chunk.end(), bytes);
          chunk.write(chunk.end(), bytes);
          break;
        }
        default: {
          Bytes bytes(std::min<std::size_t>(to - from, random() % 2 ? 64 : chunk_size));
          for (Byte& byte : bytes)
            byte = static_cast<Byte>(random());
          chunk.write(from, bytes);
          plain.write(from, bytes);
        }
      }
      ASSERT_NO_FATAL_FAILURE(expect_same(chunk, plain));
      bool covered = true;
      for (std::uint32_t i = from; i < to; ++i)
        covered = covered && plain.dirty[i];
      ASSERT_EQ(chunk.covers(from, to), covered);
    }
  }
  EXPECT_EQ(memory_.stats().block_count, 0u);
}

// A chunk that is full lies in a block, in which it is sealed, however it was put together.
TEST_F(DirtyChunkTest, lies_in_a_block_once_it_fills_the_chunk) {
  const auto lies_in_a_block = [&](const DirtyChunk& chunk) {
    return chunk.pieces().size() == 1 && !memory_.slab_of(chunk.pieces()[0].bytes).empty();
  };
  DirtyChunk at_once(&memory_);
  at_once.write(0, Bytes(chunk_size, 'a'));
  EXPECT_TRUE(lies_in_a_block(at_once));
  for (const std::uint32_t cut : {1u, 100u, 1365u, 2047u, 2048u, 2731u, 4095u}) {
    DirtyChunk ahead(&memory_);
    ahead.write(0, Bytes(cut, 'a'));
    ahead.write(cut, Bytes(chunk_size - cut, 'b'));
    EXPECT_TRUE(lies_in_a_block(ahead)) << cut;
    DirtyChunk back(&memory_);
    back.write(cut, Bytes(chunk_size - cut, 'b'));
    back.write(0, Bytes(cut, 'a'));
    EXPECT_TRUE(lies_in_a_block(back)) << cut;
    DirtyChunk between(&memory_);
    between.write(0, Bytes(cut, 'a'));
    between.write(chunk_size - 1, Bytes(1, 'c'));
    between.write(cut, Bytes(chunk_size - cut, 'b'));
    EXPECT_TRUE(lies_in_a_block(between)) << cut;
  }
  DirtyChunk by_small_steps(&memory_);
  for (std::uint32_t at = 0; at < chunk_size; at += 16)
    by_small_steps.write(at, Bytes(16, 'd'));
  EXPECT_TRUE(lies_in_a_block(by_small_steps));
  // A chunk that is cut down to one byte keeps no block. Otherwise files of one byte would take a
  // chunk each.
  by_small_steps.erase(1, chunk_size);
  EXPECT_FALSE(lies_in_a_block(by_small_steps));
  DirtyChunk short_one(&memory_);
  short_one.write(0, Bytes(chunk_size - 1, 'a'));
  EXPECT_FALSE(lies_in_a_block(short_one));  // a block would be half empty for small files
}

TEST(DirtyChunk, erasing_nothing_cuts_no_piece_in_two) {
  DirtyChunk chunk;
  chunk.write(0, Bytes(100, 'a'));
  chunk.erase(50, 50);
  EXPECT_EQ(chunk.pieces().size(), 1u);
}

TEST(DirtyChunk, merges_older_bytes_under_newer_ones) {
  DirtyChunk older;
  older.write(0, Bytes(100, 'a'));
  older.write(200, Bytes(50, 'a'));
  DirtyChunk newer;
  newer.write(50, Bytes(100, 'b'));
  newer.merge_under(older);
  Bytes out(250, '.');
  newer.overlay(0, out);
  EXPECT_EQ(as_text(out), std::string(50, 'a') + std::string(100, 'b') + std::string(50, '.') +
                              std::string(50, 'a'));
  EXPECT_EQ(newer.size(), 200u);
}

TEST(ReadAhead, follows_a_sequential_reader_and_ignores_jumps) {
  ReadAhead ahead;
  constexpr std::uint64_t mib = 1u << 20;
  std::uint64_t fetched_end = 0;
  for (std::uint64_t offset = 0; offset < 64 * mib; offset += 128 << 10) {
    const auto range = ahead.note_read(offset, 128 << 10, 64 * mib, 8 * mib);
    if (range.size == 0) continue;
    EXPECT_GE(range.offset, fetched_end) << "nothing is fetched twice";
    fetched_end = range.offset + range.size;
    EXPECT_LE(fetched_end, offset + (128 << 10) + 8 * mib);
  }
  EXPECT_EQ(fetched_end, 64 * mib) << "it ends with the file";
  std::uint64_t wasted = 0;
  for (const std::uint64_t offset : {50ull, 3ull, 31ull, 12ull, 60ull}) {
    wasted += ahead.note_read(offset * mib, 4096, 64 * mib, 8 * mib).size;
  }
  EXPECT_EQ(wasted, 0u);
}

}  // namespace
}  // namespace nacre::fs
