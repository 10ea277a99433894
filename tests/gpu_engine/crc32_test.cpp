// SPDX-License-Identifier: Apache-2.0
// Checksums against their definitions.
#include "gpu_engine/checksum/crc32.h"

#include <gtest/gtest.h>

#include "tests/gpu_engine/test_data.h"

namespace nacre::engine {
namespace {

struct Crc {
  const char* name;
  std::uint32_t (*fast)(std::uint32_t, ByteView);
  std::uint32_t (*reference)(std::uint32_t, ByteView);
  std::uint32_t (*combine)(std::uint32_t, std::uint32_t, std::uint64_t);
  std::uint32_t (*combine_reference)(std::uint32_t, std::uint32_t, std::uint64_t);
};

class AnyCrc : public testing::TestWithParam<Crc> {};

INSTANTIATE_TEST_SUITE_P(Crcs, AnyCrc,
                         testing::Values(Crc{"crc32", crc32, crc32_reference, crc32_combine,
                                             crc32_combine_reference},
                                         Crc{"crc32c", crc32c, crc32c_reference, crc32c_combine,
                                             crc32c_combine_reference}),
                         [](const auto& test) { return test.param.name; });

TEST(Crc32, has_the_published_check_values) {
  EXPECT_EQ(crc32(0, as_bytes("123456789")), 0xcbf43926u);
  EXPECT_EQ(crc32_reference(0, as_bytes("123456789")), 0xcbf43926u);
  EXPECT_EQ(crc32(0, as_bytes("a")), 0xe8b7be43u);
  EXPECT_EQ(crc32(0, Bytes(32, 0)), 0x190a55adu);
  EXPECT_EQ(crc32(0, Bytes(32, 0xff)), 0xff6cab0bu);
}

// RFC 3720, B.4.
TEST(Crc32c, has_the_published_check_values) {
  EXPECT_EQ(crc32c(0, as_bytes("123456789")), 0xe3069283u);
  EXPECT_EQ(crc32c_reference(0, as_bytes("123456789")), 0xe3069283u);
  EXPECT_EQ(crc32c(0, Bytes(32, 0)), 0x8a9136aau);
  EXPECT_EQ(crc32c(0, Bytes(32, 0xff)), 0x62a8ab43u);
  Bytes ascending(32);
  for (std::size_t i = 0; i < ascending.size(); ++i)
    ascending[i] = static_cast<Byte>(i);
  EXPECT_EQ(crc32c(0, ascending), 0x46dd794eu);
}

TEST_P(AnyCrc, of_nothing_is_zero_and_continues_as_it_was) {
  EXPECT_EQ(GetParam().fast(0, {}), 0u);
  EXPECT_EQ(GetParam().fast(0x12345678, {}), 0x12345678u);
}

TEST_P(AnyCrc, equals_the_reference_at_every_length_and_alignment) {
  TestRandom random;
  const Bytes data = random.bytes(5000);
  const auto [name, fast, reference, combine, combine_reference] = GetParam();
  for (std::size_t size = 0; size < 1100; ++size) {
    const ByteView part = ByteView(data).subspan(size % 67, size);
    ASSERT_EQ(fast(0, part), reference(0, part)) << "size " << size;
  }
  for (int round = 0; round < 2000; ++round) {
    const std::size_t offset = random.below(data.size());
    const ByteView part = ByteView(data).subspan(offset, random.below(data.size() - offset + 1));
    const auto start = static_cast<std::uint32_t>(random.next());
    ASSERT_EQ(fast(start, part), reference(start, part))
        << "offset " << offset << " size " << part.size();
  }
}

TEST_P(AnyCrc, continues_and_combines_over_pieces) {
  TestRandom random;
  const Bytes data = random.bytes(200000);
  const auto [name, fast, reference, combine, combine_reference] = GetParam();
  const std::uint32_t whole = fast(0, data);
  EXPECT_EQ(whole, reference(0, data));
  for (int round = 0; round < 200; ++round) {
    const std::size_t cut = random.below(data.size() + 1);
    const ByteView first = ByteView(data).first(cut);
    const ByteView second = ByteView(data).subspan(cut);
    ASSERT_EQ(fast(fast(0, first), second), whole) << "cut at " << cut;
    ASSERT_EQ(combine(fast(0, first), fast(0, second), second.size()), whole) << "cut at " << cut;
  }
}

TEST_P(AnyCrc, combines_as_the_reference_does) {
  TestRandom random;
  const auto [name, fast, reference, combine, combine_reference] = GetParam();
  for (int round = 0; round < 500; ++round) {
    const auto first = static_cast<std::uint32_t>(random.next());
    const auto second = static_cast<std::uint32_t>(random.next());
    const std::uint64_t size = random.below(std::size_t{1} << random.below(16));
    ASSERT_EQ(combine(first, second, size), combine_reference(first, second, size)) << size;
  }
}

// Sizes past any buffer: zeros in two steps are zeros in one.
TEST_P(AnyCrc, combines_sizes_of_any_length) {
  TestRandom random;
  const auto [name, fast, reference, combine, combine_reference] = GetParam();
  for (int round = 0; round < 500; ++round) {
    const auto crc = static_cast<std::uint32_t>(random.next());
    const std::uint64_t one = random.next() >> (1 + random.below(60));
    const std::uint64_t other = random.next() >> (1 + random.below(60));
    ASSERT_EQ(combine(combine(crc, 0, one), 0, other), combine(crc, 0, one + other));
  }
}

TEST_P(AnyCrc, sees_every_bit) {
  Bytes data(257, 0x3c);
  const std::uint32_t whole = GetParam().fast(0, data);
  for (std::size_t bit = 0; bit < data.size() * 8; ++bit) {
    data[bit / 8] = static_cast<Byte>(data[bit / 8] ^ (1u << (bit % 8)));
    EXPECT_NE(GetParam().fast(0, data), whole) << "bit " << bit;
    data[bit / 8] = static_cast<Byte>(data[bit / 8] ^ (1u << (bit % 8)));
  }
}

}  // namespace
}  // namespace nacre::engine
