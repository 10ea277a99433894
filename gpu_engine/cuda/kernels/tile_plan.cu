// SPDX-License-Identifier: Apache-2.0
// Tile plans of many messages: a scan over their units; then one thread for each tile finds the
// message of the tile's first unit.
#include <cub/device/device_scan.cuh>

#include "gpu_engine/cuda/kernels/tile_plan.cuh"

namespace nacre::engine::cuda {
namespace {

constexpr int threads_per_block = 256;

__global__ void name_tiles(TilePlan plan) {
  const std::uint32_t tile = blockIdx.x * threads_per_block + threadIdx.x;
  if (tile < tile_count_of(plan)) plan.tile_messages[tile] = find_message(plan, tile);
}

}  // namespace

TilePlanWorkspace take_tile_plan(WorkspaceCursor& cursor, std::uint32_t count,
                                 std::uint64_t total_bytes, std::uint32_t overhead_bytes,
                                 std::uint32_t unit_bytes, std::uint32_t units_per_tile) {
  TilePlanWorkspace workspace = {};
  const std::uint64_t bytes = total_bytes + std::uint64_t{count} * overhead_bytes;
  const std::uint64_t units_max = count + bytes / unit_bytes;
  workspace.tiles_max = units_max / units_per_tile + 1;
  workspace.plan.first_units = cursor.take<std::uint32_t>(std::size_t{count} + 1);
  workspace.plan.tile_messages = cursor.take<std::uint32_t>(workspace.tiles_max);
  workspace.plan.message_count = count;
  workspace.plan.units_per_tile = units_per_tile;
  // The call fails only if there is no device, and then nothing will be launched.
  if (cub::DeviceScan::ExclusiveSum(nullptr, workspace.scan_size,
                                    static_cast<std::uint32_t*>(nullptr),
                                    static_cast<std::uint32_t*>(nullptr),
                                    static_cast<std::int64_t>(count) + 1) != cudaSuccess)
    workspace.scan_size = 0;
  workspace.scan = cursor.take<char>(workspace.scan_size);
  return workspace;
}

cudaError_t add_up_and_name_tiles(const TilePlanWorkspace& workspace, cudaStream_t stream) {
  const TilePlan& plan = workspace.plan;
  std::size_t scan_size = workspace.scan_size;
  const cudaError_t scanned =
      cub::DeviceScan::ExclusiveSum(workspace.scan, scan_size, plan.first_units, plan.first_units,
                                    static_cast<std::int64_t>(plan.message_count) + 1, stream);
  if (scanned != cudaSuccess) return scanned;
  const auto blocks =
      static_cast<std::uint32_t>((workspace.tiles_max + threads_per_block - 1) / threads_per_block);
  name_tiles<<<blocks, threads_per_block, 0, stream>>>(plan);
  return cudaGetLastError();
}

}  // namespace nacre::engine::cuda
