// SPDX-License-Identifier: Apache-2.0
// Hostile streams: an error or some bytes of the asked-for size, never more and never a crash.
// Inputs and outputs end at a guard page, so that one byte too far is a fault in any build.
#include <gtest/gtest.h>

#include <algorithm>

#include "gpu_engine/codec/codec.h"
#include "tests/gpu_engine/guarded_memory.h"
#include "tests/gpu_engine/test_data.h"
#include "tests/support/error_of.h"

namespace nacre::engine {
namespace {

void attack(Codec codec) {
  TestRandom random;
  constexpr std::size_t plain_size_max = 140000;
  GuardedMemory input(2 * plain_size_max);
  GuardedMemory output(plain_size_max + 1);
  int refused = 0;
  for (int round = 0; round < 20000; ++round) {
    const std::size_t plain_size = 1 + random.below(round % 50 == 0 ? plain_size_max : 2000);
    const Bytes plain = make_data(data_kinds[random.below(data_kinds.size())], plain_size, random);
    Bytes stream(stream_size_bound(codec, plain_size));
    stream.resize(compress(codec, 0, plain, stream).value());
    mutate(stream, random);
    const MutableByteView hostile = input.last(stream.size());
    std::copy(stream.begin(), stream.end(), hostile.begin());
    const std::size_t asked = plain_size - random.below(2) * random.below(plain_size);
    refused += !decompress(codec, hostile, output.last(asked)).has_value();
  }
  EXPECT_GT(refused, 2000) << "the mutations must reach the decoder's checks";
}

TEST(HostileStream, never_makes_lz77_leave_its_memory) {
  attack(Codec::lz77);
}

TEST(HostileStream, never_makes_zstd_leave_its_memory) {
  attack(Codec::zstd);
}

TEST(HostileStream, never_makes_rle_leave_its_memory) {
  attack(Codec::rle);
}

TEST(HostileStream, never_makes_lzw_leave_its_memory) {
  attack(Codec::lzw);
}

TEST(HostileStream, never_makes_huffman_leave_its_memory) {
  attack(Codec::huffman);
}

TEST(HostileStream, never_makes_gdeflate_leave_its_memory) {
  attack(Codec::gdeflate);
}

TEST(HostileStream, of_random_bytes_is_refused_or_decodes_to_the_asked_size) {
  TestRandom random;
  GuardedMemory input(4096);
  GuardedMemory output(70000);
  for (int round = 0; round < 20000; ++round) {
    const MutableByteView hostile = input.last(random.below(200));
    random.fill(hostile);
    // A plausible first word lets the bytes reach the decoders of sub-blocks.
    if (hostile.size() > 4 && random.below(2) == 0)
      store_le(hostile.data(), static_cast<std::uint32_t>(hostile.size() - 4));
    constexpr std::array codecs = {Codec::lz77,    Codec::zstd,     Codec::rle,
                                   Codec::huffman, Codec::gdeflate, Codec::lzw};
    const Codec codec = codecs[random.below(codecs.size())];
    static_cast<void>(decompress(codec, hostile, output.last(random.below(70000))));
  }
}

TEST(HostileStream, with_sizes_at_their_limits_is_refused) {
  Bytes plain(70000);
  for (const std::uint32_t word :
       {0u, 1u, 65535u, 65536u, 0x7fffffffu, 0x80000000u, 0x80000001u, 0x80010000u, 0xffffffffu}) {
    Bytes stream(4 + 100);
    store_le(stream.data(), word);
    EXPECT_EQ(error_of(decompress(Codec::lz77, stream, plain)), ErrorCode::corrupt) << word;
    EXPECT_EQ(error_of(decompress(Codec::lz77, ByteView(stream).first(4), plain)),
              ErrorCode::corrupt);
    EXPECT_EQ(error_of(decompress(Codec::lz77, ByteView(stream).first(3), plain)),
              ErrorCode::corrupt);
  }
}

TEST(HostileStream, with_a_coded_sub_block_not_smaller_than_its_plain_bytes_is_refused) {
  // An LZ4 block of five literals takes six bytes: valid LZ4, but to be stored as it is.
  const Bytes stream = {6, 0, 0, 0, 0x50, 'a', 'b', 'c', 'd', 'e'};
  Bytes plain(5);
  EXPECT_EQ(error_of(decompress(Codec::lz77, stream, plain)), ErrorCode::corrupt);
}

TEST(HostileStream, that_expands_without_end_stops_at_the_asked_size) {
  // A run of one byte: a match of 64 KiB at offset 1.
  Bytes stream = {0, 0, 0, 0, 0x1f, 'a', 1, 0};
  stream.insert(stream.end(), 3000, 0xff);
  stream.push_back(0);
  stream.insert(stream.end(), {0x50, 'a', 'a', 'a', 'a', 'a'});
  store_le(stream.data(), static_cast<std::uint32_t>(stream.size() - 4));
  GuardedMemory output(65536);
  for (const std::size_t size : {1u, 100u, 65535u, 65536u})
    EXPECT_EQ(error_of(decompress(Codec::lz77, stream, output.last(size))), ErrorCode::corrupt);
}

}  // namespace
}  // namespace nacre::engine
