// SPDX-License-Identifier: Apache-2.0
// Punching in pieces. Chunks that are punched piece by piece are freed, holes stay holes, and all
// other bytes stay right, whatever was flushed in between and however the chunks are stored.
#include <algorithm>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

#include "fs/cache/file_data.h"
#include "tests/fs/store_fixture.h"

namespace nacre::tests {
namespace {

using fs::SeekWhat;

enum class Syncs : std::uint8_t { none, before, in_between };

struct PunchCase {
  bool compresses;
  bool in_order;
  Syncs syncs;
};

class CachePunch : public ::testing::Test {
 protected:
  static constexpr std::uint32_t chunk_size = 64u << 10;
  static constexpr std::size_t chunk_count = 4;
  static constexpr std::size_t piece_size = 4096;
  static constexpr std::uint64_t number = 2;

  void SetUp() override {
    backing_ = MemoryBacking::create();
    NACRE_ASSERT_OK(TestStore::format(backing_));
    StoreOptions options;
    options.segments.chunk_size_bytes = chunk_size;
    auto store = TestStore::open(backing_, options);
    NACRE_ASSERT_OK(store);
    store_ = std::move(*store);
  }

  fs::FileData& file() { return store_->file(number); }

  Bytes fill(bool compresses) {
    Bytes content(chunk_count * chunk_size);
    for (Byte& byte : content)
      byte = static_cast<Byte>(compresses ? 1 + random_() % 3 : random_());
    return content;
  }

  void expect_all_given_back() {
    NACRE_EXPECT_OK(store_->sync(number));
    EXPECT_EQ(file().data_bytes(), 0u);
    EXPECT_FALSE(file().is_dirty());
    const auto data = file().seek(0, SeekWhat::data);
    ASSERT_FALSE(data) << "data at " << *data;
    EXPECT_EQ(data.error().code, ErrorCode::no_position);
    EXPECT_EQ(store_->segments().stats().live_bytes, 0u);
    store_->check_map();
  }

  void expect_given_back(const PunchCase& which) {
    SCOPED_TRACE(testing::Message() << (which.compresses ? "compressible" : "noise")
                                    << (which.in_order ? " in order" : " in any order")
                                    << ", syncs " << static_cast<int>(which.syncs));
    Bytes content = fill(which.compresses);
    NACRE_ASSERT_OK(file().write(0, content));
    if (which.syncs != Syncs::none) NACRE_ASSERT_OK(store_->sync(number));
    std::vector<std::size_t> pieces(content.size() / piece_size);
    std::iota(pieces.begin(), pieces.end(), 0);
    if (!which.in_order) std::shuffle(pieces.begin(), pieces.end(), random_);
    Bytes out(content.size());
    for (const std::size_t piece : pieces) {
      NACRE_ASSERT_OK(file().punch(piece * piece_size, piece_size));
      std::fill_n(content.begin() + static_cast<std::ptrdiff_t>(piece * piece_size), piece_size, 0);
      if (which.syncs == Syncs::in_between) NACRE_ASSERT_OK(store_->sync(number));
      NACRE_ASSERT_OK(file().read(0, out));
      ASSERT_EQ(out, content) << "after piece " << piece;
    }
    expect_all_given_back();
    NACRE_ASSERT_OK(file().resize(0));
  }

  std::mt19937 random_{7};
  std::shared_ptr<MemoryBacking> backing_;
  std::unique_ptr<TestStore> store_;
};

TEST_F(CachePunch, in_pieces_gives_all_back) {
  for (const bool compresses : {true, false}) {
    for (const bool in_order : {true, false}) {
      for (const Syncs syncs : {Syncs::none, Syncs::before, Syncs::in_between}) {
        ASSERT_NO_FATAL_FAILURE(expect_given_back({compresses, in_order, syncs}));
      }
    }
  }
}

TEST_F(CachePunch, in_pieces_that_fit_no_page_gives_all_back) {
  const Bytes content = fill(false);
  NACRE_ASSERT_OK(file().write(0, content));
  NACRE_ASSERT_OK(store_->sync(number));
  for (std::size_t at = 0; at < content.size(); at += 12'345)
    NACRE_ASSERT_OK(file().punch(at, 12'345));
  expect_all_given_back();
}

TEST_F(CachePunch, within_a_hole_makes_no_data) {
  NACRE_ASSERT_OK(file().resize(chunk_count * chunk_size));
  for (int round = 0; round < 2; ++round) {  // beyond what the map has, and in its holes
    for (std::size_t i = 0; i < chunk_count; ++i)
      NACRE_ASSERT_OK(file().punch(i * chunk_size + piece_size, chunk_size - 2 * piece_size));
    NACRE_ASSERT_OK(file().punch(chunk_size / 2, 2 * chunk_size));
    expect_all_given_back();
  }
}

TEST_F(CachePunch, of_written_zeros_gives_them_back) {
  NACRE_ASSERT_OK(file().write(0, Bytes(chunk_size, 0)));
  NACRE_ASSERT_OK(file().punch(100, 100));
  expect_all_given_back();
  NACRE_ASSERT_OK(file().write(0, Bytes(chunk_size, 0)));
  NACRE_ASSERT_OK(store_->sync(number));
  NACRE_ASSERT_OK(file().punch(100, 100));
  expect_all_given_back();
}

TEST_F(CachePunch, leaves_what_was_written_since) {
  Bytes content(chunk_size, 0);
  NACRE_ASSERT_OK(file().write(0, content));
  NACRE_ASSERT_OK(store_->sync(number));
  NACRE_ASSERT_OK(file().write(50'000, Bytes(10, 'w')));
  std::fill_n(content.begin() + 50'000, 10, 'w');
  NACRE_ASSERT_OK(file().punch(0, 40'000));
  for (int round = 0; round < 2; ++round) {
    Bytes out(chunk_size);
    NACRE_ASSERT_OK(file().read(0, out));
    EXPECT_EQ(out, content);
    NACRE_ASSERT_OK(store_->sync(number));
    store_->check_map();
  }
}

TEST_F(CachePunch, of_the_end_of_a_chunk_gives_its_bytes_back) {
  for (const bool compresses : {true, false}) {  // a record a chunk, or parts
    SCOPED_TRACE(compresses);
    Bytes content = fill(compresses);
    NACRE_ASSERT_OK(file().write(0, content));
    NACRE_ASSERT_OK(store_->sync(number));
    const std::uint64_t before = store_->segments().stats().live_bytes;
    for (std::size_t i = 0; i < chunk_count; ++i) {
      const std::size_t from = i * chunk_size + piece_size;
      NACRE_ASSERT_OK(file().punch(from, chunk_size - piece_size));
      std::fill_n(content.begin() + static_cast<std::ptrdiff_t>(from), chunk_size - piece_size, 0);
    }
    NACRE_ASSERT_OK(store_->sync_all());
    EXPECT_LT(store_->segments().stats().live_bytes, before / 3);
    EXPECT_EQ(file().data_bytes(), chunk_count * piece_size);
    Bytes out(content.size());
    NACRE_ASSERT_OK(file().read(0, out));
    EXPECT_TRUE(out == content);
    store_->check_map();
  }
}

}  // namespace
}  // namespace nacre::tests
