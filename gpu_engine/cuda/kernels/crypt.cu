// SPDX-License-Identifier: Apache-2.0
// Sends tasks to the kernels of their mode, after a tile plan for the parallel ones.
#include "gpu_engine/cuda/kernels/crypt.h"

#include "gpu_engine/cuda/kernels/crypt_parts.h"

namespace nacre::engine::cuda {
namespace {

constexpr int threads_per_block = 256;

struct Workspace {
  TilePlanWorkspace plan;
  uint4* previous_blocks;
  std::size_t size;

  Workspace(void* base, std::uint32_t count, std::uint64_t total_bytes) {
    WorkspaceCursor cursor(base);
    plan = take_tile_plan(cursor, count, total_bytes, 0, unit_bytes, crypt_units_per_tile);
    previous_blocks = cursor.take<uint4>(plan.tiles_max);
    size = cursor.used();
  }
};

__global__ void count_units(const CryptTask* tasks, std::uint32_t count, std::uint32_t* units) {
  const std::uint32_t index = blockIdx.x * threads_per_block + threadIdx.x;
  if (index > count) return;
  const std::uint64_t size = index < count ? tasks[index].size : 0;
  const auto needed = static_cast<std::uint32_t>((size + unit_bytes - 1) / unit_bytes);
  units[index] = index == count ? 0 : needed == 0 ? 1 : needed;
}

}  // namespace

std::size_t crypt_workspace_size(std::uint32_t count, std::uint64_t total_bytes) {
  return Workspace(nullptr, count, total_bytes).size;
}

cudaError_t crypt(CryptMode mode, CryptDirection direction, const CryptTask* tasks,
                  std::uint32_t count, std::uint64_t total_bytes, const ExpandedCipherKey* keys,
                  void* workspace, cudaStream_t stream) {
  if (count == 0) return cudaSuccess;
  const bool serial =
      mode == CryptMode::ofb || (mode == CryptMode::cbc && direction == CryptDirection::encrypt);
  if (serial) return crypt_serial(mode, tasks, count, keys, stream);
  const Workspace pieces(workspace, count, total_bytes);
  count_units<<<count / threads_per_block + 1, threads_per_block, 0, stream>>>(
      tasks, count, pieces.plan.plan.first_units);
  const cudaError_t error = make_tile_plan(pieces.plan, stream);
  if (error != cudaSuccess) return error;
  return crypt_parallel(mode, direction, tasks, pieces.plan, keys, pieces.previous_blocks, stream);
}

}  // namespace nacre::engine::cuda
