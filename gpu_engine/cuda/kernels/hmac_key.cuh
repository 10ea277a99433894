// SPDX-License-Identifier: Apache-2.0
// HMAC-SHA256 keys (RFC 2104) as the states that SHA-256 has after the padded key.
#pragma once

#include "gpu_engine/cuda/kernels/block_io.cuh"
#include "gpu_engine/cuda/kernels/sha256.cuh"

namespace nacre::engine::cuda {

inline constexpr std::uint32_t hmac_key_size = 32;
inline constexpr std::uint32_t hmac_inner_pad = 0x36363636;
inline constexpr std::uint32_t hmac_outer_pad = 0x5c5c5c5c;

__device__ inline void write_hmac_state(const Byte* key, std::uint32_t pad, std::uint32_t* out) {
  std::uint32_t block[16];
#pragma unroll
  for (int i = 0; i < 16; ++i)
    block[i] = (i < 8 ? swap_bytes(load_bytes(key + 4 * i, 4)) : 0) ^ pad;
  Sha256State state;
  sha256_compress(state, block);
  for (int i = 0; i < 8; ++i)
    out[i] = state.words[i];
}

}  // namespace nacre::engine::cuda
