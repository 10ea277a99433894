// SPDX-License-Identifier: Apache-2.0
// DES of one block at a time by tables, for modes in which each block depends on the one before.
// Encryption only, since these modes never decrypt with the cipher. The S-boxes (FIPS 46-3,
// appendix 1) are here too, each combined with the permutation P that follows it.
//
// The plain round of FIPS 46-3:
//
//   six bits for each S-box = E(right) ^ key;  left ^= P(outputs of the S-boxes);  exchange halves
//
// The tables hold the outputs of an S-box after P, so that a round is eight look-ups and XORs. The
// plain way to compute the indices would cost more than the look-ups. So the half block is rotated:
// after a rotation by 5 the lower six bits of its bytes are the inputs of boxes 0, 6, 4 and 2,
// after one by 9 those of boxes 1, 7, 5 and 3. Two rotations and two XORs with the key serve eight
// look-ups. The halves are not exchanged; the next round names them the other way round.
#pragma once

#include <cstdint>

#include "gpu_engine/cuda/kernels/des_key.h"

namespace nacre::engine::cuda {

// The four outputs of S-box `box` (from 0), the first in the highest bit. six: its six inputs, the
// first in the highest bit, too.
constexpr std::uint32_t des_substitute(int box, std::uint32_t six) {
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
  const std::uint32_t row = (six >> 5) * 2 + (six & 1), column = six >> 1 & 15;
  return boxes[box][16 * row + column];
}

// Word 64 * box + six: the outputs of the S-box for these inputs, at the bits to which P moves
// them. The first bit of a half block is the highest.
struct DesPermutedBoxes {
  std::uint32_t words[8 * 64];
};
constexpr DesPermutedBoxes make_des_permuted_boxes() {
  DesPermutedBoxes table = {};
  for (int box = 0; box < 8; ++box) {
    for (std::uint32_t six = 0; six < 64; ++six) {
      for (int output = 0; output < 4; ++output)
        table.words[64 * box + static_cast<int>(six)] |=
            (des_substitute(box, six) >> (3 - output) & 1)
            << (31 - des_bit_of_output(4 * box + output));
    }
  }
  return table;
}

NACRE_HOST_DEVICE inline std::uint32_t des_rotate_left(std::uint32_t word, int bits) {
#ifdef __CUDA_ARCH__
  return __funnelshift_l(word, word, bits);
#else
  return word << bits | word >> (32 - bits);
#endif
}

// Exchanges the bits of a under mask << distance with the bits of b under mask.
NACRE_HOST_DEVICE inline void exchange_under_mask(std::uint32_t& a, std::uint32_t& b, int distance,
                                                  std::uint32_t mask) {
  const std::uint32_t difference = (a >> distance ^ b) & mask;
  b ^= difference;
  a ^= difference << distance;
}

// left ^= f(right). Boxes: at<box, shift>(word) gives the S-box and P for the six bits of word at
// shift.
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

// A block as two big-endian words, or the halves after the initial permutation.
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

// All passes over a block, without the permutations before and after. A chain of blocks needs the
// permutations only for what comes in and goes out, since they are linear. keys: the round keys of
// all passes, one pass after the other.
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

#ifdef __CUDACC__
inline constexpr int des_box_words = 8 * 64;

static __device__ const DesPermutedBoxes des_permuted_boxes = make_des_permuted_boxes();

// A copy for every lane of a warp, so that there are no bank conflicts: word e at 32 e + lane.
class LaneBoxes {
 public:
  static constexpr int shared_bytes = des_box_words * 32 * 4;

  // All threads of the block call it.
  __device__ explicit LaneBoxes(std::uint32_t* shared)
      : shared_(reinterpret_cast<const char*>(shared)), lane_bytes_(threadIdx.x % 32 * 4) {
    for (std::uint32_t i = threadIdx.x; i < des_box_words * 32; i += blockDim.x)
      shared[i] = des_permuted_boxes.words[i / 32];
    __syncthreads();
  }
  template <int box, int shift>
  __device__ std::uint32_t at(std::uint32_t word) const {
    const std::uint32_t six = shift < 7 ? word << (7 - shift) : word >> (shift - 7);
    const std::uint32_t offset = (six & 0x3fu << 7) | lane_bytes_;
    return *reinterpret_cast<const std::uint32_t*>(shared_ + offset + box * 64 * 128);
  }

 private:
  const char* shared_;
  std::uint32_t lane_bytes_;
};

// One copy for all lanes, with bank conflicts: for single blocks.
class SmallBoxes {
 public:
  // All threads of the block call it, with des_box_words of shared memory.
  __device__ explicit SmallBoxes(std::uint32_t* shared) : shared_(shared) {
    for (std::uint32_t i = threadIdx.x; i < des_box_words; i += blockDim.x)
      shared[i] = des_permuted_boxes.words[i];
    __syncthreads();
  }
  template <int box, int shift>
  __device__ std::uint32_t at(std::uint32_t word) const {
    return shared_[64 * box + (word >> shift & 63)];
  }

 private:
  const std::uint32_t* shared_;
};

// In memory a block is two little-endian words.
__device__ inline DesBlock des_block_of(uint2 words) {
  return {__byte_perm(words.x, 0, 0x0123), __byte_perm(words.y, 0, 0x0123)};
}
__device__ inline uint2 des_words_of(DesBlock block) {
  return make_uint2(__byte_perm(block.first, 0, 0x0123), __byte_perm(block.second, 0, 0x0123));
}
#endif

}  // namespace nacre::engine::cuda
