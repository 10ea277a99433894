// SPDX-License-Identifier: Apache-2.0
// Bits are numbered as in the standard: 1 is the highest.
#include "gpu_engine/seeds/des_plain.h"

namespace nacre::engine::seeds {
namespace {

using Table = std::span<const std::uint8_t>;

constexpr std::uint8_t initial_permutation[] = {
    58, 50, 42, 34, 26, 18, 10, 2,  60, 52, 44, 36, 28, 20, 12, 4,  62, 54, 46, 38, 30, 22,
    14, 6,  64, 56, 48, 40, 32, 24, 16, 8,  57, 49, 41, 33, 25, 17, 9,  1,  59, 51, 43, 35,
    27, 19, 11, 3,  61, 53, 45, 37, 29, 21, 13, 5,  63, 55, 47, 39, 31, 23, 15, 7};
constexpr std::uint8_t final_permutation[] = {
    40, 8,  48, 16, 56, 24, 64, 32, 39, 7,  47, 15, 55, 23, 63, 31, 38, 6,  46, 14, 54, 22,
    62, 30, 37, 5,  45, 13, 53, 21, 61, 29, 36, 4,  44, 12, 52, 20, 60, 28, 35, 3,  43, 11,
    51, 19, 59, 27, 34, 2,  42, 10, 50, 18, 58, 26, 33, 1,  41, 9,  49, 17, 57, 25};
constexpr std::uint8_t expansion[] = {
    32, 1,  2,  3,  4,  5,  4,  5,  6,  7,  8,  9,  8,  9,  10, 11, 12, 13, 12, 13, 14, 15, 16, 17,
    16, 17, 18, 19, 20, 21, 20, 21, 22, 23, 24, 25, 24, 25, 26, 27, 28, 29, 28, 29, 30, 31, 32, 1};
constexpr std::uint8_t round_permutation[] = {16, 7, 20, 21, 29, 12, 28, 17, 1,  15, 23,
                                              26, 5, 18, 31, 10, 2,  8,  24, 14, 32, 27,
                                              3,  9, 19, 13, 30, 6,  22, 11, 4,  25};
constexpr std::uint8_t key_choice_1[] = {57, 49, 41, 33, 25, 17, 9,  1,  58, 50, 42, 34, 26, 18,
                                         10, 2,  59, 51, 43, 35, 27, 19, 11, 3,  60, 52, 44, 36,
                                         63, 55, 47, 39, 31, 23, 15, 7,  62, 54, 46, 38, 30, 22,
                                         14, 6,  61, 53, 45, 37, 29, 21, 13, 5,  28, 20, 12, 4};
constexpr std::uint8_t key_choice_2[] = {
    14, 17, 11, 24, 1,  5,  3,  28, 15, 6,  21, 10, 23, 19, 12, 4,  26, 8,  16, 7,  27, 20, 13, 2,
    41, 52, 31, 37, 47, 55, 30, 40, 51, 45, 33, 48, 44, 49, 39, 56, 34, 53, 46, 42, 50, 36, 29, 32};
constexpr std::uint8_t key_rotations[] = {1, 1, 2, 2, 2, 2, 2, 2, 1, 2, 2, 2, 2, 2, 2, 1};
// Four rows of sixteen each.
constexpr std::uint8_t boxes[8][64] = {
    {14, 4,  13, 1, 2,  15, 11, 8, 3, 10, 6, 12, 5,  9,  0,  7,  0,  15, 7,  4,  14, 2,
     13, 1,  10, 6, 12, 11, 9,  5, 3, 8,  4, 1,  14, 8,  13, 6,  2,  11, 15, 12, 9,  7,
     3,  10, 5,  0, 15, 12, 8,  2, 4, 9,  1, 7,  5,  11, 3,  14, 10, 0,  6,  13},
    {15, 1,  8,  14, 6,  11, 3,  4, 9,  7,  2, 13, 12, 0,  5,  10, 3,  13, 4,  7, 15, 2,
     8,  14, 12, 0,  1,  10, 6,  9, 11, 5,  0, 14, 7,  11, 10, 4,  13, 1,  5,  8, 12, 6,
     9,  3,  2,  15, 13, 8,  10, 1, 3,  15, 4, 2,  11, 6,  7,  12, 0,  5,  14, 9},
    {10, 0,  9,  14, 6, 3,  15, 5,  1,  13, 12, 7, 11, 4,  2,  8,  13, 7, 0,  9, 3, 4,
     6,  10, 2,  8,  5, 14, 12, 11, 15, 1,  13, 6, 4,  9,  8,  15, 3,  0, 11, 1, 2, 12,
     5,  10, 14, 7,  1, 10, 13, 0,  6,  9,  8,  7, 4,  15, 14, 3,  11, 5, 2,  12},
    {7, 13, 14, 3, 0, 6,  9, 10, 1,  2, 8,  5, 11, 12, 4,  15, 13, 8,  11, 5, 6, 15,
     0, 3,  4,  7, 2, 12, 1, 10, 14, 9, 10, 6, 9,  0,  12, 11, 7,  13, 15, 1, 3, 14,
     5, 2,  8,  4, 3, 15, 0, 6,  10, 1, 13, 8, 9,  4,  5,  11, 12, 7,  2,  14},
    {2,  12, 4, 1,  7,  10, 11, 6, 8, 5,  3, 15, 13, 0,  14, 9,  14, 11, 2,  12, 4,  7,
     13, 1,  5, 0,  15, 10, 3,  9, 8, 6,  4, 2,  1,  11, 10, 13, 7,  8,  15, 9,  12, 5,
     6,  3,  0, 14, 11, 8,  12, 7, 1, 14, 2, 13, 6,  15, 0,  9,  10, 4,  5,  3},
    {12, 1,  10, 15, 9,  2,  6, 8,  0, 13, 3,  4,  14, 7,  5, 11, 10, 15, 4, 2, 7, 12,
     9,  5,  6,  1,  13, 14, 0, 11, 3, 8,  9,  14, 15, 5,  2, 8,  12, 3,  7, 0, 4, 10,
     1,  13, 11, 6,  4,  3,  2, 12, 9, 5,  15, 10, 11, 14, 1, 7,  6,  0,  8, 13},
    {4, 11, 2,  14, 15, 0,  8,  13, 3, 12, 9,  7, 5,  10, 6,  1,  13, 0,  11, 7,  4, 9,
     1, 10, 14, 3,  5,  12, 2,  15, 8, 6,  1,  4, 11, 13, 12, 3,  7,  14, 10, 15, 6, 8,
     0, 5,  9,  2,  6,  11, 13, 8,  1, 4,  10, 7, 9,  5,  0,  15, 14, 2,  3,  12},
    {13, 2, 8,  4, 6, 15, 11, 1,  10, 9,  3, 14, 5,  0,  12, 7,  1,  15, 13, 8, 10, 3,
     7,  4, 12, 5, 6, 11, 0,  14, 9,  2,  7, 11, 4,  1,  9,  12, 14, 2,  0,  6, 10, 13,
     15, 3, 5,  8, 2, 1,  14, 7,  4,  10, 8, 13, 15, 12, 9,  0,  3,  5,  6,  11}};

// Picks the bits that the table names out of a number of that many bits, the first one highest.
std::uint64_t pick(std::uint64_t value, int bit_count, Table table) {
  std::uint64_t picked = 0;
  for (const std::uint8_t bit : table)
    picked = picked << 1 | (value >> (bit_count - bit) & 1);
  return picked;
}

std::uint32_t rotate_28(std::uint32_t half, int count) {
  return (half << count | half >> (28 - count)) & 0xfffffff;
}

std::uint32_t mix(std::uint32_t half, std::uint64_t key) {
  const std::uint64_t wide = pick(half, 32, expansion) ^ key;
  std::uint32_t substituted = 0;
  for (int box = 0; box < 8; ++box) {
    const auto six = static_cast<std::uint32_t>(wide >> (42 - 6 * box) & 0x3f);
    const std::uint32_t row = (six >> 4 & 2) | (six & 1);
    substituted = substituted << 4 | boxes[box][16 * row + (six >> 1 & 0xf)];
  }
  return static_cast<std::uint32_t>(pick(substituted, 32, round_permutation));
}

std::uint64_t load_block(const Byte* from) {
  std::uint64_t block = 0;
  for (int i = 0; i < 8; ++i)
    block = block << 8 | from[i];
  return block;
}

void store_block(std::uint64_t block, Byte* to) {
  for (int i = 0; i < 8; ++i)
    to[i] = static_cast<Byte>(block >> (56 - 8 * i));
}

}  // namespace

PlainDes::PlainDes(ByteView key) {
  const std::uint64_t chosen = pick(load_block(key.data()), 64, key_choice_1);
  auto left = static_cast<std::uint32_t>(chosen >> 28);
  auto right = static_cast<std::uint32_t>(chosen & 0xfffffff);
  for (std::size_t round = 0; round < round_keys_.size(); ++round) {
    left = rotate_28(left, key_rotations[round]);
    right = rotate_28(right, key_rotations[round]);
    round_keys_[round] = pick(std::uint64_t{left} << 28 | right, 56, key_choice_2);
  }
}

std::uint64_t PlainDes::run_rounds(std::uint64_t block, bool encrypts) const {
  const std::uint64_t start = pick(block, 64, initial_permutation);
  auto left = static_cast<std::uint32_t>(start >> 32);
  auto right = static_cast<std::uint32_t>(start);
  for (std::size_t round = 0; round < round_keys_.size(); ++round) {
    const std::uint32_t next =
        left ^ mix(right, round_keys_[encrypts ? round : round_keys_.size() - 1 - round]);
    left = right;
    right = next;
  }
  return pick(std::uint64_t{right} << 32 | left, 64, final_permutation);
}

void PlainDes::encrypt(ByteView in, MutableByteView out) const {
  for (std::size_t at = 0; at + 8 <= in.size(); at += 8)
    store_block(run_rounds(load_block(in.data() + at), true), out.data() + at);
}

void PlainDes::decrypt(ByteView in, MutableByteView out) const {
  for (std::size_t at = 0; at + 8 <= in.size(); at += 8)
    store_block(run_rounds(load_block(in.data() + at), false), out.data() + at);
}

}  // namespace nacre::engine::seeds
