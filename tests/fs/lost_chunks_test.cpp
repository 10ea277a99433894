// SPDX-License-Identifier: Apache-2.0
// Bytes that rows say are lost, against an array that knows which ones: reading a lost byte fails,
// all other bytes are right, and bytes that are written, cut off or punched are no longer lost.
#include <algorithm>
#include <random>

#include <gtest/gtest.h>

#include "fs/cache/file_data.h"
#include "fs/cache/tidy_chunk.h"
#include "tests/fs/store_fixture.h"

namespace nacre::tests {
namespace {

constexpr std::uint32_t lost_chunk_size = 16u << 10;
constexpr std::size_t size_max = 12 * lost_chunk_size;

struct Model {
  Bytes bytes;
  std::vector<bool> lost;

  void resize(std::size_t size) {
    bytes.resize(size, 0);
    lost.resize(size, false);
  }
  void know(std::size_t at, std::size_t size) {
    std::fill_n(lost.begin() + static_cast<std::ptrdiff_t>(at), size, false);
  }
  void lose(std::size_t at, std::size_t size) {
    std::fill_n(lost.begin() + static_cast<std::ptrdiff_t>(at), size, true);
  }
  bool is_lost(std::size_t at, std::size_t size) const {
    const auto from = lost.begin() + static_cast<std::ptrdiff_t>(at);
    return std::find(from, from + static_cast<std::ptrdiff_t>(size), true) !=
           from + static_cast<std::ptrdiff_t>(size);
  }
};

class LostChunks : public ::testing::Test {
 protected:
  void SetUp() override {
    backing_ = MemoryBacking::create();
    NACRE_ASSERT_OK(TestStore::format(backing_));
    reopen();
  }
  void reopen() {
    if (store_) NACRE_ASSERT_OK(store_->close());
    store_.reset();
    auto opened = TestStore::open(backing_);
    NACRE_ASSERT_OK(opened);
    store_ = std::move(*opened);
  }
  fs::FileData& file() { return store_->file(2); }

  void write(std::size_t at, std::size_t size) {
    Bytes bytes(size);
    for (Byte& byte : bytes)
      byte = static_cast<Byte>(random_());
    NACRE_ASSERT_OK(file().write(at, bytes));
    if (model_.bytes.size() < at + size) model_.resize(at + size);
    std::copy(bytes.begin(), bytes.end(), model_.bytes.begin() + static_cast<std::ptrdiff_t>(at));
    model_.know(at, size);
  }
  void punch(std::size_t at, std::size_t size) {
    NACRE_ASSERT_OK(file().punch(at, size));
    if (at >= model_.bytes.size()) return;
    size = std::min(size, model_.bytes.size() - at);
    std::fill_n(model_.bytes.begin() + static_cast<std::ptrdiff_t>(at), size, Byte{0});
    model_.know(at, size);
  }
  void resize(std::size_t size) {
    NACRE_ASSERT_OK(file().resize(size));
    model_.resize(size);
  }

  // Marks some bytes of a chunk as lost, as a repair does. The chunk must not be a hole.
  void lose(std::uint64_t index, std::uint32_t from, std::uint32_t size) {
    bool done = false;
    const fs::RowChange change{
        .index = fs::ChunkIndex{index},
        .apply = [&](const metadata::ChunkRow& row) -> std::optional<metadata::ChunkRow> {
          const std::uint32_t end = std::min(from + size, fs::content_end(row));
          if (from >= end) return std::nullopt;
          metadata::ChunkRow changed = row;
          std::vector<bool> bytes(lost_chunk_size + 1);
          for (const auto& range : row.lost)
            std::fill_n(bytes.begin() + range.offset, range.size, true);
          std::fill_n(bytes.begin() + from, end - from, true);
          changed.lost.clear();
          for (std::uint32_t at = 0; at < lost_chunk_size; ++at) {
            if (!bytes[at]) continue;
            std::uint32_t next = at;
            while (bytes[next])
              ++next;
            changed.lost.push_back({at, next - at});
            at = next;
          }
          size = end - from;
          done = true;
          return changed;
        }};
    NACRE_ASSERT_OK(file().change_rows(std::span(&change, 1)));
    if (done) model_.lose(index * lost_chunk_size + from, size);
  }
  // The same to a whole hole, of which one row says so.
  void lose_hole() {
    std::vector<std::pair<std::string, std::uint64_t>> holes;
    NACRE_ASSERT_OK(store_->database().scan(
        metadata::Table::chunks, "", "", [&](std::string_view key, std::string_view value) {
          const auto row = metadata::decode_chunk_map_row(value);
          if (row->hole) holes.emplace_back(key, row->hole->chunk_count);
          return true;
        }));
    for (const auto& [key, count] : holes) {
      const std::uint64_t first = metadata::decode_chunk_key(key)->index.value;
      if ((first + count) * lost_chunk_size > model_.bytes.size()) continue;
      if (random_() % 2 == 0) continue;
      store_->database().put(metadata::Table::chunks, key, encode(metadata::LostRow{count}));
      model_.lose(first * lost_chunk_size, count * lost_chunk_size);
      ++lost_holes_;
    }
  }

  void expect_content() {
    ASSERT_EQ(file().size(), model_.bytes.size());
    for (std::size_t at = 0; at < model_.bytes.size();) {
      const std::size_t size =
          std::min<std::size_t>(1 + random_() % 3000, model_.bytes.size() - at);
      Bytes out(size, 0xEE);
      const auto count = file().read(at, out);
      const bool is_lost = model_.is_lost(at, size);
      ASSERT_EQ(!count, is_lost) << "at " << at << ", " << size << " bytes";
      if (is_lost) {
        EXPECT_EQ(count.error().code, ErrorCode::missing);
        ++refused_;
      } else {
        ASSERT_EQ(*count, size);
        ASSERT_TRUE(std::equal(out.begin(), out.end(),
                               model_.bytes.begin() + static_cast<std::ptrdiff_t>(at)))
            << "at " << at;
      }
      at += size;
    }
    // Lost bytes count as data, so that a program that copies data gets the error.
    const auto found = std::find(model_.lost.begin(), model_.lost.end(), true);
    if (found == model_.lost.end()) return;
    const auto first = static_cast<std::uint64_t>(found - model_.lost.begin());
    const auto data = file().seek(first, fs::SeekWhat::data);
    NACRE_ASSERT_OK(data);
    EXPECT_EQ(*data, first);
  }

  std::shared_ptr<MemoryBacking> backing_;
  std::unique_ptr<TestStore> store_;
  Model model_;
  std::mt19937 random_{1};
  std::uint64_t refused_ = 0;
  std::uint64_t lost_holes_ = 0;
};

// Rows that are changed together are looked up together.
TEST_F(LostChunks, are_changed_beside_each_other_over_holes_and_twice_in_a_row) {
  write(0, 8 * lost_chunk_size);
  write(60 * lost_chunk_size, lost_chunk_size);
  punch(3 * lost_chunk_size, 2 * lost_chunk_size);
  NACRE_ASSERT_OK(store_->sync(2));
  std::vector<fs::RowChange> changes;
  std::vector<std::uint64_t> seen;
  for (const std::uint64_t index : {0, 1, 1, 2, 3, 5, 20, 60, 61}) {
    const auto nth = static_cast<std::uint32_t>(changes.size());
    changes.push_back({.index = fs::ChunkIndex{index},
                       .apply = [&seen, index, nth](const metadata::ChunkRow& row) {
                         seen.push_back(index);
                         metadata::ChunkRow changed = row;
                         changed.lost.push_back({nth * 8, 4});
                         return std::optional(changed);
                       }});
    const bool is_there = index < 8 ? index != 3 : index == 60;
    if (is_there) model_.lose(index * lost_chunk_size + nth * 8, 4);
  }
  const auto changed = file().change_rows(changes);
  NACRE_ASSERT_OK(changed);
  EXPECT_EQ(seen, (std::vector<std::uint64_t>{0, 1, 1, 2, 5, 60}));
  EXPECT_EQ(*changed, seen.size());
  expect_content();
  NACRE_ASSERT_OK(store_->sync(2));
  expect_content();
  EXPECT_GT(refused_, 0u);
}

TEST_F(LostChunks, fail_to_read_and_are_known_again_where_written) {
  write(0, 3 * lost_chunk_size);
  NACRE_ASSERT_OK(store_->sync(2));
  lose(1, 0, lost_chunk_size);
  expect_content();
  write(lost_chunk_size + 1000, 500);  // over the lost chunk: before and after it is flushed
  expect_content();
  NACRE_ASSERT_OK(store_->sync_all());
  expect_content();
  write(lost_chunk_size, lost_chunk_size);
  expect_content();
  NACRE_ASSERT_OK(store_->sync_all());
  expect_content();
  EXPECT_TRUE(std::find(model_.lost.begin(), model_.lost.end(), true) == model_.lost.end());
  store_->check_map();
}

TEST_F(LostChunks, stay_lost_when_their_patches_are_merged) {
  write(0, lost_chunk_size);
  NACRE_ASSERT_OK(store_->sync_all());
  lose(0, 100, 10000);
  for (std::size_t at = 0; at < 12; ++at) {
    write(at * 1300, 40);
    NACRE_ASSERT_OK(store_->sync_all());
  }
  expect_content();
  NACRE_ASSERT_OK(fs::tidy_chunk(store_->cache(), file(), fs::ChunkIndex{0}));
  const auto mapped = store_->cache().map().find(file().inode(), fs::ChunkIndex{0});
  NACRE_ASSERT_OK(mapped);
  EXPECT_TRUE(mapped->row.patches.empty());
  EXPECT_FALSE(mapped->row.lost.empty());
  expect_content();
  EXPECT_GT(refused_, 0u);
}

TEST_F(LostChunks, of_one_row_are_split_and_cut_as_the_file_changes) {
  resize(10 * lost_chunk_size);
  NACRE_ASSERT_OK(store_->sync_all());
  while (lost_holes_ == 0)
    lose_hole();
  expect_content();
  write(4 * lost_chunk_size + 7, 100);
  punch(6 * lost_chunk_size, 2 * lost_chunk_size);
  NACRE_ASSERT_OK(store_->sync_all());
  expect_content();
  store_->check_map();
  resize(9 * lost_chunk_size + 5);  // in the middle of the last lost run
  NACRE_ASSERT_OK(store_->sync_all());
  resize(10 * lost_chunk_size);
  NACRE_ASSERT_OK(store_->sync_all());
  expect_content();
  store_->check_map();
  reopen();
  expect_content();
}

TEST_F(LostChunks, equal_a_model_through_random_changes) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  random_.seed(static_cast<unsigned>(seed));
  for (int round = 0; round < 200 && !HasFatalFailure(); ++round) {
    const std::size_t at = random_() % size_max;
    switch (random_() % 9) {
      case 0:
        resize(at);
        break;
      case 1:
        punch(at, 1 + random_() % (4 * lost_chunk_size));
        break;
      case 2:
      case 3:
        NACRE_ASSERT_OK(store_->sync_all());
        for (int i = 0; i < 3; ++i) {
          const std::uint64_t index = random_() % 12;
          const auto from = static_cast<std::uint32_t>(random_() % lost_chunk_size);
          lose(index, random_() % 2 ? 0 : from, 1 + static_cast<std::uint32_t>(random_() % 9000));
        }
        lose_hole();
        break;
      case 4:
        NACRE_ASSERT_OK(store_->sync(2));
        break;
      case 5:
        NACRE_ASSERT_OK(store_->sync_all());
        for (std::uint64_t i = 0; i * lost_chunk_size < model_.bytes.size(); ++i)
          NACRE_ASSERT_OK(fs::tidy_chunk(store_->cache(), file(), fs::ChunkIndex{i}));
        store_->check_map();
        break;
      default:
        write(at, 1 + random_() % (random_() % 3 == 0 ? 2 * lost_chunk_size : 900));
    }
    expect_content();
    if (round % 40 == 39) {
      NACRE_ASSERT_OK(store_->sync_all());
      reopen();
      expect_content();
    }
  }
  EXPECT_GT(refused_, 0u);
  EXPECT_GT(lost_holes_, 0u);
}

}  // namespace
}  // namespace nacre::tests
