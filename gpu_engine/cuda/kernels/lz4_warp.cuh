// SPDX-License-Identifier: Apache-2.0
// What the LZ4 kernels share: a warp that fetches unaligned words and copies bytes. All lanes of a
// warp call these together with the same arguments, unless a function says that it is a lane's own.
#pragma once

#include <cstdint>

#include "gpu_engine/cuda/kernels/tasks.h"

namespace nacre::engine::cuda::lz4 {

constexpr std::uint32_t all_lanes = 0xffffffffu;
constexpr std::uint32_t lane_count = 32;
constexpr std::uint32_t piece_size_max = 65536;
constexpr std::uint32_t match_size_min = 4;
// The format's rules for the end of a block: its last five bytes are literals, and no match begins
// less than twelve bytes before the end.
constexpr std::uint32_t last_literals = 5;
constexpr std::uint32_t match_free_tail = 12;

__device__ __forceinline__ std::uint32_t this_lane() {
  return threadIdx.x % lane_count;
}

// Said by lane 0, so that the compiler knows it to be the same in all of them.
__device__ __forceinline__ std::uint32_t this_warp() {
  return __shfl_sync(all_lanes, threadIdx.x / lane_count, 0);
}

// What lies there, said to be global memory: a load of a place that the compiler knows nothing of
// is slower.
template <typename T>
__device__ __forceinline__ T load(const T* from) {
  __builtin_assume(__isGlobal(from));
  return *from;
}
template <typename T>
__device__ __forceinline__ void store(T* to, T value) {
  __builtin_assume(__isGlobal(to));
  *to = value;
}

// Bytes at any address, seen as the aligned words that hold them.
struct Words {
  const std::uint32_t* words;
  std::uint32_t shift;  // where byte 0 lies in words[0]

  __device__ __forceinline__ explicit Words(const Byte* bytes)
      : words(reinterpret_cast<const std::uint32_t*>(reinterpret_cast<std::uintptr_t>(bytes) &
                                                     ~std::uintptr_t{3})),
        shift(static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(bytes) & 3)) {}

  // A lane's own: bytes i … i + 3. Reads no word that lies wholly past byte i + 7.
  __device__ __forceinline__ std::uint32_t at(std::uint32_t i) const {
    const std::uint32_t place = i + shift;
    return __funnelshift_r(load(words + place / 4), load(words + place / 4 + 1), place % 4 * 8);
  }
};

// Copies size bytes between ranges that do not overlap. Words once it pays.
__device__ __forceinline__ void copy_bytes(Byte* to, const Byte* from, std::uint32_t size) {
  const std::uint32_t lane = this_lane();
  std::uint32_t done = 0;
  if (size >= 4 * lane_count) {
    const std::uint32_t head =
        static_cast<std::uint32_t>(-reinterpret_cast<std::uintptr_t>(to)) & 3;
    if (lane < head) store(to + lane, load(from + lane));
    const Words source(from + head);
    std::uint32_t* const target = reinterpret_cast<std::uint32_t*>(to + head);
    const std::uint32_t word_count =
        (size - head - 4) / 4;  // the last reads 8 bytes from its first
    for (std::uint32_t i = lane; i < word_count; i += lane_count)
      store(target + i, source.at(4 * i));
    done = head + 4 * word_count;
  }
  for (std::uint32_t i = done + lane; i < size; i += lane_count)
    store(to + i, load(from + i));
}

}  // namespace nacre::engine::cuda::lz4
