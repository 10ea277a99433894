// SPDX-License-Identifier: Apache-2.0
// The LZ4 block format (docs/FORMAT.md, "LZ4 block"): its limits, and how a lane writes a sequence.
// All functions: per lane.
#pragma once

#include "gpu_engine/cuda/kernels/copy_bytes.cuh"

namespace nacre::engine::cuda::lz4 {

constexpr std::uint32_t piece_size_max = 65536;
constexpr std::uint32_t match_size_min = 4;
// The format's rules for the end of a block: its last five bytes are literals, and no match begins
// less than twelve bytes before the end.
constexpr std::uint32_t last_literals = 5;
constexpr std::uint32_t match_free_tail = 12;

// How many bytes follow the nibble of a count. Counts from 15 on have the nibble 15.
__device__ __forceinline__ std::uint32_t extra_bytes(std::uint32_t count) {
  return count < 15 ? 0 : (count - 15) / 255 + 1;
}

__device__ __forceinline__ void put_extra(Byte* to, std::uint32_t count) {
  std::uint32_t rest = count - 15;
  for (; rest >= 255; rest -= 255)
    store(to++, Byte{255});
  store(to, static_cast<Byte>(rest));
}

// Writes a token and the extra bytes of its literals.
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

  // Writes the sequence without its literals.
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
