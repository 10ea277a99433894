// SPDX-License-Identifier: Apache-2.0
// The S-boxes of DES in shared memory.
#pragma once

#include "gpu_engine/cuda/kernels/des_serial.h"
#include "gpu_engine/cuda/kernels/des_tables.h"

namespace nacre::engine::cuda {

inline constexpr int des_box_words = 8 * 64;

static __device__ const DesPermutedBoxes des_permuted_boxes = make_des_permuted_boxes();

// A copy for every lane of a warp, so that no two lanes meet in a bank: word e at 32 e + lane.
class LaneBoxes {
 public:
  static constexpr int shared_bytes = des_box_words * 32 * 4;

  // All threads of the block.
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

// One copy, bank conflicts and all: for a block here and there.
class SmallBoxes {
 public:
  // All threads of the block; des_box_words of shared memory.
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

// Blocks as they lie in memory are two little-endian words.
__device__ inline DesBlock des_block_of(uint2 words) {
  return {__byte_perm(words.x, 0, 0x0123), __byte_perm(words.y, 0, 0x0123)};
}
__device__ inline uint2 des_words_of(DesBlock block) {
  return make_uint2(__byte_perm(block.first, 0, 0x0123), __byte_perm(block.second, 0, 0x0123));
}

}  // namespace nacre::engine::cuda
