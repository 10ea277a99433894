// SPDX-License-Identifier: Apache-2.0
// Ranges of chunks that are set aside, against a bit for each chunk; and their row.
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "fs/space/reservation.h"

namespace nacre::tests {
namespace {

using fs::ChunkRange;
using fs::Reservation;
using metadata::ReservedRow;

TEST(Reservation, ranges_equal_a_bit_for_each_chunk) {
  constexpr std::uint64_t count = 40;
  std::mt19937_64 random(5);
  Reservation reservation;
  std::vector<bool> bits(count, false);
  for (int i = 0; i < 5000; ++i) {
    std::uint64_t first = random() % count, end = random() % (count + 1);
    if (first > end) std::swap(first, end);
    ASSERT_TRUE(first == end || reservation.inside(end, first).empty());
    const bool adds = random() % 2 == 0;
    if (first < end && adds) reservation.add(first, end);
    if (first < end && !adds) reservation.remove(first, end);
    for (std::uint64_t at = first; at < end; ++at)
      bits[at] = adds;
    std::uint64_t sum = 0;
    for (std::uint64_t at = 0; at < count; ++at) {
      ASSERT_EQ(reservation.has(at), bits[at]) << i << ", chunk " << at;
      sum += bits[at] ? 1 : 0;
    }
    ASSERT_EQ(reservation.chunk_count(), sum);
    std::uint64_t from = random() % count, to = random() % (count + 1);
    if (from > to) std::swap(from, to);
    std::vector<bool> inside(count, false), outside(count, false);
    for (const ChunkRange& range : reservation.inside(from, to))
      for (std::uint64_t at = range.first; at < range.end(); ++at)
        inside[at] = true;
    for (const ChunkRange& range : reservation.outside(from, to))
      for (std::uint64_t at = range.first; at < range.end(); ++at)
        outside[at] = true;
    bool all = true;
    for (std::uint64_t at = 0; at < count; ++at) {
      const bool is_within = from <= at && at < to;
      ASSERT_EQ(inside[at], is_within && bits[at]);
      ASSERT_EQ(outside[at], is_within && !bits[at]);
      all = all && (!is_within || bits[at]);
    }
    if (from < to) {
      ASSERT_EQ(reservation.covers(from, to), all);
    }
    const ReservedRow row = reservation.row();
    if (row.ranges.empty()) continue;
    const auto decoded = metadata::decode_reserved_row(metadata::encode(row));
    ASSERT_TRUE(decoded) << decoded.error().message;
    ASSERT_EQ(*decoded, row);
    ASSERT_EQ(Reservation(*decoded).row(), row);
  }
}

TEST(Reservation, rows_that_are_none_are_refused) {
  const std::string good = metadata::encode(
      ReservedRow{.held_bytes = 1, .unwritten_bytes = 2, .ranges = {{3, 4}, {9, 1}}});
  ASSERT_TRUE(metadata::decode_reserved_row(good));
  EXPECT_FALSE(metadata::decode_reserved_row(good + "x"));
  EXPECT_FALSE(metadata::decode_reserved_row(good.substr(0, good.size() - 1)));
  const auto refused = [](const ReservedRow& row) {
    return !metadata::decode_reserved_row(metadata::encode(row));
  };
  EXPECT_TRUE(refused({}));
  EXPECT_TRUE(refused({.held_bytes = 0, .unwritten_bytes = 0, .ranges = {{0, 0}}}));
  EXPECT_TRUE(refused({.held_bytes = 0, .unwritten_bytes = 0, .ranges = {{0, 2}, {2, 1}}}));
  EXPECT_TRUE(refused({.held_bytes = 0, .unwritten_bytes = 0, .ranges = {{1, ~0ull >> 1}}}));
  const std::string name = metadata::reserved_name(metadata::InodeNumber{0xabc});
  EXPECT_EQ(name, "nacre.reserved/0000000000000abc");
  EXPECT_EQ(metadata::decode_reserved_name(name).value().value, 0xabcu);
  for (const char* bad : {"", "nacre.reserved/", "nacre.reserved/abc",
                          "nacre.reserved/0000000000000ABC", "nacre.reserved/000000000000000xx"}) {
    EXPECT_FALSE(metadata::decode_reserved_name(bad)) << bad;
  }
}

}  // namespace
}  // namespace nacre::tests
