// SPDX-License-Identifier: Apache-2.0
// The code that the lanes of a device's warp run to decode GDeflate pages, run by the lanes of a
// warp on the host: it must take the pages that the plain decoder takes, give the same bytes, and
// touch nothing outside the page and the plain bytes.
#include <gtest/gtest.h>

#include <iostream>

#include "gpu_engine/checksum/crc32.h"
#include "gpu_engine/codec/gdeflate/decode_table.h"
#include "gpu_engine/cuda/kernels/gdeflate_decoder.cuh"
#include "tests/gpu_engine/gdeflate_pages.h"
#include "tests/gpu_engine/guarded_memory.h"
#include "tests/gpu_engine/host_warp.h"

namespace nacre::engine {
namespace {

using cuda::gdeflate::PageMemory;
using gdeflate::encode_to_page;
using gdeflate::judge_page;
using Lane = HostWarp::Lane;

class GdeflateLanes : public testing::Test {
 protected:
#ifdef __SANITIZE_THREAD__
  void SetUp() override {
    std::cout << "skipped: lanes on the host: ThreadSanitizer cannot follow their stacks\n";
    GTEST_SKIP();
  }
#endif

  // The bytes that the lanes decode from a page; none if they refuse it.
  std::optional<Bytes> decode(ByteView page, std::size_t plain_size) {
    const MutableByteView in = in_.last(page.size());
    const MutableByteView out = out_.last(plain_size);
    std::copy(page.begin(), page.end(), in.begin());
    const cuda::CodecTask task = {.in = in.data(),
                                  .out = out.data(),
                                  .in_size = static_cast<std::uint32_t>(in.size()),
                                  .out_size = static_cast<std::uint32_t>(out.size())};
    std::array<bool, HostWarp::lane_count> valid{};
    memory_ = {};
    HostWarp warp(random_.next());
    warp.run(
        [&](Lane lane) { valid[lane.lane()] = cuda::gdeflate::decode_page(lane, memory_, task); });
    EXPECT_TRUE(warp_.met_alike());
    for (const bool lane_valid : valid)
      EXPECT_EQ(lane_valid, valid[0]);
    if (!valid[0]) return std::nullopt;
    return Bytes(out.begin(), out.end());
  }

  TestRandom random_;
  HostWarp warp_{random_.next()};
  GuardedMemory in_{1u << 18};
  GuardedMemory out_{gdeflate::page_plain_size_max};
  PageMemory memory_;
};

TEST_F(GdeflateLanes, know_what_symbols_mean) {
  using namespace cuda::gdeflate;
  for (unsigned i = 0; i < code_length_symbol_count; ++i)
    EXPECT_EQ(code_length_symbol_at(i), code_length_order[i]);
  for (unsigned i = 0; i < length_symbol_count; ++i) {
    EXPECT_EQ(length_value(i).base(match_size_min), length_symbols[i].base);
    EXPECT_EQ(length_value(i).extra_bits, length_symbols[i].bits);
  }
  for (unsigned i = 0; i < distance_symbol_count; ++i) {
    EXPECT_EQ(distance_value(i).base(first_distance), distance_symbols[i].base);
    EXPECT_EQ(distance_value(i).extra_bits, distance_symbols[i].bits);
  }
}

// Sizes of a complete code, split at random, many of them long.
std::vector<std::uint8_t> random_complete_code(std::size_t code_count, TestRandom& random) {
  std::vector<std::uint8_t> sizes = {1, 1};
  const bool is_deep = random.below(2) == 0;
  while (sizes.size() < code_count) {
    std::size_t at = random.below(sizes.size());
    if (is_deep && random.below(3) != 0) at = sizes.size() - 1;
    if (sizes[at] == gdeflate::code_size_bits_max) {
      at = 0;
      while (sizes[at] == gdeflate::code_size_bits_max)
        ++at;
    }
    ++sizes[at];
    sizes.push_back(sizes[at]);
  }
  return sizes;
}

template <std::uint32_t direct_bits, typename Meanings>
bool build(PageMemory& memory, const std::vector<std::uint8_t>& sizes, std::uint32_t table_at,
           std::uint32_t entry_count, std::uint64_t seed) {
  std::copy(sizes.begin(), sizes.end(), memory.code_sizes);
  std::array<bool, HostWarp::lane_count> built{};
  HostWarp warp(seed);
  warp.run([&](Lane lane) {
    built[lane.lane()] =
        cuda::gdeflate::TableBuilder<Lane, direct_bits, Meanings>(lane, memory, table_at)
            .build(memory.code_sizes, static_cast<std::uint32_t>(sizes.size()), entry_count);
  });
  EXPECT_TRUE(warp.met_alike());
  for (const bool lane_built : built)
    EXPECT_EQ(lane_built, built[0]);
  return built[0];
}

// Compares, for all values of 15 bits, the code with which they begin: its size, and the value of a
// literal or of a length without extra bits.
void expect_same_codes(const PageMemory& memory, const gdeflate::DecodeTable& table) {
  using namespace cuda::gdeflate;
  for (std::uint32_t bits = 0; bits < 1u << code_size_bits_max; ++bits) {
    const gdeflate::TableEntry expected = gdeflate::look_up(table.data(), bits);
    const std::uint32_t entry = look_up_code(memory.tables, bits, 0, litlen_shape.direct_bits);
    if (expected & entry_is_unusable) {
      ASSERT_EQ(entry & ~15u, unusable_meaning);
      continue;
    }
    ASSERT_EQ(code_bits_of(entry), entry_code_bits(expected)) << bits;
    if (expected & entry_is_end) {
      ASSERT_EQ(entry & ~15u, end_meaning);
    } else if (expected & entry_is_match) {
      ASSERT_EQ(entry_kind(entry), EntryKind::value);
      const SymbolValue value = {entry_payload(entry) / 32, entry_payload(entry) % 32};
      ASSERT_EQ(value.base(match_size_min), entry_value(expected));
      ASSERT_EQ(value.extra_bits, entry_all_bits(expected) - entry_code_bits(expected));
    } else {
      ASSERT_EQ(entry_kind(entry), EntryKind::literal);
      ASSERT_EQ(entry_payload(entry), entry_value(expected));
    }
  }
}

TEST_F(GdeflateLanes, build_the_table_of_any_code) {
  using namespace cuda::gdeflate;
  static gdeflate::DecodeTable table;
  int refused = 0;
  for (int round = 0; round < 64; ++round) {
    std::vector<std::uint8_t> sizes =
        random_complete_code(2 + random_.below(litlen_symbol_count_max - 1), random_);
    while (sizes.size() < litlen_symbol_count_max && random_.below(8) != 0)
      sizes.insert(sizes.begin() + static_cast<std::ptrdiff_t>(random_.below(sizes.size())), 0);
    std::shuffle(sizes.begin(), sizes.end(), std::mt19937_64(random_.next()));
    if (round % 8 == 1) sizes[random_.below(sizes.size())] ^= 1;
    if (round % 8 == 2) sizes.assign(sizes.size(), 0);
    if (round % 16 == 2) sizes[random_.below(sizes.size())] = 1;
    const bool valid =
        gdeflate::build_table(sizes, gdeflate::litlen_meanings(), gdeflate::direct_bits, table);
    memory_ = {};
    const bool built = build<litlen_shape.direct_bits, LitlenMeanings>(
        memory_, sizes, 0, litlen_shape.entry_count, random_.next());
    ASSERT_EQ(built, valid);
    refused += !valid;
    if (!valid) continue;
    ASSERT_NO_FATAL_FAILURE(expect_same_codes(memory_, table));
  }
  EXPECT_GT(refused, 5);
}

TEST_F(GdeflateLanes, decode_the_pages_of_the_reference_codec) {
  // Only a few of the large pages, since lanes on the host are slow.
  std::vector<GdeflateVector> vectors = read_gdeflate_vectors();
  std::shuffle(vectors.begin(), vectors.end(), std::mt19937_64(random_.next()));
  int small = 0;
  int large = 0;
  for (const GdeflateVector& vector : vectors) {
    if (vector.plain_size > 10000 && large == 3) continue;
    ++(vector.plain_size > 10000 ? large : small);
    const std::optional<Bytes> plain = decode(vector.page, vector.plain_size);
    ASSERT_TRUE(plain.has_value()) << vector.file;
    EXPECT_EQ(crc32(0, *plain), vector.plain_crc) << vector.file;
  }
  EXPECT_GT(small + large, 10);
}

TEST_F(GdeflateLanes, decode_what_the_cpu_encodes) {
  const std::vector<Bytes> samples = read_corpus_samples();
  int decoded = 0;
  for (int round = 0; round < 60; ++round) {
    const std::size_t size = 1 + random_.below(round % 10 == 0 ? 20000 : 4000);
    Bytes plain;
    switch (round % 4) {
      case 0: {
        const Bytes& sample = samples[random_.below(samples.size())];
        const std::size_t from = random_.below(sample.size() - size);
        plain.assign(sample.begin() + static_cast<std::ptrdiff_t>(from),
                     sample.begin() + static_cast<std::ptrdiff_t>(from + size));
        break;
      }
      case 1:
        plain = make_data(data_kinds[random_.below(data_kinds.size())], size, random_);
        break;
      case 2:
        plain = gdeflate::make_periodic(size, 1 + random_.below(70), random_);
        break;
      default:
        plain = gdeflate::make_skewed(size, random_);
    }
    const Bytes page = encode_to_page(plain, round % 10);
    if (page.empty()) continue;
    ASSERT_EQ(decode(page, size), plain) << "level " << round % 10 << ", size " << size;
    ++decoded;
  }
  EXPECT_GT(decoded, 30);
}

TEST_F(GdeflateLanes, decode_stored_and_fixed_blocks) {
  for (std::size_t size : {0, 1, 31, 32, 33, 1000, 3001}) {
    const Bytes plain = random_.bytes(size);
    const Bytes page = gdeflate::write_plain_blocks(plain, random_);
    ASSERT_EQ(judge_page(page, size), plain);
    ASSERT_EQ(decode(page, size), plain);
  }
}

TEST_F(GdeflateLanes, refuse_sizes_that_no_page_has) {
  const Bytes plain = make_data(DataKind::text, 3000, random_);
  Bytes page = encode_to_page(plain, 6);
  ASSERT_TRUE(decode(page, plain.size()).has_value());
  for (const std::size_t size : {0u, 2999u, 3001u, 65536u})
    EXPECT_FALSE(decode(page, size).has_value()) << size;
  for (const std::size_t size : {0u, 1u, 4u, 124u, 127u, 128u})
    EXPECT_FALSE(decode(ByteView(page).first(size), plain.size()).has_value()) << size;
  EXPECT_FALSE(decode(ByteView(page).first(page.size() - 1), plain.size()).has_value());
  EXPECT_FALSE(decode(ByteView(page).first(page.size() - 4), plain.size()).has_value());
  page.resize(page.size() + 4);
  EXPECT_FALSE(decode(page, plain.size()).has_value());
}

TEST_F(GdeflateLanes, judge_hostile_pages_as_the_plain_decoder_does) {
  int refused = 0;
  for (int round = 0; round < 200; ++round) {
    const std::size_t size = 140 + random_.below(700);
    Bytes plain = round % 3 == 0 ? gdeflate::make_periodic(size, 1 + random_.below(70), random_)
                                 : make_data(DataKind::text, size, random_);
    Bytes page = round % 5 == 0 ? gdeflate::write_plain_blocks(plain, random_)
                                : encode_to_page(plain, round % 10);
    if (page.empty()) continue;
    mutate(page, random_);
    if (random_.below(8) != 0) page.resize(page.size() / 4 * 4);
    const std::optional<Bytes> expected = judge_page(page, size);
    ASSERT_EQ(decode(page, size), expected) << "round " << round;
    refused += !expected;
  }
  EXPECT_GT(refused, 50);
}

}  // namespace
}  // namespace nacre::engine
