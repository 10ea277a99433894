// SPDX-License-Identifier: Apache-2.0
// The decoder of GDeflate pages: pages of the reference codec, pages made by hand, and hostile
// ones, on which the fast rounds must agree with the plain ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>

#include "gpu_engine/checksum/crc32.h"
#include "gpu_engine/codec/gdeflate/decode_table.h"
#include "gpu_engine/codec/gdeflate/decoder.h"
#include "gpu_engine/codec/gdeflate/fast_round.h"
#include "gpu_engine/codec/gdeflate/page_writer.h"
#include "tests/gpu_engine/gdeflate_vectors.h"
#include "tests/gpu_engine/guarded_memory.h"
#include "tests/gpu_engine/test_data.h"

namespace nacre::engine::gdeflate {
namespace {

void expect_decodes(const GdeflateVector& vector) {
  GuardedMemory page(vector.page.size());
  GuardedMemory plain(vector.plain_size);
  const MutableByteView input = page.last(vector.page.size());
  const MutableByteView output = plain.last(vector.plain_size);
  std::copy(vector.page.begin(), vector.page.end(), input.begin());
  ASSERT_TRUE(decode_page(input, output)) << vector.file;
  EXPECT_EQ(crc32(0, output), vector.plain_crc) << vector.file;
  std::fill(output.begin(), output.end(), Byte{0xee});
  ASSERT_TRUE(decode_page_plainly(input, output)) << vector.file;
  EXPECT_EQ(crc32(0, output), vector.plain_crc) << vector.file;
}

TEST(GdeflateOracle, we_read_the_pages_of_the_reference_codec) {
  const auto vectors = read_gdeflate_vectors();
  EXPECT_EQ(vectors.size(), 76u);
  for (const GdeflateVector& vector : vectors)
    expect_decodes(vector);
}

// The words of a page of one block, from what each lane is to read; no lane may read more than its
// first 32 bits.
class FirstWords {
 public:
  FirstWords& put(unsigned lane, unsigned bits, unsigned count) {
    words_[lane] |= std::uint64_t{bits} << counts_[lane];
    counts_[lane] += count;
    EXPECT_LE(counts_[lane], 32u);
    return *this;
  }
  // Each lane that was read takes its second word.
  Bytes page() const {
    Bytes bytes(lane_count * word_size_bytes);
    for (unsigned lane = 0; lane < lane_count; ++lane)
      store_le(bytes.data() + lane * word_size_bytes, static_cast<std::uint32_t>(words_[lane]));
    const auto read =
        std::count_if(counts_.begin(), counts_.end(), [](unsigned c) { return c > 0; });
    bytes.resize(bytes.size() + static_cast<std::size_t>(read) * word_size_bytes);
    return bytes;
  }

 private:
  std::array<std::uint64_t, lane_count> words_{};
  std::array<unsigned, lane_count> counts_{};
};

TEST(GdeflateDecoder, reads_a_stored_block) {
  FirstWords words;
  words.put(0, 1, 1).put(0, 0, 2).put(0, 5, 16);
  for (unsigned i = 0; i < 5; ++i)
    words.put(i, 'a' + i, 8);
  Bytes plain(5);
  ASSERT_TRUE(decode_page(words.page(), plain));
  EXPECT_EQ(as_text(plain), "abcde");
}

// Fixed codes: 'a' is 10010001, length 3 is 0000001, end of block 0000000, distances have 5 bits;
// codes are written from their highest bit.
constexpr unsigned fixed_a = 0b10001001;
constexpr unsigned fixed_length_3 = 0b1000000;
constexpr unsigned fixed_end = 0;

TEST(GdeflateDecoder, gives_a_distance_to_the_lane_of_its_length_in_the_next_round) {
  FirstWords words;
  words.put(0, 1, 1).put(0, 1, 2).put(0, fixed_a, 8);
  words.put(1, fixed_length_3, 7).put(1, 0, 5);  // distance 1, read after the end of block
  words.put(2, fixed_a, 8).put(3, fixed_end, 7);
  Bytes plain(5);
  ASSERT_TRUE(decode_page(words.page(), plain));
  EXPECT_EQ(as_text(plain), "aaaaa");
}

TEST(GdeflateDecoder, refuses_a_distance_before_the_first_byte) {
  for (const unsigned distance_code : {0u, 0b10000u}) {  // 1 and 2
    FirstWords words;
    words.put(0, 1, 1).put(0, 1, 2).put(0, fixed_a, 8);
    words.put(1, fixed_length_3, 7).put(1, distance_code, 5).put(2, fixed_end, 7);
    Bytes plain(4);
    EXPECT_EQ(decode_page(words.page(), plain), distance_code == 0);
  }
}

TEST(GdeflateDecoder, wants_exactly_the_words_and_bytes_of_the_page) {
  FirstWords words;
  words.put(0, 1, 1).put(0, 1, 2).put(0, fixed_a, 8).put(1, fixed_a, 8).put(2, fixed_end, 7);
  const Bytes page = words.page();
  Bytes plain(2);
  ASSERT_TRUE(decode_page(page, plain));
  for (const std::size_t size : {0u, 1u, 3u, 65536u}) {
    Bytes other(size);
    EXPECT_FALSE(decode_page(page, other)) << size;
  }
  Bytes longer = page;
  longer.resize(page.size() + 4);
  EXPECT_FALSE(decode_page(longer, plain));
  for (std::size_t size = 0; size < page.size(); ++size)
    EXPECT_FALSE(decode_page(ByteView(page).first(size), plain)) << size;
  Bytes too_long(65537);
  EXPECT_FALSE(decode_page(page, too_long));
}

TEST(GdeflateDecoder, refuses_the_fourth_kind_of_block) {
  FirstWords words;
  words.put(0, 1, 1).put(0, 3, 2);
  Bytes plain(1);
  EXPECT_FALSE(decode_page(words.page(), plain));
}

TEST(DecodeTable, finds_every_code_of_a_complete_code_of_all_sizes) {
  // Sizes 1, 2, … 14, 15, 15: the codes are 0, 10, 110, …
  std::vector<std::uint8_t> sizes;
  for (unsigned size = 1; size <= code_size_bits_max; ++size)
    sizes.push_back(static_cast<std::uint8_t>(size));
  sizes.push_back(code_size_bits_max);
  DecodeTable table;
  ASSERT_TRUE(build_table(sizes, litlen_meanings(), direct_bits, table));
  for (unsigned symbol = 0; symbol < sizes.size(); ++symbol) {
    // The code is ones up to a zero, which the last code lacks. Random bits follow.
    const unsigned ones = symbol == 15 ? 15 : symbol;
    for (const std::uint64_t behind : {0ull, ~0ull, 0x5555555555555555ull}) {
      const std::uint64_t bits = ((std::uint64_t{1} << ones) - 1) | behind << sizes[symbol];
      const TableEntry entry = look_up(table.data(), bits);
      EXPECT_EQ(entry_value(entry), symbol);
      EXPECT_EQ(entry_code_bits(entry), sizes[symbol]);
      EXPECT_EQ(entry_all_bits(entry), sizes[symbol]);
    }
  }
}

TEST(DecodeTable, refuses_sizes_that_are_no_prefix_code) {
  DecodeTable table;
  const auto accepts = [&](const std::vector<std::uint8_t>& sizes) {
    return build_table(sizes, distance_meanings(), direct_bits, table);
  };
  EXPECT_TRUE(accepts({1, 1}));
  EXPECT_TRUE(accepts({0, 1}));
  EXPECT_TRUE(accepts({0, 0}));
  EXPECT_TRUE(accepts({2, 2, 2, 2}));
  EXPECT_FALSE(accepts({1, 1, 1}));
  EXPECT_FALSE(accepts({2, 2, 2}));
  EXPECT_FALSE(accepts({2, 0}));
  EXPECT_FALSE(accepts({1, 2}));
  EXPECT_FALSE(accepts({1, 1, 15}));
}

TEST(DecodeTable, has_no_symbol_for_what_is_no_code) {
  DecodeTable table;
  ASSERT_TRUE(
      build_table(std::vector<std::uint8_t>{0, 1}, distance_meanings(), direct_bits, table));
  EXPECT_EQ(look_up(table.data(), 0) & entry_is_unusable, 0u);
  EXPECT_NE(look_up(table.data(), 1) & entry_is_unusable, 0u);
}

// Blocks of three bits and the end of the block, 0000000, in lane 0.
Bytes make_empty_fixed_blocks(std::size_t count) {
  Bytes page(PageWriter::page_size_bound(10 * count));
  PageWriter writer(page.data());
  for (std::size_t i = 0; i < count; ++i) {
    writer.put(0, {i + 1 == count ? 0b011u : 0b010u, 3});
    writer.put(0, {fixed_end, 7});
  }
  page.resize(writer.finish());
  return page;
}

// Blocks that describe a code of the end of block alone, in as few bits as that takes: the code
// length code has the symbols 1 and 18 (many zeros), a bit each.
constexpr std::size_t empty_dynamic_block_bits = 90;
Bytes make_empty_dynamic_blocks(std::size_t count) {
  Bytes page(PageWriter::page_size_bound(empty_dynamic_block_bits * count));
  PageWriter writer(page.data());
  for (std::size_t i = 0; i < count; ++i) {
    writer.put(0, {i + 1 == count ? 0b101u : 0b100u, 3});
    writer.put(0, {14u << 10, 14});
    for (unsigned size = 0; size < 18; ++size)
      writer.put(size, {code_length_order[size] == 1 || code_length_order[size] == 18, 3});
    writer.put(0, {127u << 1 | 1, 8});  // 138 zeros
    writer.put(1, {107u << 1 | 1, 8});  // 118
    writer.put(2, {0, 1});              // the end of block
    writer.put(3, {0, 1});              // a distance
    writer.put(0, {0, 1});
  }
  page.resize(writer.finish());
  return page;
}

// Counted, not timed: tables are the dearest thing in a page.
TEST(HostilePage, of_many_blocks_is_bounded_by_its_bits) {
  static_cast<void>(decode_page(make_empty_fixed_blocks(1), {}));  // makes those of fixed codes
  const Bytes fixed = make_empty_fixed_blocks(50000);
  EXPECT_LT(fixed.size(), page_plain_size_max);
  std::uint64_t before = built_table_count();
  EXPECT_TRUE(decode_page(fixed, {}));
  EXPECT_EQ(built_table_count(), before);

  constexpr std::size_t most = page_plain_size_max * 8 / empty_dynamic_block_bits;
  const Bytes dynamic = make_empty_dynamic_blocks(most);
  before = built_table_count();
  EXPECT_TRUE(decode_page(dynamic, {}));
  EXPECT_EQ(built_table_count() - before, 3 * most);
  EXPECT_GT(dynamic.size(), page_plain_size_max - 100) << "so no page has more of them";
}

TEST(HostilePage, gets_the_same_verdict_and_bytes_from_the_fast_rounds_and_the_plain_ones) {
  TestRandom random;
  const auto vectors = read_gdeflate_vectors();
  GuardedMemory input(1u << 17);
  GuardedMemory output(page_plain_size_max);
  GuardedMemory plain_output(page_plain_size_max);
  int refused = 0;
  for (int round = 0; round < 20000; ++round) {
    const GdeflateVector& vector = vectors[random.below(vectors.size())];
    Bytes page = vector.page;
    mutate(page, random);
    if (random.below(4) != 0) page.resize(page.size() / word_size_bytes * word_size_bytes);
    const MutableByteView hostile = input.last(page.size());
    std::copy(page.begin(), page.end(), hostile.begin());
    const std::size_t size =
        vector.plain_size - (random.below(4) == 0 ? random.below(vector.plain_size) : 0);
    const MutableByteView fast = output.last(size);
    const bool accepted = decode_page(hostile, fast);
    refused += !accepted;
    if (round % 4 != 0) continue;
    const MutableByteView plain = plain_output.last(size);
    ASSERT_EQ(decode_page_plainly(hostile, plain), accepted) << vector.file;
    if (!accepted) continue;
    ASSERT_TRUE(std::equal(fast.begin(), fast.end(), plain.begin())) << vector.file;
  }
  EXPECT_GT(refused, 10000);
}

TEST(FastRound, is_the_same_with_avx512_as_without) {
  const ReadRound read_round_avx512 = find_read_round_avx512();
  if (read_round_avx512 == nullptr) {
    std::cout << "skipped: a round with AVX-512: this processor lacks it\n";
    GTEST_SKIP();
  }
  TestRandom random;
  // Codes with short and long codes and no symbol that stops the rounds.
  static BlockTables tables;
  std::array<std::uint8_t, litlen_symbol_count> litlen{};
  for (unsigned symbol = 0; symbol < 10; ++symbol)
    litlen[random.below(2) == 0 ? symbol : first_length_symbol + symbol] =
        static_cast<std::uint8_t>(symbol + 1);
  litlen[first_length_symbol + 10] = 11;
  std::fill_n(litlen.begin() + 100, 16, std::uint8_t{15});
  ASSERT_TRUE(build_table(litlen, litlen_meanings(), direct_bits, tables.litlen()));
  std::vector<std::uint8_t> distance(distance_symbol_count, 5);
  ASSERT_TRUE(build_table(distance, distance_meanings(), direct_bits, tables.distance()));

  for (int trial = 0; trial < 20000; ++trial) {
    LaneBits from;
    for (unsigned lane = 0; lane < lane_count; ++lane) {
      from.count[lane] = 32 + static_cast<std::uint32_t>(random.below(32));
      // Long codes are all ones: make them likely.
      const std::uint64_t bits = random.below(4) == 0 ? ~std::uint64_t{0} : random.next();
      from.bits[lane] = bits >> (64 - from.count[lane]);
    }
    const Bytes words = random.bytes(lane_count * word_size_bytes);
    const auto begun = static_cast<std::uint32_t>(random.next());
    LaneBits to, to_avx512;
    Round round, round_avx512;
    const Byte* next = words.data();
    const Byte* next_avx512 = words.data();
    const TableEntry flags = read_round_portable(tables, from, begun, next, to, round);
    const TableEntry flags_avx512 =
        read_round_avx512(tables, from, begun, next_avx512, to_avx512, round_avx512);
    ASSERT_EQ(flags & unusual_flags, 0u);
    ASSERT_EQ(flags_avx512 & unusual_flags, 0u);
    ASSERT_EQ(next, next_avx512);
    ASSERT_EQ(to.bits, to_avx512.bits);
    ASSERT_EQ(to.count, to_avx512.count);
    ASSERT_EQ(round.matches, round_avx512.matches);
    ASSERT_EQ(round.item_count, round_avx512.item_count);
    ASSERT_EQ(round.size, round_avx512.size);
    ASSERT_EQ(round.values, round_avx512.values);
    for (unsigned lane = 0; lane < lane_count; ++lane) {
      if (begun >> lane & 1) continue;
      const unsigned item = round.items[lane];
      ASSERT_EQ(round_avx512.items[lane], item);
      if (!(round.matches >> lane & 1)) {
        ASSERT_EQ(round.literals[item], round_avx512.literals[item]);
      }
    }
  }
}

}  // namespace
}  // namespace nacre::engine::gdeflate
