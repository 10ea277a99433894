// SPDX-License-Identifier: Apache-2.0
// What the DES kernels run in a thread, on the host: the S-boxes' circuits, bitsliced rounds,
// rounds by tables, keys and counters. No device is needed.
#include <gtest/gtest.h>

#include <algorithm>

#include "gpu_engine/cipher/block_cipher.h"
#include "gpu_engine/cuda/kernels/des_serial.h"
#include "gpu_engine/cuda/kernels/des_sliced.h"
#include "tests/gpu_engine/test_data.h"

namespace nacre::engine::cuda {
namespace {

BlockCipher cipher_of(int pass_count) {
  return pass_count == 1 ? BlockCipher::des : BlockCipher::des_ede3;
}

// Blocks under the cpu's cipher.
Bytes judge(int pass_count, ByteView key, Direction direction, ByteView blocks) {
  Bytes out(blocks.size());
  CipherKey::create(cipher_of(pass_count), CipherMode::ecb, key)
      .value()
      ->crypt(direction, {}, blocks, out);
  return out;
}

// Loads a number of 4 or 8 bytes, the highest byte first.
template <typename T>
T load_big_endian(const Byte* bytes) {
  T value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i)
    value = static_cast<T>(value << 8 | bytes[i]);
  return value;
}
template <typename T>
void store_big_endian(Byte* bytes, T value) {
  for (std::size_t i = sizeof(T); i-- > 0; value = static_cast<T>(value >> 8))
    bytes[i] = static_cast<Byte>(value);
}

struct SlicedBlocks {
  std::uint32_t words[64];

  explicit SlicedBlocks(ByteView blocks) {
    for (std::size_t j = 0; j < 32; ++j) {
      words[j] = load_le<std::uint32_t>(&blocks[8 * j]);
      words[32 + j] = load_le<std::uint32_t>(&blocks[8 * j + 4]);
    }
  }
  Bytes bytes() const {
    Bytes blocks(256);
    for (std::size_t j = 0; j < 32; ++j) {
      store_le(&blocks[8 * j], words[j]);
      store_le(&blocks[8 * j + 4], words[32 + j]);
    }
    return blocks;
  }
};

TEST(DesCircuits, functions_of_three_bits_are_what_their_tables_say) {
  // Bit 4 a + 2 b + c of each operand holds a, b and c.
  EXPECT_EQ(lut3<0x00>(0xf0, 0xcc, 0xaa) & 0xff, 0x00u);
  EXPECT_EQ(lut3<0x96>(0xf0, 0xcc, 0xaa) & 0xff, 0x96u);
  EXPECT_EQ(lut3<0xca>(0xf0, 0xcc, 0xaa) & 0xff, 0xcau);
  EXPECT_EQ(lut3<0x1d>(0xf0, 0xcc, 0xaa) & 0xff, 0x1du);
  EXPECT_EQ(lut3<0xfe>(0xf0, 0xcc, 0xaa) & 0xff, 0xfeu);
}

template <int box>
void compare_circuit_with_table() {
  SCOPED_TRACE(box);
  // All 64 inputs, half of them at a time.
  for (std::uint32_t half = 0; half < 2; ++half) {
    std::uint32_t x[6] = {}, out[4];
    for (std::uint32_t place = 0; place < 32; ++place) {
      for (int i = 0; i < 6; ++i)
        x[i] |= ((32 * half + place) >> (5 - i) & 1) << place;
    }
    des_sbox<box>(x[0], x[1], x[2], x[3], x[4], x[5], out);
    for (std::uint32_t place = 0; place < 32; ++place) {
      std::uint32_t four = 0;
      for (const std::uint32_t word : out)
        four = four << 1 | (word >> place & 1);
      EXPECT_EQ(four, des_substitute(box, 32 * half + place)) << 32 * half + place;
    }
  }
}

TEST(DesCircuits, are_the_tables_of_the_standard_for_every_input) {
  for_each_index<8>([](auto box) { compare_circuit_with_table<decltype(box)::value>(); });
}

TEST(DesCircuits, stay_as_small_as_the_documents_say) {
  for (const int gates : des_sbox_gates)
    EXPECT_LE(gates, 30);
}

TEST(DesCircuits, bits_are_transposed_within_each_half) {
  TestRandom random;
  std::uint32_t words[64], before[64];
  for (std::uint32_t& word : words)
    word = static_cast<std::uint32_t>(random.next());
  std::ranges::copy(words, before);
  transpose_bits(words, 0);
  transpose_bits(words, 32);
  for (int first : {0, 32}) {
    for (int i = 0; i < 32; ++i) {
      for (int j = 0; j < 32; ++j)
        ASSERT_EQ(words[first + i] >> j & 1, before[first + j] >> i & 1);
    }
  }
}

TEST(DesCircuits, sliced_blocks_match_the_cpu) {
  TestRandom random;
  for (const int pass_count : {1, 3}) {
    for (const Direction direction : {Direction::encrypt, Direction::decrypt}) {
      for (int i = 0; i < 20; ++i) {
        const Bytes key = random.bytes(static_cast<std::size_t>(8 * pass_count));
        const Bytes blocks = random.bytes(256);
        DesSchedule schedule;
        make_des_schedule(key.data(), pass_count, direction == Direction::encrypt, schedule);
        SlicedBlocks sliced(blocks);
        DesSlices slices;
        slice_blocks(sliced.words, slices);
        run_des_passes(slices, PackedDesMasks(schedule), pass_count);
        unslice_blocks(slices, sliced.words);
        ASSERT_EQ(to_hex(sliced.bytes()), to_hex(judge(pass_count, key, direction, blocks)));
      }
    }
  }
}

class PlainBoxes {
 public:
  template <int box, int shift>
  std::uint32_t at(std::uint32_t word) const {
    return table_.words[64 * box + static_cast<int>(word >> shift & 63)];
  }

 private:
  DesPermutedBoxes table_ = make_des_permuted_boxes();
};

template <int pass_count>
void compare_single_blocks() {
  TestRandom random;
  const PlainBoxes boxes;
  for (int i = 0; i < 100; ++i) {
    const Bytes key = random.bytes(8 * pass_count);
    const Bytes block = random.bytes(8);
    DesSerialKey rounds[des_rounds_max];
    make_des_serial_keys(key.data(), pass_count, rounds);
    const DesBlock out = encrypt_des_block<pass_count>(
        boxes, rounds,
        {load_big_endian<std::uint32_t>(&block[0]), load_big_endian<std::uint32_t>(&block[4])});
    Bytes found(8);
    store_big_endian(&found[0], out.first);
    store_big_endian(&found[4], out.second);
    ASSERT_EQ(to_hex(found), to_hex(judge(pass_count, key, Direction::encrypt, block)));
  }
}

TEST(DesCircuits, single_blocks_match_the_cpu) {
  compare_single_blocks<1>();
  compare_single_blocks<3>();
}

template <typename Blocks>
void compare_counters(std::uint64_t first) {
  Bytes blocks(256);
  for (int j = 0; j < 32; ++j)
    store_big_endian(&blocks[8 * static_cast<std::size_t>(j)], first + Blocks::place(j));
  SlicedBlocks sliced(blocks);
  DesSlices expected, found;
  slice_blocks(sliced.words, expected);
  slice_counters<Blocks>(first, found);
  EXPECT_TRUE(std::ranges::equal(found.left, expected.left)) << first;
  EXPECT_TRUE(std::ranges::equal(found.right, expected.right)) << first;
}

TEST(DesCircuits, sliced_counters_carry_as_far_as_they_must) {
  TestRandom random;
  for (int i = 0; i < 200; ++i) {
    // Ones up to some bit, so that carries run.
    const std::uint64_t first = random.next() | ((std::uint64_t{1} << random.below(64)) - 1);
    compare_counters<NeighbouringBlocks>(first);
    compare_counters<InterleavedBlocks>(first);
  }
  compare_counters<NeighbouringBlocks>(UINT64_MAX);
  compare_counters<InterleavedBlocks>(UINT64_MAX - 961);
}

}  // namespace
}  // namespace nacre::engine::cuda
