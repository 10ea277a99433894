// SPDX-License-Identifier: Apache-2.0
// AES of a block here and there: a hash key, a tag's mask, an IV. One table, bank conflicts and
// all.
#pragma once

#include "gpu_engine/cuda/kernels/aes_rounds.cuh"

namespace nacre::engine::cuda {

class SmallTables {
 public:
  // All threads of the block; 256 words of shared memory.
  __device__ explicit SmallTables(std::uint32_t* shared) : shared_(shared) {
    for (std::uint32_t i = threadIdx.x; i < 256; i += blockDim.x)
      shared[i] = aes_encryption_table.words[i];
    __syncthreads();
  }
  template <int row>
  __device__ std::uint32_t at(std::uint32_t column) const {
    return rotate_left(at_first<row>(column), 8 * row);
  }
  template <int row>
  __device__ std::uint32_t at_first(std::uint32_t column) const {
    return shared_[column >> (8 * row) & 0xff];
  }

 private:
  const std::uint32_t* shared_;
};

template <int distance>
__device__ inline uint4 encrypt_one_block(const SmallTables& tables,
                                          const RoundKeyView<distance>& keys,
                                          std::uint32_t round_count, uint4 block) {
  uint4 state = block ^ keys.at(0);
  for (std::uint32_t round = 1; round < round_count; ++round)
    state = encrypt_round(tables, state, keys.at(round));
  return last_encrypt_round(tables, state, keys.at(RoundKeys::last_round));
}

}  // namespace nacre::engine::cuda
