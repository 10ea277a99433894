// SPDX-License-Identifier: Apache-2.0
// Content that does not compress is stored in parts, and a small read takes what it needs of them.
#include <random>

#include <gtest/gtest.h>

#include "fs/cache/chunk_cache.h"
#include "fs/cache/file_data.h"
#include "fs/cache/tidy_chunk.h"
#include "fs/store/patched_chunk.h"
#include "tests/fs/store_fixture.h"
#include "tests/support/counted_backing.h"

namespace nacre::tests {
namespace {

using metadata::ChunkBase;
using metadata::ChunkPatch;
using metadata::ChunkRow;
using metadata::RecordLocation;

constexpr std::uint32_t part_size = fs::part_size_bytes_min;
constexpr std::uint32_t parted_chunk_size = 4 * part_size;

ChunkPatch patch(std::uint32_t offset, std::uint32_t size) {
  return {.offset = offset,
          .plain_size = size,
          .valid_size = size,
          .version = metadata::RecordVersion{1},
          .location = RecordLocation{fs::SegmentNumber{1}, offset + 64, size}};
}
ChunkRow parts_row() {
  ChunkRow row;
  for (std::uint32_t offset = 0; offset < parted_chunk_size; offset += part_size)
    row.patches.push_back(patch(offset, part_size));
  return row;
}

TEST(Parts, are_an_eighth_of_a_chunk_and_at_least_16_kib) {
  EXPECT_EQ(fs::part_size_bytes(4u << 10), 16u << 10);
  EXPECT_EQ(fs::part_size_bytes(64u << 10), 16u << 10);
  EXPECT_EQ(fs::part_size_bytes(1u << 20), 128u << 10);
}

TEST(Parts, are_the_first_patches_of_a_row_without_a_base) {
  ChunkRow row = parts_row();
  EXPECT_EQ(fs::count_parts(row), 4u);
  row.patches.push_back(patch(100, 4096));
  EXPECT_EQ(fs::count_parts(row), 4u);
  row.base = ChunkBase{.plain_size = 10, .valid_size = 10};
  EXPECT_EQ(fs::count_parts(row), 0u);

  ChunkRow short_end{.patches = {patch(0, part_size), patch(part_size, 7)}};
  EXPECT_EQ(fs::count_parts(short_end), 2u);
  ChunkRow gap{.patches = {patch(0, part_size), patch(2 * part_size, part_size)}};
  EXPECT_EQ(fs::count_parts(gap), 1u);
  ChunkRow inlined = parts_row();
  inlined.patches[1].location.reset();
  EXPECT_EQ(fs::count_parts(inlined), 1u);
  EXPECT_EQ(fs::count_parts({.patches = {patch(0, 4096), patch(4096, 4096)}}), 0u);
  EXPECT_EQ(fs::count_parts({.patches = {patch(0, part_size + 1)}}), 0u);
}

TEST(Parts, are_not_worth_merging_but_what_lies_over_them_is) {
  ChunkRow row = parts_row();
  EXPECT_FALSE(fs::is_worth_merging(row));
  for (std::uint32_t i = 0; i < 7; ++i)
    row.patches.push_back(patch(i * 5000, 100));
  EXPECT_FALSE(fs::is_worth_merging(row));
  row.patches.push_back(patch(40'000, 100));
  EXPECT_TRUE(fs::is_worth_merging(row));
  row = parts_row();
  row.patches.push_back(patch(1, part_size));
  EXPECT_TRUE(fs::is_worth_merging(row));
}

TEST(Parts, one_that_is_written_anew_takes_its_place) {
  ChunkRow row = parts_row();
  row.patches.erase(row.patches.begin() + 1);  // what a write covers goes
  fs::add_patch(row, patch(part_size, part_size));
  EXPECT_EQ(fs::count_parts(row), 4u);
  EXPECT_EQ(row.patches[1].offset, part_size);
}

// Among the parts it would lie under a patch that is older.
TEST(Parts, one_that_is_written_anew_lies_over_a_patch_that_it_does_not_cover) {
  ChunkRow row = parts_row();
  row.patches.push_back(patch(2 * part_size - 100, 200));
  row.patches.erase(row.patches.begin() + 1);
  fs::add_patch(row, patch(part_size, part_size));
  EXPECT_EQ(row.patches.back().offset, part_size);
}

TEST(Parts, a_range_needs_those_that_give_bytes_of_it_and_all_that_lies_over_them) {
  ChunkRow row = parts_row();
  row.patches.push_back(patch(part_size + 10, 20));
  row.patches.push_back(patch(3 * part_size, 20));
  const auto one = fs::row_of_range(row, part_size, part_size + 4096);
  ASSERT_TRUE(one);
  ASSERT_EQ(one->patches.size(), 2u);
  EXPECT_EQ(one->patches[0].offset, part_size);
  EXPECT_EQ(one->patches[1].offset, part_size + 10);
  EXPECT_FALSE(fs::row_of_range(row, part_size - 1, 2 * part_size + 1)) << "three of four";
  EXPECT_FALSE(fs::row_of_range(row, 0, parted_chunk_size));
  row.base = ChunkBase{.plain_size = parted_chunk_size, .valid_size = parted_chunk_size};
  EXPECT_FALSE(fs::row_of_range(row, 0, 1));
}

fs::SharedContent parted_content(std::uint32_t size) {
  auto content = std::make_shared<fs::ChunkContent>();
  content->resize(size);
  return content;
}

class ChunkCacheParts : public ::testing::Test {
 protected:
  // Returns true if the part is read alone.
  bool read(std::uint64_t chunk) {
    const fs::ChunkCache::Key key{fs::InodeNumber{2}, fs::ChunkIndex{chunk}, {}};
    auto lookup = cache_.acquire(key, fs::ChunkCache::Need::part, {});
    if (lookup.claimed) cache_.finish(key, lookup.load, parted_content(parted_chunk_size), {});
    return !lookup.content && !lookup.claimed;
  }

  fs::ChunkCache cache_{8u << 20};  // some 120 chunks
};

TEST_F(ChunkCacheParts, whole_chunks_are_loaded_until_the_cache_is_full) {
  for (std::uint64_t chunk = 0; chunk < 60; ++chunk)
    EXPECT_FALSE(read(chunk)) << chunk;
}

TEST_F(ChunkCacheParts, are_read_alone_where_nobody_comes_back_but_for_one_in_32) {
  for (std::uint64_t chunk = 0; chunk < 1000; ++chunk)
    read(chunk);
  int alone = 0;
  for (std::uint64_t chunk = 1000; chunk < 2600; ++chunk)
    alone += read(chunk) ? 1 : 0;
  EXPECT_NEAR(alone, 1550, 8);
  EXPECT_GE(cache_.stats().parts, 1550u - 8);
}

TEST_F(ChunkCacheParts, whole_chunks_are_loaded_again_when_readers_come_back) {
  std::mt19937 random(1);
  for (std::uint64_t chunk = 0; chunk < 1000; ++chunk)
    read(chunk);
  for (int i = 0; i < 20'000; ++i)
    read(1000 + random() % 60);
  int alone = 0;
  for (int i = 0; i < 1000; ++i)
    alone += read(1000 + random() % 60) ? 1 : 0;
  EXPECT_EQ(alone, 0);
}

TEST_F(ChunkCacheParts, a_set_of_which_most_is_here_is_loaded_as_whole_chunks) {
  std::mt19937 random(1);
  int alone = 0;
  for (int i = 0; i < 20'000; ++i)
    alone += read(random() % 150) && i > 2000 ? 1 : 0;
  EXPECT_LT(alone, 400);
}

// Content that does not compress, in chunks of 64 KiB. The cache has room for one chunk in each of
// its shards.
class PartReads : public ::testing::Test {
 protected:
  static constexpr std::size_t chunk_count = 64;

  void SetUp() override {
    options_.segments.chunk_size_bytes = parted_chunk_size;
    options_.cache.cache_budget_bytes = 8 * (parted_chunk_size + 1000);
    const auto memory = MemoryBacking::create();
    NACRE_ASSERT_OK(TestStore::format(memory));
    backing_ = std::make_shared<CountedBacking>(memory, disk_);
    auto store = TestStore::open(backing_, options_);
    NACRE_ASSERT_OK(store);
    store_ = std::move(*store);
    content_.resize(chunk_count * parted_chunk_size - 5000);
    for (Byte& byte : content_)
      byte = static_cast<Byte>(random_());
    NACRE_ASSERT_OK(store_->file(2).write(0, content_));
    NACRE_ASSERT_OK(store_->sync(2));
  }
  ChunkRow row(std::uint64_t chunk) {
    auto mapped = store_->cache().map().find(fs::InodeNumber{2}, fs::ChunkIndex{chunk});
    EXPECT_TRUE(mapped);
    return mapped ? mapped->row : ChunkRow{};
  }
  // Makes random reads of 4 KiB. Returns how many bytes of segments each read took on average.
  double bytes_a_read(int count) {
    const std::uint64_t before = disk_->segments.bytes_read;
    for (int i = 0; i < count; ++i)
      expect_bytes(random_() % (content_.size() / 4096) * 4096, 4096);
    return static_cast<double>(disk_->segments.bytes_read - before) / count;
  }
  void expect_bytes(std::size_t at, std::size_t size) {
    Bytes out(size);
    NACRE_ASSERT_OK(store_->file(2).read(at, out));
    ASSERT_TRUE(
        std::equal(out.begin(), out.end(), content_.begin() + static_cast<std::ptrdiff_t>(at)))
        << at;
  }
  void write(std::size_t at, std::size_t size) {
    Bytes bytes(size);
    for (Byte& byte : bytes)
      byte = static_cast<Byte>(random_());
    std::copy(bytes.begin(), bytes.end(), content_.begin() + static_cast<std::ptrdiff_t>(at));
    NACRE_ASSERT_OK(store_->file(2).write(at, bytes));
  }

  StoreOptions options_;
  std::mt19937 random_{1};
  std::shared_ptr<DiskCounters> disk_ = std::make_shared<DiskCounters>();
  std::shared_ptr<metadata::BackingDirectory> backing_;
  std::unique_ptr<TestStore> store_;
  Bytes content_;
};

TEST_F(PartReads, take_a_quarter_of_a_chunk_where_the_cache_is_of_no_use) {
  EXPECT_EQ(fs::count_parts(row(0)), 4u);
  EXPECT_EQ(row(chunk_count - 1).patches.back().plain_size, part_size - 5000);
  bytes_a_read(500);
  // One read in 32 loads its whole chunk.
  EXPECT_LT(bytes_a_read(1000), 1.25 * part_size);
}

TEST_F(PartReads, take_whole_records_of_what_compresses) {
  std::fill(content_.begin(), content_.end(), Byte{'a'});
  NACRE_ASSERT_OK(store_->file(2).write(0, content_));
  NACRE_ASSERT_OK(store_->sync(2));
  EXPECT_TRUE(row(0).base);
  expect_bytes(12'345, 4096);
}

// Bytes that look compressible to a sample, although no codec makes them smaller.
TEST_F(PartReads, take_parts_of_what_only_looks_as_if_it_compressed) {
  for (std::size_t i = 0; i < content_.size(); ++i)
    content_[i] = static_cast<Byte>(random_() % 2 == 0 ? random_() : random_() % 128);
  NACRE_ASSERT_OK(store_->file(3).write(0, content_));
  NACRE_ASSERT_OK(store_->sync(3));
  const auto is_in_parts = [&](std::uint64_t number, std::uint64_t chunk) {
    auto mapped = store_->cache().map().find(fs::InodeNumber{number}, fs::ChunkIndex{chunk});
    return mapped && fs::count_parts(mapped->row) > 1;
  };
  EXPECT_FALSE(is_in_parts(3, 0)) << "nobody knew yet";
  NACRE_ASSERT_OK(store_->file(3).write(0, content_));
  NACRE_ASSERT_OK(store_->sync(3));
  EXPECT_TRUE(is_in_parts(3, 0));
  // The file compresses again, and its chunks become whole records again.
  content_.assign(content_.size(), Byte{'a'});
  for (int i = 0; i < 2; ++i) {
    NACRE_ASSERT_OK(store_->file(3).write(0, content_));
    NACRE_ASSERT_OK(store_->sync(3));
  }
  EXPECT_FALSE(is_in_parts(3, 0));
}

// Otherwise an attacker who sees the lengths of records would learn which content compresses.
TEST_F(PartReads, without_a_codec_all_content_is_in_parts) {
  store_.reset();
  options_.segments.codec = engine::Codec::none;
  auto store = TestStore::open(backing_, options_);
  NACRE_ASSERT_OK(store);
  store_ = std::move(*store);
  content_.assign(content_.size(), Byte{'a'});
  NACRE_ASSERT_OK(store_->file(2).write(0, content_));
  NACRE_ASSERT_OK(store_->sync(2));
  for (std::uint64_t chunk = 0; chunk < chunk_count; ++chunk)
    EXPECT_EQ(fs::count_parts(row(chunk)), 4u) << chunk;
  bytes_a_read(100);
}

TEST_F(PartReads, find_what_was_written_over_parts) {
  options_.inline_commit_bytes_max = 0;
  store_.reset();
  auto store = TestStore::open(backing_, options_);
  NACRE_ASSERT_OK(store);
  store_ = std::move(*store);
  for (int i = 0; i < 300; ++i) {
    const std::size_t at = random_() % (content_.size() - part_size);
    if (i % 3 == 0) {
      write(at / part_size * part_size, part_size);
    } else {
      write(at, 1 + random_() % 6000);
    }
    if (i % 4 == 0) NACRE_ASSERT_OK(store_->sync(2));
    if (i % 7 == 0) {
      const fs::ChunkIndex chunk{random_() % chunk_count};
      NACRE_ASSERT_OK(fs::tidy_chunk(store_->cache(), store_->file(2), chunk));
    }
    bytes_a_read(20);
  }
  NACRE_ASSERT_OK(store_->sync(2));
  store_->check_map();
  expect_bytes(0, content_.size());
}

TEST_F(PartReads, writing_one_part_leaves_the_others_alone) {
  options_.inline_commit_bytes_max = 0;
  store_.reset();
  auto store = TestStore::open(backing_, options_);
  NACRE_ASSERT_OK(store);
  store_ = std::move(*store);
  const std::uint64_t before = disk_->segments.bytes_written;
  for (std::uint32_t part = 0; part < 4; ++part) {
    write(3 * parted_chunk_size + ((part * 3) % 4) * part_size, part_size);
    NACRE_ASSERT_OK(store_->sync(2));
  }
  EXPECT_EQ(fs::count_parts(row(3)), 4u);
  EXPECT_EQ(row(3).patches.size(), 4u);
  EXPECT_LT(disk_->segments.bytes_written - before, parted_chunk_size + 4000);
  expect_bytes(3 * parted_chunk_size, parted_chunk_size);
}

TEST_F(PartReads, of_a_file_that_was_cut_and_grown_give_zeros) {
  const std::size_t cut = 5 * parted_chunk_size + part_size + 100;
  NACRE_ASSERT_OK(store_->file(2).resize(cut));
  NACRE_ASSERT_OK(store_->file(2).resize(content_.size()));
  std::fill(content_.begin() + static_cast<std::ptrdiff_t>(cut), content_.end(), Byte{0});
  NACRE_ASSERT_OK(store_->sync(2));
  bytes_a_read(500);
  expect_bytes(0, content_.size());
}

}  // namespace
}  // namespace nacre::tests
