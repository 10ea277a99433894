// SPDX-License-Identifier: Apache-2.0
// The lanes of a warp, and what they compute together. All lanes of a warp must call a function
// together, unless its comment says "Per lane": any lane may call such a function by itself. Other
// files of kernels use the same words.
#pragma once

#include <cstdint>

#include "gpu_engine/cuda/kernels/both_sides.h"

namespace nacre::engine::cuda {

// Per lane.
__device__ __forceinline__ std::uint32_t this_lane() {
  return threadIdx.x % lane_count;
}

// The index of the warp in its block. Per lane.
__device__ __forceinline__ std::uint32_t this_warp() {
  return threadIdx.x / lane_count;
}

// The same index, but shuffled from lane 0, so that the compiler knows it to be equal in all lanes.
__device__ __forceinline__ std::uint32_t this_warp_in_all_lanes() {
  return __shfl_sync(all_lanes, threadIdx.x / lane_count, 0);
}

// Masks of the lanes before this one, without and with this lane itself. Per lane.
__device__ __forceinline__ std::uint32_t lanes_below() {
  return (1u << this_lane()) - 1;
}
__device__ __forceinline__ std::uint32_t lanes_up_to_here() {
  return all_lanes >> (lane_count - 1 - this_lane());
}

// The sum of the values of this lane and those before it.
__device__ __forceinline__ std::uint32_t inclusive_sum(std::uint32_t value) {
  for (std::uint32_t distance = 1; distance < lane_count; distance *= 2) {
    const std::uint32_t before = __shfl_up_sync(all_lanes, value, distance);
    if (this_lane() >= distance) value += before;
  }
  return value;
}

__device__ __forceinline__ std::uint32_t sum_of_lanes(std::uint32_t value) {
  for (std::uint32_t step = lane_count / 2; step > 0; step /= 2)
    value += __shfl_xor_sync(all_lanes, value, step);
  return value;
}

__device__ __forceinline__ std::uint32_t or_of_lanes(std::uint32_t bits) {
#if __CUDA_ARCH__ >= 800
  return __reduce_or_sync(all_lanes, bits);
#else
  for (std::uint32_t step = 1; step < lane_count; step *= 2)
    bits |= __shfl_xor_sync(all_lanes, bits, step);
  return bits;
#endif
}

__device__ __forceinline__ std::uint32_t from_last_lane(std::uint32_t value) {
  return __shfl_sync(all_lanes, value, lane_count - 1);
}

#ifdef __CUDACC__
// A barrier for all warps of a block, which may call it from different places in the code: of two
// warps that work on one piece, one reads and the other writes.
__device__ __forceinline__ void meet() {
  asm volatile("barrier.sync 0;" ::: "memory");
}
#endif

}  // namespace nacre::engine::cuda
