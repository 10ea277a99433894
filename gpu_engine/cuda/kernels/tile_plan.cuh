// SPDX-License-Identifier: Apache-2.0
// Makes a tile plan on the device, and finds the message of each unit of a tile.
//
// make_tile_plan(): units_of is a device function object; units_of(i) is the count of message i's
// units, at least one. For few messages there is one launch of one block, which adds the counts up
// and then finds each tile's message by bisection. For more messages, counting, adding up (by CUB)
// and finding are separate launches. A bisection for each tile of 8 KiB costs little compared to
// the work on the tile; a bisection for each thread would cost much.
//
// message_of_unit(): lane u gets the message of unit u of a tile. Every message has at least one
// unit, so only the first 32 messages after the tile's first message can begin in the tile. Each
// lane looks where one of them begins, and sets the bit of that unit. The count of bits up to unit
// u is how many messages after the first one unit u's message is.
#pragma once

#include <cub/block/block_scan.cuh>

#include <cstdint>

#include "gpu_engine/cuda/kernels/tile_plan.h"
#include "gpu_engine/cuda/kernels/warp.cuh"

namespace nacre::engine::cuda {

inline constexpr int plan_threads = 1024;
inline constexpr std::uint32_t one_block_messages_max = 8192;
inline constexpr std::uint64_t one_block_tiles_max = 16384;

// The message of the tile's first unit: the last one that begins at or before it.
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

// The tiles of a warp. A warp gets neighbouring tiles, so that each warp gets its share of short
// tiles: messages of equal length have short tiles at regular distances.
struct TileRange {
  std::uint32_t begin, end;
};

__device__ inline TileRange tiles_of_warp(std::uint32_t tile_count, std::uint32_t warp,
                                          std::uint32_t warp_count) {
  return {static_cast<std::uint32_t>(std::uint64_t{tile_count} * warp / warp_count),
          static_cast<std::uint32_t>(std::uint64_t{tile_count} * (warp + 1) / warp_count)};
}

// plan.units_per_tile must be 32. All lanes call it together; a lane past the last unit gets some
// existing message.
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
