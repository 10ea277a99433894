// SPDX-License-Identifier: Apache-2.0
// From a tile to the messages of its 32 units: lane u learns the message of unit u.
//
// Every message has a unit at least, so the 32 messages after the tile's first one hold all the
// boundaries that can lie in it. Each lane looks at one boundary and sets its bit; how many bits
// are set up to a unit is how many messages further on it belongs.
#pragma once

#include <cstdint>

#include "gpu_engine/cuda/kernels/tile_plan.h"

namespace nacre::engine::cuda {

inline constexpr unsigned all_lanes = 0xffffffffu;
inline constexpr std::uint32_t units_per_warp_tile = 32;

// Neighbouring tiles for each warp, so that every one gets its share of the short tiles that
// messages of one length have at the same place.
struct TileRange {
  std::uint32_t begin, end;
};

__device__ inline TileRange tiles_of_warp(std::uint32_t tile_count, std::uint32_t warp,
                                          std::uint32_t warp_count) {
  return {static_cast<std::uint32_t>(std::uint64_t{tile_count} * warp / warp_count),
          static_cast<std::uint32_t>(std::uint64_t{tile_count} * (warp + 1) / warp_count)};
}

__device__ inline std::uint32_t or_over_warp(std::uint32_t value) {
#if __CUDA_ARCH__ >= 800
  return __reduce_or_sync(all_lanes, value);
#else
  for (int distance = 16; distance > 0; distance /= 2)
    value |= __shfl_xor_sync(all_lanes, value, distance);
  return value;
#endif
}

// plan.units_per_tile is 32. A lane past the last unit gets some message that exists.
__device__ inline std::uint32_t message_of_unit(const TilePlan& plan, std::uint32_t tile,
                                                std::uint32_t lane) {
  const std::uint32_t first = plan.tile_messages[tile];
  const std::uint32_t next = first + 1 + lane;
  std::uint32_t boundary = 0;
  if (next < plan.message_count) {
    const std::uint32_t distance = plan.first_units[next] - tile * units_per_warp_tile;
    if (distance < units_per_warp_tile) boundary = 1u << distance;
  }
  const std::uint32_t boundaries = or_over_warp(boundary);
  return first + __popc(boundaries & ((2u << lane) - 1));
}

}  // namespace nacre::engine::cuda
