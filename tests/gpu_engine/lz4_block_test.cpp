// SPDX-License-Identifier: Apache-2.0
// The rule of docs/FORMAT.md for LZ4 blocks, compared with liblz4. liblz4 accepts every block that
// the rule accepts, so a device that follows the rule accepts no block that the cpu would refuse.
// Every encoder keeps the rule.
#include <gtest/gtest.h>
#include <lz4.h>
#include <lz4hc.h>

#include <algorithm>

#include "gpu_engine/codec/lz4_fast.h"
#include "tests/gpu_engine/lz4_judge.h"
#include "tests/gpu_engine/test_data.h"
#include "tests/gpu_engine/test_engine.h"
#include "tests/gpu_engine/test_payload.h"

namespace nacre::engine {
namespace {

const char* chars(ByteView bytes) {
  return reinterpret_cast<const char*>(bytes.data());
}
char* chars(Bytes& bytes) {
  return reinterpret_cast<char*>(bytes.data());
}

void put_count(Bytes& block, std::size_t count) {
  if (count < 15) return;
  for (count -= 15; count >= 255; count -= 255)
    block.push_back(255);
  block.push_back(static_cast<Byte>(count));
}

// Sequences that mostly give size bytes, whose matches like to end near the end.
Bytes hostile_block(std::size_t size, TestRandom& random) {
  Bytes block;
  std::size_t to = 0;
  while (to < size) {
    std::size_t literals = std::min(size - to, random.below(random.below(4) == 0 ? 41 : 17));
    const std::size_t left = size - to - literals;
    const bool last = left < 4 || random.below(10) == 0;
    if (last) literals = size - to;
    if (to == 0 && literals == 0) literals = 1;
    const std::size_t near_end = left - std::min(left, random.below(20));
    const std::size_t match =
        last ? 4 : std::max<std::size_t>(4, random.below(2) == 0 ? near_end : random.below(40));
    block.push_back(static_cast<Byte>(std::min<std::size_t>(literals, 15) << 4 |
                                      std::min<std::size_t>(match - 4, 15)));
    put_count(block, literals);
    const Bytes taken = random.bytes(literals);
    block.insert(block.end(), taken.begin(), taken.end());
    to += literals;
    if (last) return block;
    const std::size_t distance = 1 + random.below(to + (random.below(100) == 0 ? 2 : 0));
    block.push_back(static_cast<Byte>(distance));
    block.push_back(static_cast<Byte>(distance >> 8));
    put_count(block, match - 4);
    to += match;
  }
  if (random.below(2) == 0) block.push_back(0);
  return block;
}

int by_liblz4(const Bytes& block, Bytes& plain) {
  return LZ4_decompress_safe(chars(block), chars(plain), static_cast<int>(block.size()),
                             static_cast<int>(plain.size()));
}

TEST(Lz4Block, is_taken_by_liblz4_where_the_format_takes_it) {
  TestRandom random;
  int taken = 0;
  int refused = 0;
  for (int round = 0; round < 200000; ++round) {
    const std::size_t size = 1 + random.below(round % 20 == 0 ? 3000 : 140);
    Bytes block = hostile_block(size, random);
    if (round % 4 == 0) mutate(block, random);
    const auto plain = decode_lz4_plainly(block, size);
    (plain ? taken : refused)++;
    if (!plain) continue;
    Bytes judged(size);
    ASSERT_EQ(by_liblz4(block, judged), static_cast<int>(size)) << to_hex(block);
    ASSERT_EQ(judged, *plain) << to_hex(block);
  }
  EXPECT_GT(taken, 10000);
  EXPECT_GT(refused, 10000);
}

TEST(Lz4Block, of_every_encoder_keeps_the_formats_rule) {
  TestRandom random;
  for (int round = 0; round < 2000; ++round) {
    const std::size_t size = 1 + random.below(round % 20 == 0 ? 65536 : 600);
    Bytes plain = make_data(data_kinds[random.below(data_kinds.size())], size, random);
    if (round % 2 == 0) {
      const std::size_t period = 1 + random.below(70);
      for (std::size_t i = period; i < size; ++i)
        plain[i] = plain[i - period];
    }
    const int plain_size = static_cast<int>(size);
    Bytes block(static_cast<std::size_t>(LZ4_compressBound(plain_size)));
    const int room = static_cast<int>(block.size());
    const int thorough = size > 5000 ? 3 : 1 + static_cast<int>(random.below(LZ4HC_CLEVEL_MAX));
    for (int way = 0; way < 3; ++way) {
      block.resize(static_cast<std::size_t>(room));
      block.resize(way == 0   ? encode_lz4_fast(1, plain, block)
                   : way == 1 ? static_cast<std::size_t>(LZ4_compress_default(
                                    chars(plain), chars(block), plain_size, room))
                              : static_cast<std::size_t>(LZ4_compress_HC(
                                    chars(plain), chars(block), plain_size, room, thorough)));
      ASSERT_EQ(decode_lz4_plainly(block, size), plain) << "way " << way << ", " << size;
    }
  }
}

TEST(EngineLz4, refuses_a_block_without_last_literals_on_every_backend) {
  const auto engine = Engine::create({.choice = test_engine_choice()}).value();
  constexpr std::size_t block_size = sizeof lz4_block_without_last_literals;
  Bytes stream(4 + block_size);
  stream[0] = block_size;
  std::ranges::copy(lz4_block_without_last_literals, stream.begin() + 4);
  TestPayload payload(*engine);
  // Enough messages for a device to be given them.
  for (int i = 0; i < 20000; ++i)
    payload.add(Operation::decompress, stream, 32).codec = Codec::lz77;
  engine->run(payload.get());
  for (const MessageResult& result : payload.get().results) {
    ASSERT_FALSE(result.ok);
    ASSERT_EQ(result.error, ErrorCode::corrupt);
  }
}

}  // namespace
}  // namespace nacre::engine
