// SPDX-License-Identifier: Apache-2.0
// Makes a tile plan on the device, and finds the message of each unit of a tile.
//
// make_tile_plan(): units_of(i) is message i's number of units, at least one: a device function
// object. Few messages take one launch of one block, which adds up, and then finds each tile's
// message by bisection. More messages are counted, added up by CUB, and their tiles found, in
// launches of their own. A bisection for each tile of 8 KiB costs nothing compared to the tile's
// work; a bisection for each thread would.
//
// message_of_unit(): lane u learns the message of unit u. Every message has a unit at least, so the
// 32 messages after the tile's first one hold all boundaries that can lie in the tile. Each lane
// looks at one boundary and sets its bit; how many bits are set up to a unit is how many messages
// further on the unit belongs.
#pragma once

#include <cub/block/block_scan.cuh>

#include <cstdint>

#include "gpu_engine/cuda/kernels/tile_plan.h"
#include "gpu_engine/cuda/kernels/warp.cuh"

namespace nacre::engine::cuda {

inline constexpr int plan_threads = 1024;
inline constexpr std::uint32_t one_block_messages_max = 8192;
inline constexpr std::uint64_t one_block_tiles_max = 16384;

// The last message whose units begin at or before the tile's first unit.
__device__ inline std::uint32_t find_message(const TilePlan& plan, std::uint32_t tile) {
  const std::uint32_t unit = tile * plan.units_per_tile;
  std::uint32_t low = 0, high = plan.message_count;
  while (high - low > 1) {
    const std::uint32_t middle = low + (high - low) / 2;
    if (plan.first_units[middle] <= unit)
      low = middle;
    else
      high = middle;
  }
  return low;
}

__device__ inline std::uint32_t tile_count_of(const TilePlan& plan) {
  return (plan.first_units[plan.message_count] + plan.units_per_tile - 1) / plan.units_per_tile;
}

template <typename UnitsOf>
__global__ __launch_bounds__(plan_threads) void plan_in_one_block(UnitsOf units_of, TilePlan plan) {
  using Scan = cub::BlockScan<std::uint32_t, plan_threads>;
  __shared__ typename Scan::TempStorage storage;
  std::uint32_t before = 0;
  for (std::uint32_t base = 0; base < plan.message_count; base += plan_threads) {
    const std::uint32_t index = base + threadIdx.x;
    const std::uint32_t units = index < plan.message_count ? units_of(index) : 0;
    std::uint32_t first, sum;
    Scan(storage).ExclusiveSum(units, first, sum);
    if (index < plan.message_count) plan.first_units[index] = before + first;
    before += sum;
    __syncthreads();
  }
  if (threadIdx.x == 0) plan.first_units[plan.message_count] = before;
  __syncthreads();
  const std::uint32_t tile_count = tile_count_of(plan);
  for (std::uint32_t tile = threadIdx.x; tile < tile_count; tile += plan_threads)
    plan.tile_messages[tile] = find_message(plan, tile);
}

template <typename UnitsOf>
__global__ void count_units(UnitsOf units_of, TilePlan plan) {
  const std::uint32_t index = blockIdx.x * plan_threads + threadIdx.x;
  if (index <= plan.message_count)
    plan.first_units[index] = index < plan.message_count ? units_of(index) : 0;
}

template <typename UnitsOf>
cudaError_t make_tile_plan(UnitsOf units_of, const TilePlanWorkspace& workspace,
                           cudaStream_t stream) {
  const TilePlan& plan = workspace.plan;
  if (plan.message_count <= one_block_messages_max && workspace.tiles_max <= one_block_tiles_max) {
    plan_in_one_block<<<1, plan_threads, 0, stream>>>(units_of, plan);
    return cudaGetLastError();
  }
  count_units<<<plan.message_count / plan_threads + 1, plan_threads, 0, stream>>>(units_of, plan);
  return add_up_and_name_tiles(workspace, stream);
}

inline constexpr std::uint32_t units_per_warp_tile = 32;

// Each warp gets neighbouring tiles, so that each gets its share of the short tiles, which messages
// of one length have at the same place.
struct TileRange {
  std::uint32_t begin, end;
};

__device__ inline TileRange tiles_of_warp(std::uint32_t tile_count, std::uint32_t warp,
                                          std::uint32_t warp_count) {
  return {static_cast<std::uint32_t>(std::uint64_t{tile_count} * warp / warp_count),
          static_cast<std::uint32_t>(std::uint64_t{tile_count} * (warp + 1) / warp_count)};
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
  const std::uint32_t boundaries = or_of_lanes(boundary);
  return first + __popc(boundaries & ((2u << lane) - 1));
}

}  // namespace nacre::engine::cuda
