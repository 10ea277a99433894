// SPDX-License-Identifier: Apache-2.0
// Sends tasks to the kernels of their mode, after a tile plan for the parallel ones,
// but for short messages.
#include "gpu_engine/cuda/kernels/crypt.h"

#include <algorithm>

#include "gpu_engine/cuda/kernels/crypt_parts.h"
#include "gpu_engine/cuda/kernels/des.h"
#include "gpu_engine/cuda/kernels/make_tile_plan.cuh"

namespace nacre::engine::cuda {
namespace {

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

struct UnitsOfTask {
  const CryptTask* tasks;

  __device__ std::uint32_t operator()(std::uint32_t index) const {
    const std::uint64_t size = tasks[index].size;
    return size == 0 ? 1 : static_cast<std::uint32_t>((size + unit_bytes - 1) / unit_bytes);
  }
};

}  // namespace

std::size_t crypt_workspace_size(std::uint32_t count, std::uint64_t total_bytes) {
  return std::max(Workspace(nullptr, count, total_bytes).size,
                  des_crypt_workspace_size(count, total_bytes));
}

cudaError_t crypt(CryptMode mode, CryptDirection direction, const CryptTask* tasks,
                  std::uint32_t count, std::uint64_t total_bytes, std::uint64_t size_max,
                  const CipherKeyGroup* keys, void* workspace, cudaStream_t stream) {
  if (count == 0) return cudaSuccess;
  if (reinterpret_cast<std::uintptr_t>(tasks) % 16 != 0) return cudaErrorMisalignedAddress;
  const bool serial =
      mode == CryptMode::ofb || (mode == CryptMode::cbc && direction == CryptDirection::encrypt);
  if (serial) return crypt_serial(mode, tasks, count, keys, stream);
  if (mode == CryptMode::ctr && size_max <= unit_bytes)
    return crypt_short_counters(tasks, count, keys, stream);
  const Workspace pieces(workspace, count, total_bytes);
  const cudaError_t error = make_tile_plan(UnitsOfTask{tasks}, pieces.plan, stream);
  if (error != cudaSuccess) return error;
  return crypt_parallel(mode, direction, tasks, pieces.plan, keys, pieces.previous_blocks, stream);
}

cudaError_t crypt(CryptMode mode, CryptDirection direction, const CryptTask* tasks,
                  std::uint32_t count, std::uint64_t total_bytes, std::uint64_t size_max,
                  const KeyTable& keys, void* workspace, cudaStream_t stream) {
  if (keys.family == CipherFamily::aes)
    return crypt(mode, direction, tasks, count, total_bytes, size_max, keys.ciphers, workspace,
                 stream);
  return des_crypt(des_pass_count(keys.family), mode, direction, tasks, count, total_bytes,
                   keys.des, workspace, stream);
}

}  // namespace nacre::engine::cuda
