// SPDX-License-Identifier: Apache-2.0
// Lanes of a warp and sums over them. All lanes call these together.
#pragma once

#include <cstdint>

namespace nacre::engine::cuda {

inline constexpr std::uint32_t all_lanes = 0xffffffffu;
inline constexpr std::uint32_t lane_count = 32;

inline __device__ std::uint32_t this_lane() {
  return threadIdx.x % lane_count;
}

inline __device__ std::uint32_t this_warp() {
  return threadIdx.x / lane_count;
}

// The sum up to this lane, its own value included.
inline __device__ std::uint32_t inclusive_sum(std::uint32_t value) {
  for (std::uint32_t distance = 1; distance < lane_count; distance *= 2) {
    const std::uint32_t before = __shfl_up_sync(all_lanes, value, distance);
    if (this_lane() >= distance) value += before;
  }
  return value;
}

inline __device__ std::uint32_t from_last_lane(std::uint32_t value) {
  return __shfl_sync(all_lanes, value, lane_count - 1);
}

}  // namespace nacre::engine::cuda
