// SPDX-License-Identifier: Apache-2.0
// DES of one block by tables: what a chain from block to block leaves. Encryption only, since no
// mode that is serial decrypts.
//
// The half block is rotated so that the six bits of four S-boxes, those of every other one, lie at
// the bottom of four bytes each: two rotations and two XOR with the key serve eight lookups.
#pragma once

#include "gpu_engine/cuda/kernels/des_key.h"

namespace nacre::engine::cuda {

NACRE_HOST_DEVICE inline std::uint32_t des_rotate_left(std::uint32_t word, int bits) {
#ifdef __CUDA_ARCH__
  return __funnelshift_l(word, word, bits);
#else
  return word << bits | word >> (32 - bits);
#endif
}

// Bits of a under mask << distance change places with bits of b under mask.
NACRE_HOST_DEVICE inline void exchange_under_mask(std::uint32_t& a, std::uint32_t& b, int distance,
                                                  std::uint32_t mask) {
  const std::uint32_t difference = (a >> distance ^ b) & mask;
  b ^= difference;
  a ^= difference << distance;
}

// left ^= f(right). Boxes: at<box, shift>(word) is S-box and P of the six bits of word at shift.
template <typename Boxes>
NACRE_HOST_DEVICE inline void run_serial_round(const Boxes& boxes, DesSerialKey key,
                                               std::uint32_t right, std::uint32_t& left) {
  const std::uint32_t even = des_rotate_left(right, 5) ^ key.even;
  const std::uint32_t odd = des_rotate_left(right, 9) ^ key.odd;
  const std::uint32_t sums[3] = {
      xor3(boxes.template at<0, 0>(even), boxes.template at<6, 8>(even),
           boxes.template at<4, 16>(even)),
      xor3(boxes.template at<2, 24>(even), boxes.template at<1, 0>(odd),
           boxes.template at<7, 8>(odd)),
      xor3(boxes.template at<5, 16>(odd), boxes.template at<3, 24>(odd), left)};
  left = xor3(sums[0], sums[1], sums[2]);
}

// A block as two big-endian words, or the halves that the initial permutation makes of them.
struct DesBlock {
  std::uint32_t first, second;
};

NACRE_HOST_DEVICE inline DesBlock permute_initially(DesBlock block) {
  exchange_under_mask(block.first, block.second, 4, 0x0f0f0f0f);
  exchange_under_mask(block.first, block.second, 16, 0x0000ffff);
  exchange_under_mask(block.second, block.first, 2, 0x33333333);
  exchange_under_mask(block.second, block.first, 8, 0x00ff00ff);
  exchange_under_mask(block.first, block.second, 1, 0x55555555);
  return block;
}

// The inverse.
NACRE_HOST_DEVICE inline DesBlock permute_finally(DesBlock block) {
  exchange_under_mask(block.first, block.second, 1, 0x55555555);
  exchange_under_mask(block.second, block.first, 8, 0x00ff00ff);
  exchange_under_mask(block.second, block.first, 2, 0x33333333);
  exchange_under_mask(block.first, block.second, 16, 0x0000ffff);
  exchange_under_mask(block.first, block.second, 4, 0x0f0f0f0f);
  return block;
}

// Between the two permutations, which a chain can do without: they are linear. keys: of all passes
// in turn.
template <int pass_count, typename Boxes, typename Keys>
NACRE_HOST_DEVICE inline DesBlock run_serial_passes(const Boxes& boxes, const Keys& keys,
                                                    DesBlock halves) {
  NACRE_UNROLL
  for (int pass = 0; pass < pass_count; ++pass) {
    NACRE_UNROLL
    for (int round = 0; round < des_rounds_per_pass; round += 2) {
      const int number = des_rounds_per_pass * pass + round;
      run_serial_round(boxes, keys[number], halves.second, halves.first);
      run_serial_round(boxes, keys[number + 1], halves.first, halves.second);
    }
    halves = {halves.second, halves.first};
  }
  return halves;
}

template <int pass_count, typename Boxes, typename Keys>
NACRE_HOST_DEVICE inline DesBlock encrypt_des_block(const Boxes& boxes, const Keys& keys,
                                                    DesBlock block) {
  return permute_finally(run_serial_passes<pass_count>(boxes, keys, permute_initially(block)));
}

}  // namespace nacre::engine::cuda
