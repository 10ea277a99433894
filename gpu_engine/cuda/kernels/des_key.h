// SPDX-License-Identifier: Apache-2.0
// Expands DES keys (FIPS 46-3) into the forms that the kernels use, on the device and on the host.
//
// Bitsliced rounds. In round i = 1 to 16 the half block X_i is the input of the S-boxes. Each of
// its 32 bits is a middle input of one S-box, and half of the bits are also an outer input of a
// neighbouring S-box. The plain round XORs the round key's 48 bits into these inputs. Here the
// state is not X_i but Y_i = X_i ^ M_i, where M_i are the round key's 32 bits for the middle
// inputs. So a middle input needs no operation. An outer input needs one XOR, with the difference
// of the key bits for its two uses. M is folded into the XOR that adds the outputs of the S-boxes
// to the other half block:
//   Y_{i+1} = Y_{i-1} ^ f ^ (M_{i-1} ^ M_{i+1}),  three operands, one LOP3;
// M_0 and M_17 are zeros. So the key costs 16 instructions a round instead of 48.
// Before a pass of 16 rounds the second half is whitened with M_1, and after it the first half with
// M_16. Between two passes of 3DES one whitening does both.
#pragma once

#include <cstdint>

#include "gpu_engine/cuda/kernels/lut3.h"

namespace nacre::engine::cuda {

inline constexpr int des_rounds_per_pass = 16;
inline constexpr int des_passes_max = 3;
inline constexpr int des_rounds_max = des_rounds_per_pass * des_passes_max;
inline constexpr int des_key_bytes = 8;  // of a pass

struct DesRoundMasks {
  // Bit m: the mask that is XORed in with output m of the S-boxes (4 outputs a box, in order).
  std::uint32_t folds;
  // Bits 2 s and 2 s + 1: the masks of the first and the last input of S-box s. 16 bits.
  std::uint32_t edges;
};

// The rounds of one direction, with a bit for each mask.
struct DesSchedule {
  DesRoundMasks rounds[des_rounds_max];
  std::uint32_t whitening[des_passes_max + 1];  // bit n: for bit n of a half block, from 0
};

// A round key for des_serial.h: six bits for each S-box. even has those of boxes 0, 6, 4 and 2 in
// bytes 0 to 3, where the half block rotated left by 5 has their inputs; odd those of boxes 1, 7, 5
// and 3, for the half block rotated left by 9.
struct DesSerialKey {
  std::uint32_t even, odd;
};

struct alignas(16) DesKey {
  DesSchedule encrypt;
  DesSchedule decrypt;
  DesSerialKey serial[des_rounds_max];     // encryption
  DesSerialKey serial_iv[des_rounds_max];  // encryption under the key of a suite's IVs
};

// A round key's 48 bits; the first (FIPS 46-3) is bit 0.
using DesRoundKey = std::uint64_t;

// A key's 56 bits in the order of PC-1.
struct DesHalves {
  std::uint32_t left, right;  // 28 bits each, the first at bit 0
};

NACRE_HOST_DEVICE inline std::uint32_t des_key_bit(const std::uint8_t* key, int number) {
  return key[(number - 1) / 8] >> (7 - (number - 1) % 8) & 1u;
}

NACRE_HOST_DEVICE inline DesHalves des_choose_halves(const std::uint8_t* key) {
  constexpr int choice[56] = {57, 49, 41, 33, 25, 17, 9,  1,  58, 50, 42, 34, 26, 18,
                              10, 2,  59, 51, 43, 35, 27, 19, 11, 3,  60, 52, 44, 36,
                              63, 55, 47, 39, 31, 23, 15, 7,  62, 54, 46, 38, 30, 22,
                              14, 6,  61, 53, 45, 37, 29, 21, 13, 5,  28, 20, 12, 4};
  DesHalves halves = {0, 0};
  NACRE_UNROLL
  for (int i = 0; i < 28; ++i) {
    halves.left |= des_key_bit(key, choice[i]) << i;
    halves.right |= des_key_bit(key, choice[28 + i]) << i;
  }
  return halves;
}

NACRE_HOST_DEVICE inline std::uint32_t des_rotate_half(std::uint32_t half, int count) {
  return (half >> count | half << (28 - count)) & 0xfffffff;
}

// The key of a round of encryption, counted from 0.
NACRE_HOST_DEVICE inline DesRoundKey des_round_key(const DesHalves& halves, int round) {
  constexpr int choice[48] = {14, 17, 11, 24, 1,  5,  3,  28, 15, 6,  21, 10, 23, 19, 12, 4,
                              26, 8,  16, 7,  27, 20, 13, 2,  41, 52, 31, 37, 47, 55, 30, 40,
                              51, 45, 33, 48, 44, 49, 39, 56, 34, 53, 46, 42, 50, 36, 29, 32};
  // Two steps a round, except one step in rounds 0, 1, 8 and 15.
  const int steps = 2 * round + 1 - (round >= 1) - (round >= 8) - (round >= 15);
  const std::uint32_t left = des_rotate_half(halves.left, steps);
  const std::uint32_t right = des_rotate_half(halves.right, steps);
  DesRoundKey key = 0;
  NACRE_UNROLL
  for (int i = 0; i < 24; ++i) {
    key |= DesRoundKey{left >> (choice[i] - 1) & 1} << i;
    key |= DesRoundKey{right >> (choice[24 + i] - 29) & 1} << (24 + i);
  }
  return key;
}

// To which bit of the half block, counted from 0, the permutation P moves output m.
NACRE_HOST_DEVICE constexpr int des_bit_of_output(int m) {
  constexpr int sources[32] = {16, 7, 20, 21, 29, 12, 28, 17, 1,  15, 23, 26, 5,  18, 31, 10,
                               2,  8, 24, 14, 32, 27, 3,  9,  19, 13, 30, 6,  22, 11, 4,  25};
  for (int n = 0; n < 32; ++n) {
    if (sources[n] == m + 1) return n;
  }
  return -1;
}

// Bit n of the result: the round key's bit for the middle input that is bit n of the half block.
NACRE_HOST_DEVICE inline std::uint32_t des_middle_bits(DesRoundKey key) {
  std::uint32_t bits = 0;
  NACRE_UNROLL
  for (int box = 0; box < 8; ++box)
    bits |= static_cast<std::uint32_t>(key >> (6 * box + 1) & 0xf) << (4 * box);
  return bits;
}

NACRE_HOST_DEVICE inline std::uint32_t des_edge_bits(DesRoundKey key) {
  const auto bit = [key](int number) { return static_cast<std::uint32_t>(key >> number & 1); };
  std::uint32_t edges = 0;
  NACRE_UNROLL
  for (int box = 0; box < 8; ++box) {
    const int before = (box + 7) % 8, after = (box + 1) % 8;
    edges |= (bit(6 * box) ^ bit(6 * before + 4)) << (2 * box);
    edges |= (bit(6 * box + 5) ^ bit(6 * after + 1)) << (2 * box + 1);
  }
  return edges;
}

template <int output = 0>
NACRE_HOST_DEVICE inline std::uint32_t des_in_order_of_outputs(std::uint32_t bits) {
  if constexpr (output == 32) {
    return 0;
  } else {
    constexpr int bit = des_bit_of_output(output);
    return (bits >> bit & 1) << output | des_in_order_of_outputs<output + 1>(bits);
  }
}

// Which eight bytes of the key a pass uses, and whether it runs forwards (3DES: EDE).
struct DesPass {
  int key;
  bool forwards;
};
NACRE_HOST_DEVICE inline DesPass des_pass(int pass, int pass_count, bool encrypts) {
  return {encrypts ? pass : pass_count - 1 - pass, encrypts == (pass % 2 == 0)};
}

// key: 8 bytes a pass.
NACRE_HOST_DEVICE inline void make_des_schedule(const std::uint8_t* key, int pass_count,
                                                bool encrypts, DesSchedule& schedule) {
  std::uint32_t whitening = 0;
  for (int pass = 0; pass < pass_count; ++pass) {
    const DesPass how = des_pass(pass, pass_count, encrypts);
    const DesHalves halves = des_choose_halves(key + des_key_bytes * how.key);
    const auto round_key = [&](int round) {
      return des_round_key(halves, how.forwards ? round : des_rounds_per_pass - 1 - round);
    };
    std::uint32_t before = 0;
    DesRoundKey current = round_key(0);
    schedule.whitening[pass] = whitening ^ des_middle_bits(current);
    for (int round = 0; round < des_rounds_per_pass; ++round) {
      const bool is_last = round + 1 == des_rounds_per_pass;
      const DesRoundKey next = is_last ? 0 : round_key(round + 1);
      const std::uint32_t middle = des_middle_bits(current);
      schedule.rounds[des_rounds_per_pass * pass + round] = {
          .folds = des_in_order_of_outputs(before ^ des_middle_bits(next)),
          .edges = des_edge_bits(current)};
      before = middle;
      current = next;
    }
    whitening = before;
  }
  schedule.whitening[pass_count] = whitening;
}

// Round keys for encryption, in the order in which the rounds run.
NACRE_HOST_DEVICE inline void make_des_serial_keys(const std::uint8_t* key, int pass_count,
                                                   DesSerialKey* rounds) {
  for (int pass = 0; pass < pass_count; ++pass) {
    const DesPass how = des_pass(pass, pass_count, true);
    const DesHalves halves = des_choose_halves(key + des_key_bytes * how.key);
    for (int round = 0; round < des_rounds_per_pass; ++round) {
      const DesRoundKey bits =
          des_round_key(halves, how.forwards ? round : des_rounds_per_pass - 1 - round);
      // A box's first bit is the highest of its six.
      const auto box = [bits](int number) {
        std::uint32_t six = 0;
        NACRE_UNROLL
        for (int i = 0; i < 6; ++i)
          six |= static_cast<std::uint32_t>(bits >> (6 * number + i) & 1) << (5 - i);
        return six;
      };
      rounds[des_rounds_per_pass * pass + round] = {
          .even = box(0) | box(6) << 8 | box(4) << 16 | box(2) << 24,
          .odd = box(1) | box(7) << 8 | box(5) << 16 | box(3) << 24};
    }
  }
}

}  // namespace nacre::engine::cuda
