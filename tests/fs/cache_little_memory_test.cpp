// SPDX-License-Identifier: Apache-2.0
// Memory runs out in the middle of a write. The count of dirty bytes stays exact, and bytes that
// were dirty before stay dirty.
#include <algorithm>

#include <gtest/gtest.h>

#include "fs/cache/dirty_chunk.h"
#include "tests/fs/store_fixture.h"
#include "tests/gpu_engine/allocation_faults.h"

namespace nacre::tests {
namespace {

using engine::AllocationFaults;

constexpr std::uint32_t little_chunk_size = 16u << 10;  // StoreOptions
constexpr std::size_t allocations_max = 64;

std::uint64_t sum_of_pieces(const fs::DirtyChunk& chunk) {
  std::uint64_t sum = 0;
  for (const auto& piece : chunk.pieces())
    sum += piece.bytes.size();
  return sum;
}

fs::DirtyChunk chunk_of_pieces() {
  fs::DirtyChunk chunk;
  for (const std::uint32_t offset : {1000, 3000, 5000})
    chunk.write(offset, Bytes(500, static_cast<Byte>('a' + offset / 1000)));
  return chunk;
}

TEST(DirtyChunkInLittleMemory, has_the_size_of_its_pieces) {
  bool has_failed = false;
  for (std::size_t allowed = 0; allowed < allocations_max; ++allowed) {
    // Before the first piece, over its end and up to the next one, and over all of them.
    for (const auto& [offset, size] : {std::pair{900u, 300u}, {1200u, 2000u}, {500u, 6000u}}) {
      fs::DirtyChunk chunk = chunk_of_pieces();
      const Bytes bytes(size, 'X');
      try {
        const AllocationFaults faults(allowed);
        chunk.write(offset, bytes);
      } catch (const std::bad_alloc&) {
        has_failed = true;
      }
      EXPECT_EQ(chunk.size(), sum_of_pieces(chunk)) << allowed << " allocations, at " << offset;
    }
  }
  EXPECT_TRUE(has_failed);
}

TEST(DirtyChunkInLittleMemory, keeps_all_of_its_bytes_when_some_cannot_be_erased) {
  bool has_failed = false;
  for (std::size_t allowed = 0; allowed < allocations_max; ++allowed) {
    fs::DirtyChunk chunk = chunk_of_pieces();
    const fs::DirtyChunk before = chunk;
    try {
      const AllocationFaults faults(allowed);
      chunk.erase(3100, 3200);
      EXPECT_EQ(chunk.size(), before.size() - 100);
    } catch (const std::bad_alloc&) {
      has_failed = true;
      ASSERT_EQ(chunk.pieces().size(), before.pieces().size());
      for (std::size_t i = 0; i < chunk.pieces().size(); ++i) {
        EXPECT_EQ(chunk.pieces()[i].offset, before.pieces()[i].offset);
        EXPECT_TRUE(std::ranges::equal(ByteView(chunk.pieces()[i].bytes),
                                       ByteView(before.pieces()[i].bytes)));
      }
    }
    EXPECT_EQ(chunk.size(), sum_of_pieces(chunk));
  }
  EXPECT_TRUE(has_failed);
}

// An earlier version counted too few dirty bytes, and the count fell below zero as soon as they
// were written. And a file that could not be put on the list of dirty files never got onto it
// again, so a sync left its bytes out.
TEST(FileDataInLittleMemory, counts_what_is_dirty_after_writes_that_failed) {
  const auto backing = MemoryBacking::create();
  NACRE_ASSERT_OK(TestStore::format(backing));
  const auto store = TestStore::open(backing).value();
  fs::FileData& file = store->file(2);
  bool has_failed = false;
  for (std::size_t allowed = 0; allowed < allocations_max; ++allowed) {
    const Bytes bytes(5 * little_chunk_size, static_cast<Byte>(allowed));
    try {
      const AllocationFaults faults(allowed);
      NACRE_ASSERT_OK(file.write(allowed * 3000 + 100, bytes));
    } catch (const std::bad_alloc&) {
      has_failed = true;
    }
  }
  EXPECT_TRUE(has_failed);
  const Bytes last(300 * 1000, 'z');
  NACRE_ASSERT_OK(file.write(0, last));
  EXPECT_EQ(store->cache().dirty_bytes(), last.size());
  NACRE_ASSERT_OK(store->sync_all());
  EXPECT_EQ(store->cache().dirty_bytes(), 0u);
  EXPECT_EQ(file.dirty_bytes(), 0u);
  Bytes out(last.size());
  NACRE_ASSERT_OK(file.read(0, out));
  EXPECT_TRUE(out == last);
  store->check_map();
}

}  // namespace
}  // namespace nacre::tests
