// SPDX-License-Identifier: Apache-2.0
// The parts of the GDeflate encoder: Huffman codes, symbols, matches and the dealing out of bits.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <numeric>
#include <vector>

#include "gpu_engine/codec/gdeflate/block_codes.h"
#include "gpu_engine/codec/gdeflate/block_split.h"
#include "gpu_engine/codec/gdeflate/decode_table.h"
#include "gpu_engine/codec/gdeflate/entropy.h"
#include "gpu_engine/codec/gdeflate/huffman_code.h"
#include "gpu_engine/codec/gdeflate/items.h"
#include "gpu_engine/codec/gdeflate/lanes.h"
#include "gpu_engine/codec/gdeflate/match_finder.h"
#include "gpu_engine/codec/gdeflate/page_writer.h"
#include "tests/gpu_engine/test_data.h"

namespace nacre::engine::gdeflate {
namespace {

std::vector<std::uint8_t> sizes_of(const std::vector<std::uint32_t>& counts, unsigned size_max) {
  std::vector<std::uint8_t> sizes(counts.size(), 0xee);
  make_code_sizes(counts, size_max, sizes);
  return sizes;
}

std::size_t total_bits(const std::vector<std::uint32_t>& counts,
                       const std::vector<std::uint8_t>& sizes) {
  std::size_t bits = 0;
  for (std::size_t i = 0; i < counts.size(); ++i)
    bits += std::size_t{counts[i]} * sizes[i];
  return bits;
}

// The least total of any code with this limit: package-merge (Larmore and Hirschberg, 1990). A
// package is the sum of its counts.
std::size_t least_total_bits(std::vector<std::uint32_t> counts, unsigned size_max) {
  std::erase(counts, 0u);
  std::sort(counts.begin(), counts.end());
  std::vector<std::size_t> list(counts.begin(), counts.end());
  for (unsigned size = 1; size < size_max; ++size) {
    std::vector<std::size_t> packages(counts.begin(), counts.end());
    for (std::size_t i = 0; i + 1 < list.size(); i += 2)
      packages.push_back(list[i] + list[i + 1]);
    std::sort(packages.begin(), packages.end());
    list = packages;
  }
  const auto taken = static_cast<std::ptrdiff_t>(2 * (counts.size() - 1));
  return std::accumulate(list.begin(), list.begin() + taken, std::size_t{0});
}

void expect_complete(const std::vector<std::uint32_t>& counts,
                     const std::vector<std::uint8_t>& sizes, unsigned size_max) {
  std::size_t taken = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    ASSERT_LE(sizes[i], size_max);
    ASSERT_TRUE(counts[i] == 0 || sizes[i] > 0) << i;
    if (sizes[i] != 0) taken += std::size_t{1} << (size_max - sizes[i]);
  }
  ASSERT_EQ(taken, std::size_t{1} << size_max);
}

TEST(HuffmanCode, is_complete_and_of_least_total_size) {
  TestRandom random;
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::uint32_t> counts(2 + random.below(litlen_symbol_count - 1));
    const std::size_t range = std::size_t{1} << random.below(17);
    for (auto& count : counts)
      count = random.below(3) == 0 ? 0 : static_cast<std::uint32_t>(random.below(range));
    counts[0] = counts[1] = 1;
    const auto sizes = sizes_of(counts, code_size_bits_max);
    expect_complete(counts, sizes, code_size_bits_max);
    if (HasFatalFailure()) return;
    const std::size_t least = least_total_bits(counts, code_size_bits_max);
    ASSERT_GE(total_bits(counts, sizes), least);
    ASSERT_LE(total_bits(counts, sizes), least + least / 1000) << round;
  }
}

TEST(HuffmanCode, keeps_the_limit_where_counts_grow_like_fibonacci_numbers) {
  for (const unsigned size_max : {7u, 15u}) {
    for (std::size_t symbols = 2; symbols <= (size_max == 7 ? 19u : 24u); ++symbols) {
      std::vector<std::uint32_t> counts(symbols, 1);
      for (std::size_t i = 2; i < symbols; ++i)
        counts[i] = counts[i - 1] + counts[i - 2];
      const auto sizes = sizes_of(counts, size_max);
      expect_complete(counts, sizes, size_max);
      if (HasFatalFailure()) return;
      const std::size_t least = least_total_bits(counts, size_max);
      EXPECT_GE(total_bits(counts, sizes), least);
      EXPECT_LE(total_bits(counts, sizes), least + least / (size_max == 7 ? 8 : 50)) << symbols;
    }
  }
}

TEST(HuffmanCode, of_fewer_than_two_symbols_is_complete_all_the_same) {
  for (const std::size_t symbol : {0u, 1u, 2u, 31u}) {
    std::vector<std::uint32_t> counts(32);
    expect_complete(counts, sizes_of(counts, code_size_bits_max), code_size_bits_max);
    counts[symbol] = 5;
    const auto sizes = sizes_of(counts, code_size_bits_max);
    expect_complete(counts, sizes, code_size_bits_max);
    EXPECT_EQ(sizes[symbol], 1);
  }
}

TEST(HuffmanCode, is_the_one_that_the_decoder_makes_of_its_sizes) {
  TestRandom random;
  DecodeTable table;
  for (int round = 0; round < 200; ++round) {
    std::vector<std::uint32_t> counts(litlen_symbol_count);
    for (auto& count : counts)
      count = static_cast<std::uint32_t>(random.next() >> random.below(64)) & 0xffff;
    const auto sizes = sizes_of(counts, code_size_bits_max);
    std::vector<std::uint16_t> codes(counts.size());
    assign_codes(sizes, codes);
    ASSERT_TRUE(build_table(sizes, litlen_meanings(), direct_bits, table));
    for (std::size_t symbol = 0; symbol < counts.size(); ++symbol) {
      if (sizes[symbol] == 0) continue;
      const std::uint64_t bits = codes[symbol] | random.next() << sizes[symbol];
      const TableEntry entry = look_up(table.data(), bits);
      ASSERT_EQ(entry_code_bits(entry), sizes[symbol]);
      ASSERT_EQ(entry_value(entry), entry_value(litlen_meanings()[symbol]));
    }
  }
}

TEST(Items, know_the_symbol_of_every_length_and_distance) {
  for (unsigned size = match_size_min; size <= match_size_max; ++size) {
    const ExtraBits symbol = length_symbols[length_symbol(size)];
    ASSERT_GE(size, symbol.base);
    ASSERT_LT(size - symbol.base, 1u << symbol.bits);
    ASSERT_EQ(item_value(make_match(size, 1)), size);
  }
  for (unsigned distance = 1; distance <= distance_max; ++distance) {
    const ExtraBits symbol = distance_symbols[distance_symbol(distance)];
    ASSERT_GE(distance, symbol.base);
    ASSERT_LT(distance - symbol.base, 1u << symbol.bits);
    ASSERT_EQ(match_distance(make_match(3, distance)), distance);
  }
}

TEST(Entropy, is_that_of_the_definition) {
  TestRandom random;
  for (int round = 0; round < 200; ++round) {
    std::array<std::uint32_t, 256> counts{};
    double sum = 0;
    for (auto& count : counts)
      sum += count = static_cast<std::uint32_t>(random.below(1 + random.below(500)));
    double bits = 0;
    for (const std::uint32_t count : counts)
      if (count != 0) bits -= count * std::log2(count / sum);
    EXPECT_NEAR(double{1} * entropy_cost(counts) / cost_of_a_bit, bits, 1 + bits / 500);
  }
  EXPECT_EQ(entropy_cost({}), 0u);
}

// Reads the description of a block's codes plainly, and counts the bits.
struct CodeReader {
  Lanes lanes;
  std::size_t bits = 0;
  std::vector<std::uint8_t> lengths;
  unsigned litlen_count = 0;

  unsigned take(unsigned lane, unsigned count) {
    bits += count;
    const unsigned taken = lanes.take(lane, count);
    lanes.refill(lane);
    return taken;
  }
  explicit CodeReader(ByteView page) : lanes(page) {
    litlen_count = first_length_symbol + take(0, 5);
    const unsigned count = litlen_count + 1 + take(0, 5);
    const unsigned size_count = 4 + take(0, 4);
    std::array<std::uint8_t, code_length_symbol_count> sizes{};
    for (unsigned i = 0; i < size_count; ++i)
      sizes[code_length_order[i]] = static_cast<std::uint8_t>(take(i, 3));
    static DecodeTable table;
    EXPECT_TRUE(build_table(sizes, code_length_meanings(), code_length_code_size_bits_max, table));
    for (unsigned lane = 0; lengths.size() < count; lane = (lane + 1) % lane_count) {
      const TableEntry entry = table[lanes.bits[lane] % (1u << code_length_code_size_bits_max)];
      take(lane, entry_code_bits(entry));
      const unsigned symbol = entry_value(entry);
      if (symbol == code_length_repeat)
        lengths.insert(lengths.end(), 3 + take(lane, 2), std::uint8_t{lengths.back()});
      else if (symbol == code_length_zeros)
        lengths.insert(lengths.end(), 3 + take(lane, 3), std::uint8_t{0});
      else if (symbol == code_length_many_zeros)
        lengths.insert(lengths.end(), 11 + take(lane, 7), std::uint8_t{0});
      else
        lengths.push_back(static_cast<std::uint8_t>(symbol));
    }
    EXPECT_EQ(lengths.size(), count);
  }
};

TEST(DynamicCodes, are_described_in_as_many_bits_as_they_say) {
  TestRandom random;
  for (int round = 0; round < 500; ++round) {
    SymbolCounts counts;
    const std::size_t rarity = 1 + random.below(100);
    for (auto& count : counts.litlen)
      count = random.below(rarity) == 0 ? static_cast<std::uint32_t>(random.below(1000)) : 0;
    for (auto& count : counts.distance)
      count = random.below(rarity) == 0 ? static_cast<std::uint32_t>(random.below(100)) : 0;
    counts.litlen[end_of_block] = 1;
    const DynamicCodes codes(counts);
    Bytes page(PageWriter::page_size_bound(codes.header_bits()));
    PageWriter writer(page.data());
    codes.write_header(writer);
    const std::size_t size = writer.finish();
    ASSERT_LE(size, page.size());

    const CodeReader read(ByteView(page).first(size));
    ASSERT_EQ(read.bits, codes.header_bits());
    ASSERT_TRUE(read.lanes.at_end());
    std::vector<std::uint8_t> litlen(read.lengths.begin(),
                                     read.lengths.begin() + read.litlen_count);
    std::vector<std::uint8_t> distance(read.lengths.begin() + read.litlen_count,
                                       read.lengths.end());
    litlen.resize(litlen_symbol_count);
    distance.resize(distance_symbol_count);
    ASSERT_TRUE(std::equal(litlen.begin(), litlen.end(), codes.codes().litlen_sizes.begin()));
    ASSERT_TRUE(std::equal(distance.begin(), distance.end(), codes.codes().distance_sizes.begin()));
  }
}

TEST(MatchFinder, finds_only_what_is_there_and_ever_longer) {
  TestRandom random;
  static MatchFinder finder;
  std::array<Match, 24> matches;
  std::size_t found = 0;
  for (const std::size_t size : {4u, 5u, 100u, 5000u, 65536u}) {
    Bytes plain = make_data(DataKind::mixed, size, random);
    const auto expect_match = [&](std::size_t at, const Match& match) {
      ASSERT_GE(match.distance, 1u);
      ASSERT_LE(match.distance, at);
      ASSERT_GE(match.size, match_size_min);
      ASSERT_LE(match.size, plain.size() - at);
      ASSERT_TRUE(std::equal(plain.begin() + at, plain.begin() + at + match.size,
                             plain.begin() + at - match.distance));
    };
    finder.begin(plain);
    for (std::size_t at = 1; at < size; ++at) {
      const std::size_t count = finder.find_all(at, 64, 258, matches);
      for (std::size_t i = 0; i < count; ++i) {
        expect_match(at, matches[i]);
        ASSERT_TRUE(i == 0 || matches[i].size > matches[i - 1].size);
        if (HasFatalFailure()) return;
      }
      found += count;
    }
    finder.begin(plain);
    for (std::size_t at = 1; at < size; ++at) {
      const std::size_t size_min = random.below(8);
      const Match match = finder.find_longest(at, std::max<std::size_t>(2, size_min), 16, 64);
      if (match.size == 0) continue;
      expect_match(at, match);
      if (HasFatalFailure()) return;
      ASSERT_GT(match.size, std::max<std::size_t>(2, size_min));
    }
  }
  EXPECT_GT(found, 50000u);
}

std::vector<Item> random_literals(std::size_t count, unsigned first, unsigned alphabet,
                                  TestRandom& random) {
  std::vector<Item> items(count);
  for (Item& item : items)
    item = first + static_cast<Item>(random.below(alphabet));
  return items;
}

TEST(BlockSplit, is_where_the_symbols_change) {
  TestRandom random;
  static BlockSplit split;
  std::vector<Item> items = random_literals(16384, 0, 8, random);
  split_blocks(items, split);
  EXPECT_EQ(split.block_count, 1u);

  // Pieces of 1024 items, of which blocks are put together.
  items.resize(8192);
  for (const auto& more :
       {random_literals(4096, 100, 8, random), random_literals(4096, 0, 8, random)})
    items.insert(items.end(), more.begin(), more.end());
  split_blocks(items, split);
  ASSERT_EQ(split.block_count, 3u);
  EXPECT_EQ(split.ends[0], 8192u);
  EXPECT_EQ(split.ends[1], 12288u);
  EXPECT_EQ(split.ends[2], 16384u);
  for (std::size_t block = 0, start = 0; block < 3; start = split.ends[block++]) {
    SymbolCounts counts;
    for (std::size_t i = start; i < split.ends[block]; ++i)
      counts.add(items[i]);
    counts.litlen[end_of_block] = 1;
    EXPECT_EQ(split.counts[block].litlen, counts.litlen);
  }
}

TEST(BlockSplit, of_few_items_or_none_is_one_block) {
  TestRandom random;
  static BlockSplit split;
  for (const std::size_t count : {0u, 1u, 1000u}) {
    split_blocks(random_literals(count, 0, 256, random), split);
    ASSERT_EQ(split.block_count, 1u);
    EXPECT_EQ(split.ends[0], count);
    EXPECT_EQ(split.counts[0].litlen[end_of_block], 1u);
  }
}

TEST(BlockSplit, of_literals_is_where_the_bytes_change) {
  TestRandom random;
  static BlockSplit split;
  Bytes plain(65535);
  for (std::size_t i = 0; i < plain.size(); ++i)
    plain[i] = static_cast<Byte>(random.below(8) + (i < 32766 ? 0 : 100));
  split_literals(plain, split);
  ASSERT_EQ(split.block_count, 2u);
  EXPECT_EQ(split.ends[0], 32766u);  // two of four blocks
  EXPECT_EQ(split.ends[1], plain.size());
  for (std::size_t block = 0, start = 0; block < 2; start = split.ends[block++]) {
    SymbolCounts counts;
    for (std::size_t i = start; i < split.ends[block]; ++i)
      counts.add(plain[i]);
    counts.litlen[end_of_block] = 1;
    EXPECT_EQ(split.counts[block].litlen, counts.litlen);
  }

  for (const std::size_t size : {0u, 1u, 3u, 4u, 5u, 129u, 65536u}) {
    split_literals(Bytes(size, 7), split);
    ASSERT_EQ(split.block_count, 1u) << size;
    EXPECT_EQ(split.ends[0], size);
    EXPECT_EQ(split.counts[0].litlen[7], size);
    EXPECT_EQ(split.counts[0].litlen[end_of_block], 1u);
  }
}

// A page made plainly: the bits of each lane are dealt out to words one by one, as format.h
// describes it.
class PlainPage {
 public:
  PlainPage() {
    for (unsigned lane = 0; lane < lane_count; ++lane)
      words_.push_back(0);
    for (unsigned lane = 0; lane < lane_count; ++lane)
      places_[lane] = {lane};
  }
  void put(unsigned lane, LaneCode code) {
    for (unsigned i = 0; i < code.count; ++i, ++counts_[lane]) {
      if (counts_[lane] % word_bits == 0) {  // fewer than 32 will be left
        places_[lane].push_back(words_.size());
        words_.push_back(0);
      }
      words_[places_[lane][counts_[lane] / word_bits]] |= (code.bits >> i & 1)
                                                          << counts_[lane] % word_bits;
    }
  }
  const std::vector<std::uint32_t>& words() const { return words_; }

 private:
  std::vector<std::uint32_t> words_;
  std::array<std::vector<std::size_t>, lane_count> places_;
  std::array<std::size_t, lane_count> counts_{};
};

RoundCodes random_round(TestRandom& random) {
  RoundCodes round;
  for (LaneCode& code : round.lanes) {
    const auto count = static_cast<std::uint32_t>(random.below(32));
    code = {static_cast<std::uint32_t>(random.next()) & ((1u << count) - 1), count};
  }
  return round;
}

TEST(PageWriter, gives_each_lane_its_words_in_the_order_of_their_need) {
  TestRandom random;
  for (int trial = 0; trial < 200; ++trial) {
    Bytes page(PageWriter::page_size_bound(40 * lane_count * 31));
    PageWriter writer(page.data());
    PlainPage expected;
    const std::size_t rounds = random.below(40);
    for (std::size_t i = 0; i < rounds; ++i) {
      const RoundCodes round = random_round(random);
      if (random.below(2) == 0) {
        writer.put_round(round);
      } else {
        for (unsigned lane = 0; lane < lane_count; ++lane)
          writer.put(lane, round.lanes[lane]);
      }
      for (unsigned lane = 0; lane < lane_count; ++lane)
        expected.put(lane, round.lanes[lane]);
    }
    const std::size_t size = writer.finish();
    ASSERT_EQ(size, expected.words().size() * word_size_bytes);
    for (std::size_t i = 0; i < expected.words().size(); ++i)
      ASSERT_EQ(load_le<std::uint32_t>(page.data() + i * word_size_bytes), expected.words()[i]);
  }
}

TEST(PageWriter, puts_rounds_the_same_with_avx512_as_without) {
  const PutRound put_round_avx512 = find_put_round_avx512();
  if (put_round_avx512 == nullptr) {
    std::cout << "skipped: putting a round with AVX-512: this processor lacks it\n";
    GTEST_SKIP();
  }
  TestRandom random;
  const auto begin = [](Bytes& page) {
    OpenLanes lanes{};
    lanes.counts.fill(word_bits);
    std::iota(lanes.open.begin(), lanes.open.end(), 0u);
    lanes.following = lanes.open;
    lanes.next = lane_count;
    lanes.to = page.data();
    return lanes;
  };
  for (int trial = 0; trial < 200; ++trial) {
    Bytes portable_page(PageWriter::page_size_bound(50 * lane_count * 31));
    Bytes avx512_page(portable_page.size());
    OpenLanes portable = begin(portable_page);
    OpenLanes avx512 = begin(avx512_page);
    for (int i = 0; i < 50; ++i) {
      const RoundCodes round = random_round(random);
      put_round_portable(portable, round);
      put_round_avx512(avx512, round);
      ASSERT_EQ(portable.bits, avx512.bits);
      ASSERT_EQ(portable.counts, avx512.counts);
      ASSERT_EQ(portable.open, avx512.open);
      ASSERT_EQ(portable.following, avx512.following);
      ASSERT_EQ(portable.next, avx512.next);
    }
    // The portable writer stores open words again and again. So only the full words of both are
    // compared.
    for (unsigned lane = 0; lane < lane_count; ++lane)
      for (const std::uint32_t place : {portable.open[lane], portable.following[lane]}) {
        store_le(portable_page.data() + place * word_size_bytes, 0u);
        store_le(avx512_page.data() + place * word_size_bytes, 0u);
      }
    ASSERT_TRUE(portable_page == avx512_page);
  }
}

}  // namespace
}  // namespace nacre::engine::gdeflate
