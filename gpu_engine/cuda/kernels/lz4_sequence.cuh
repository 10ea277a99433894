// SPDX-License-Identifier: Apache-2.0
// The LZ4 block format as a lane writes it: a sequence but for its literals.
#pragma once

#include "gpu_engine/cuda/kernels/lz4_warp.cuh"

namespace nacre::engine::cuda::lz4 {

// How many bytes follow for a count whose nibble is 15 when it is that or more.
__device__ __forceinline__ std::uint32_t extra_bytes(std::uint32_t count) {
  return count < 15 ? 0 : (count - 15) / 255 + 1;
}

__device__ __forceinline__ void put_extra(Byte* to, std::uint32_t count) {
  std::uint32_t rest = count - 15;
  for (; rest >= 255; rest -= 255)
    store(to++, Byte{255});
  store(to, static_cast<Byte>(rest));
}

// A token and the extra bytes of its literals.
__device__ __forceinline__ void put_literals_head(Byte* to, std::uint32_t literals,
                                                  std::uint32_t match_nibble) {
  store(to, static_cast<Byte>(min(literals, 15u) << 4 | match_nibble));
  if (literals >= 15) put_extra(to + 1, literals);
}

struct Sequence {
  std::uint32_t literals;  // count
  std::uint32_t match_size;
  std::uint32_t distance;

  __device__ __forceinline__ std::uint32_t size() const {
    return 3 + literals + extra_bytes(literals) + extra_bytes(match_size - match_size_min);
  }

  // Leaves the literals' place as it is.
  __device__ __forceinline__ void put(Byte* to) const {
    const std::uint32_t more = match_size - match_size_min;
    put_literals_head(to, literals, min(more, 15u));
    to += 1 + extra_bytes(literals) + literals;
    store(to, static_cast<Byte>(distance));
    store(to + 1, static_cast<Byte>(distance >> 8));
    if (more >= 15) put_extra(to + 2, more);
  }
};

}  // namespace nacre::engine::cuda::lz4
