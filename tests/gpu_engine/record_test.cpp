// SPDX-License-Identifier: Apache-2.0
// Record headers, padding and bounds.
#include "gpu_engine/record/record.h"

#include <gtest/gtest.h>

#include <bit>

#include "gpu_engine/base/limits.h"
#include "gpu_engine/checksum/crc32.h"

namespace nacre::engine {
namespace {

Bytes smallest_record() {
  Bytes record(record_size_bytes_min, 0x42);
  RecordHeader header = {};
  header.magic = record_magic;
  header.version = record_version;
  header.stored_size = record_size_bytes_min;
  store_le(record.data(), header);
  const ByteView view(record);
  store_le(record.data() + offsetof(RecordHeader, crc32),
           crc32(crc32(0, view.first(36)), view.subspan(40)));
  return record;
}

template <typename T>
Bytes with_field(Bytes record, std::size_t offset, T value) {
  store_le(record.data() + offset, value);
  return record;
}

ErrorCode parse_code(const Bytes& bytes) {
  const auto header = parse_record_header(bytes);
  return header ? ErrorCode::stale : header.error().code;
}

TEST(Record, padding_none_adds_nothing) {
  for (const std::uint64_t size : {0u, 1u, 44u, 65580u})
    EXPECT_EQ(padded_size(Padding::none, size), size);
}

TEST(Record, padme_is_the_published_function) {
  // Computed by hand from the paper's definition.
  EXPECT_EQ(padded_size(Padding::padme, 0), 0u);
  EXPECT_EQ(padded_size(Padding::padme, 1), 1u);
  EXPECT_EQ(padded_size(Padding::padme, 8), 8u);
  EXPECT_EQ(padded_size(Padding::padme, 9), 10u);
  EXPECT_EQ(padded_size(Padding::padme, 100), 104u);
  EXPECT_EQ(padded_size(Padding::padme, 1000), 1024u);
  EXPECT_EQ(padded_size(Padding::padme, 65580), 67584u);
  EXPECT_EQ(padded_size(Padding::padme, 1048620), 1081344u);
}

TEST(Record, padme_costs_at_most_twelve_percent_never_shrinks_and_leaves_few_lengths) {
  std::uint64_t last = 0;
  std::uint64_t lengths = 0;
  for (std::uint64_t size = 0; size <= 70000; ++size) {
    const std::uint64_t padded = padded_size(Padding::padme, size);
    ASSERT_GE(padded, size);
    ASSERT_LE(padded * 100, size * 112) << size;
    ASSERT_GE(padded, last);
    ASSERT_EQ(padded_size(Padding::padme, padded), padded);
    lengths += padded != last;
    last = padded;
  }
  // At most 2^s lengths to a power of two: 16 for exponents of 8 to 15.
  EXPECT_LT(lengths, 200u);
}

TEST(Record, the_bounds_hold_together) {
  EXPECT_EQ(record_size_bytes_min, 100u);
  EXPECT_EQ(record_size_bound(CipherSuite::aes_256_gcm, Padding::none, 0), record_size_bytes_min);
  EXPECT_EQ(record_size_bound(CipherSuite::aes_256_gcm, Padding::none, 65536), 65636u);
  EXPECT_EQ(record_size_bound(CipherSuite::aes_256_gcm, Padding::padme, chunk_size_bytes_max),
            record_size_bytes_max - tag_size_bytes_max + 16);
}

TEST(Record, parses_a_good_header) {
  Bytes record = smallest_record();
  record = with_field(record, offsetof(RecordHeader, epoch), 7u);
  record = with_field(record, offsetof(RecordHeader, counter), 9u);
  const auto header = parse_record_header(record);
  ASSERT_TRUE(header.has_value()) << header.error().message;
  EXPECT_EQ(header->stored_size, 100u);
  EXPECT_EQ(header->epoch, 7u);
  EXPECT_EQ(header->counter, 9u);
  EXPECT_EQ(record[0], 'N');
  EXPECT_EQ(record[3], 'C');
}

TEST(Record, refuses_headers_that_are_not_valid) {
  const Bytes good = smallest_record();
  EXPECT_EQ(parse_code(good), ErrorCode::stale) << "the good one must pass";
  EXPECT_EQ(parse_code({}), ErrorCode::corrupt);
  EXPECT_EQ(parse_code(Bytes(good.begin(), good.begin() + 39)), ErrorCode::corrupt);
  EXPECT_EQ(parse_code(Bytes(good.begin(), good.end() - 1)), ErrorCode::corrupt);
  EXPECT_EQ(parse_code(Bytes(100)), ErrorCode::corrupt);
  EXPECT_EQ(parse_code(with_field(good, 0, 0x4352454eu)), ErrorCode::corrupt);
  EXPECT_EQ(parse_code(with_field(good, 4, Byte{0})), ErrorCode::corrupt);
  EXPECT_EQ(parse_code(with_field(good, 4, Byte{2})), ErrorCode::unsupported);
  EXPECT_EQ(parse_code(with_field(good, 5, Byte{1})), ErrorCode::corrupt);
  EXPECT_EQ(parse_code(with_field(good, 6, std::uint16_t{0x100})), ErrorCode::corrupt);
  for (const std::uint32_t size : {0u, 40u, 99u, 101u, 0xffffffffu})
    EXPECT_EQ(parse_code(with_field(good, 8, size)), ErrorCode::corrupt) << size;
}

TEST(Record, refuses_a_record_above_the_largest_even_where_the_bytes_are_there) {
  Bytes record = smallest_record();
  record.resize(record_size_bytes_max + 1);
  EXPECT_EQ(parse_code(with_field(record, 8, std::uint32_t{record_size_bytes_max})),
            ErrorCode::stale);
  EXPECT_EQ(parse_code(with_field(record, 8, std::uint32_t{record_size_bytes_max + 1})),
            ErrorCode::corrupt);
}

TEST(Record, the_crc_covers_the_record_and_nothing_behind_it) {
  Bytes record = smallest_record();
  EXPECT_TRUE(verify_record_crc(record).has_value());
  record.insert(record.end(), 50, 0xdd);
  EXPECT_TRUE(verify_record_crc(record).has_value());
  for (std::size_t bit = 0; bit < 100 * 8; ++bit) {
    Bytes changed = record;
    changed[bit / 8] = static_cast<Byte>(changed[bit / 8] ^ (1u << (bit % 8)));
    const auto checked = verify_record_crc(changed);
    ASSERT_FALSE(checked.has_value()) << "bit " << bit;
    EXPECT_FALSE(checked.error().message.empty());
  }
}

}  // namespace
}  // namespace nacre::engine
