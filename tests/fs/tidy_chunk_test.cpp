// SPDX-License-Identifier: Apache-2.0
// Chunks that are tidied: the records of a row stay in the order of their versions, since without
// rows a salvage has nothing else to lay them by.
#include "fs/cache/tidy_chunk.h"

#include <gtest/gtest.h>

#include "tests/fs/store_fixture.h"

namespace nacre::tests {
namespace {

constexpr std::uint64_t tidied_file = 2;

class TidyChunk : public ::testing::Test {
 protected:
  void SetUp() override {
    backing_ = MemoryBacking::create();
    NACRE_ASSERT_OK(TestStore::format(backing_));
    auto opened = TestStore::open(
        backing_, {.segments = {.segment_size_bytes = 1u << 20, .chunk_size_bytes = 64u << 10}});
    NACRE_ASSERT_OK(opened);
    store_ = std::move(*opened);
    NACRE_ASSERT_OK(write(0, content_.size(), 'c'));
    NACRE_ASSERT_OK(store_->sync_all());
  }
  Result<> write(std::size_t offset, std::size_t size, char byte) {
    std::fill_n(content_.begin() + static_cast<std::ptrdiff_t>(offset), size,
                static_cast<Byte>(byte));
    return store_->file(tidied_file).write(offset, ByteView(content_).subspan(offset, size));
  }
  // Not as an fsync, whose few bytes stay in rows.
  Result<> sync_as_records() { return store_->sync_all(); }
  metadata::ChunkRow row() {
    auto mapped = store_->cache().map().find(fs::InodeNumber{tidied_file}, fs::ChunkIndex{0});
    EXPECT_TRUE(mapped);
    return mapped ? mapped->row : metadata::ChunkRow{};
  }
  void tidy() {
    NACRE_ASSERT_OK(fs::tidy_chunk(store_->cache(), store_->file(tidied_file), fs::ChunkIndex{0}));
    store_->check_map();
    Bytes found(content_.size());
    NACRE_ASSERT_OK(store_->file(tidied_file).read(0, found));
    EXPECT_TRUE(found == content_);
  }

  std::shared_ptr<MemoryBacking> backing_;
  std::unique_ptr<TestStore> store_;
  Bytes content_ = Bytes(64u << 10);
};

// Once the inlined bytes became a record that was newer than what lies over them.
TEST_F(TidyChunk, lays_no_older_bytes_over_newer_ones) {
  NACRE_ASSERT_OK(write(0, 4096, 'a'));
  NACRE_ASSERT_OK(store_->sync(tidied_file));  // inlined
  NACRE_ASSERT_OK(write(2048, 4096, 'b'));
  NACRE_ASSERT_OK(sync_as_records());
  const metadata::ChunkRow before = row();
  ASSERT_EQ(before.patches.size(), 2u);
  ASSERT_FALSE(before.patches.front().location);
  ASSERT_TRUE(before.patches.back().location);
  tidy();
  EXPECT_TRUE(row().patches.empty());
}

TEST_F(TidyChunk, moves_inlined_bytes_that_nothing_covers) {
  NACRE_ASSERT_OK(write(0, 4096, 'a'));
  NACRE_ASSERT_OK(store_->sync(tidied_file));  // inlined
  NACRE_ASSERT_OK(write(8192, 4096, 'b'));
  NACRE_ASSERT_OK(sync_as_records());
  NACRE_ASSERT_OK(write(8192, 2048, 'd'));
  NACRE_ASSERT_OK(store_->sync(tidied_file));  // inlined
  const metadata::ChunkRow before = row();
  ASSERT_EQ(before.patches.size(), 3u);
  ASSERT_FALSE(before.patches.front().location);
  ASSERT_TRUE(before.patches[1].location);
  ASSERT_FALSE(before.patches.back().location);
  tidy();
  EXPECT_EQ(row().patches.size(), 3u);
  for (const auto& patch : row().patches)
    EXPECT_TRUE(patch.location) << patch.offset;
}

}  // namespace
}  // namespace nacre::tests
