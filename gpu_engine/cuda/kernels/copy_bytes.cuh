// SPDX-License-Identifier: Apache-2.0
// Loads, stores and copies of bytes at any alignment, in aligned words that are shifted into place.
// Unless a function says otherwise, it may read all bytes of an aligned word of which the source
// has only some. So device memory must reach to the end of the source's last aligned word.
#pragma once

#include <cstdint>

#include "gpu_engine/cuda/kernels/tasks.h"
#include "gpu_engine/cuda/kernels/warp.cuh"

namespace nacre::engine::cuda {

// Load and store a value in global memory. The compiler is told that the address is global: if it
// does not know the address space, the access is slower.
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

  // Per lane: bytes i … i + 3. Reads no word that lies wholly past byte i + 7.
  __device__ __forceinline__ std::uint32_t at(std::uint32_t i) const {
    const std::uint32_t place = i + shift;
    return __funnelshift_r(load(words + place / 4), load(words + place / 4 + 1), place % 4 * 8);
  }
};

// Copies size bytes between ranges that do not overlap. All lanes of a warp call it together. It
// copies whole words if there are enough bytes for that to pay.
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
        (size - head - 4) / 4;  // the last word reads 8 bytes from its start
    for (std::uint32_t i = lane; i < word_count; i += lane_count)
      store(target + i, source.at(4 * i));
    done = head + 4 * word_count;
  }
  for (std::uint32_t i = done + lane; i < size; i += lane_count)
    store(to + i, load(from + i));
}

// Copies by thread_count threads, in stores of 16 bytes. thread: the index of the calling thread
// among them. The ranges do not overlap.
inline __device__ void copy_bytes(Byte* to, const Byte* from, std::uint32_t size,
                                  std::uint32_t thread, std::uint32_t thread_count) {
  const std::uint32_t to_aligned =
      static_cast<std::uint32_t>(-reinterpret_cast<std::uintptr_t>(to)) & 15;
  const std::uint32_t head = to_aligned < size ? to_aligned : size;
  for (std::uint32_t i = thread; i < head; i += thread_count)
    to[i] = from[i];
  to += head;
  from += head;
  size -= head;
  const std::uint32_t vector_count = size / 16;
  const auto address = reinterpret_cast<std::uintptr_t>(from);
  auto* const vectors = reinterpret_cast<uint4*>(to);
  if (address % 16 == 0) {
    const auto* const source = reinterpret_cast<const uint4*>(from);
    for (std::uint32_t i = thread; i < vector_count; i += thread_count)
      vectors[i] = source[i];
  } else {
    const auto* const words = reinterpret_cast<const std::uint32_t*>(address & ~std::uintptr_t{3});
    const std::uint32_t shift = static_cast<std::uint32_t>(address & 3) * 8;
    for (std::uint32_t i = thread; i < vector_count; i += thread_count) {
      const std::uint32_t* const w = words + 4 * i;
      const std::uint32_t w0 = w[0], w1 = w[1], w2 = w[2], w3 = w[3];
      const std::uint32_t w4 = shift == 0 ? 0 : w[4];
      vectors[i] = make_uint4(__funnelshift_r(w0, w1, shift), __funnelshift_r(w1, w2, shift),
                              __funnelshift_r(w2, w3, shift), __funnelshift_r(w3, w4, shift));
    }
  }
  for (std::uint32_t i = 16 * vector_count + thread; i < size; i += thread_count)
    to[i] = from[i];
}

// The same for two ranges whose addresses are equal modulo 16. Each thread starts four loads before
// its first store, which hides the latency of a source in host memory. Reads no byte outside the
// source.
inline __device__ void copy_aligned_alike(Byte* to, const Byte* from, std::uint32_t size,
                                          std::uint32_t thread, std::uint32_t thread_count) {
  constexpr std::uint32_t loads = 4;
  const std::uint32_t to_aligned =
      static_cast<std::uint32_t>(-reinterpret_cast<std::uintptr_t>(to)) & 15;
  const std::uint32_t head = to_aligned < size ? to_aligned : size;
  const std::uint32_t vector_count = (size - head) / 16;
  const auto* const source = reinterpret_cast<const uint4*>(from + head);
  auto* const target = reinterpret_cast<uint4*>(to + head);
  for (std::uint32_t first = thread; first < vector_count; first += loads * thread_count) {
    uint4 vectors[loads];
#pragma unroll
    for (std::uint32_t load = 0; load < loads; ++load) {
      const std::uint32_t i = first + load * thread_count;
      if (i < vector_count) vectors[load] = source[i];
    }
#pragma unroll
    for (std::uint32_t load = 0; load < loads; ++load) {
      const std::uint32_t i = first + load * thread_count;
      if (i < vector_count) target[i] = vectors[load];
    }
  }
  if (thread < head) to[thread] = from[thread];
  const std::uint32_t tail = head + 16 * vector_count + thread;
  if (tail < size) to[tail] = from[tail];
}

}  // namespace nacre::engine::cuda
