// SPDX-License-Identifier: Apache-2.0
// Makes a tile plan on the device. units_of(i) is message i's number of units, at least one: a
// device function object.
//
// Few messages take one launch of one block, which adds up, and then finds each tile's message by
// bisection. More of them are counted, added up by CUB, and their tiles found, in launches of their
// own. A bisection a tile of 8 KiB is nothing beside its work; a bisection a thread would not be.
#pragma once

#include <cub/block/block_scan.cuh>

#include "gpu_engine/cuda/kernels/tile_plan.h"

namespace nacre::engine::cuda {

inline constexpr int plan_threads = 1024;
inline constexpr std::uint32_t one_block_messages_max = 8192;
inline constexpr std::uint64_t one_block_tiles_max = 16384;

// The last message whose units begin at or before the tile's first.
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

}  // namespace nacre::engine::cuda
