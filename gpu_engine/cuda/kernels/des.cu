// SPDX-License-Identifier: Apache-2.0
// Expands keys, four threads a key, and sends tasks to the kernels of their mode, after a tile plan
// for the parallel ones.
#include "gpu_engine/cuda/kernels/des.h"

#include "gpu_engine/cuda/kernels/des_parts.h"
#include "gpu_engine/cuda/kernels/hmac_key.cuh"
#include "gpu_engine/cuda/kernels/make_tile_plan.cuh"

namespace nacre::engine::cuda {
namespace {

constexpr std::uint32_t threads_per_block = 128;
constexpr std::uint32_t threads_per_key = 4;

__global__ void expand(const RawKey* keys, std::uint32_t count, int pass_count, DesKey* expanded,
                       ExpandedSuiteKey* suites) {
  // Threads of a warp do the same for 32 keys.
  const std::uint32_t thread = blockIdx.x * threads_per_block + threadIdx.x;
  const std::uint32_t index = thread / (threads_per_key * 32) * 32 + thread % 32;
  if (index >= count) return;
  const RawKey& key = keys[index];
  DesKey& out = expanded[index];
  switch (thread / 32 % threads_per_key) {
    case 0:
      return make_des_schedule(key.bytes, pass_count, true, out.encrypt);
    case 1:
      return make_des_schedule(key.bytes, pass_count, false, out.decrypt);
    case 2:
      return make_des_serial_keys(key.bytes, pass_count, out.serial);
    default:
      break;
  }
  if (key.form != KeyForm::cbc_hmac || suites == nullptr) return;
  const int cipher_key_size = pass_count * des_key_bytes;
  make_des_serial_keys(key.bytes + cipher_key_size, pass_count, out.serial_iv);
  const Byte* const hmac_key = key.bytes + 2 * cipher_key_size;
  write_hmac_state(hmac_key, hmac_inner_pad, suites[index].hmac_inner);
  write_hmac_state(hmac_key, hmac_outer_pad, suites[index].hmac_outer);
}

struct Workspace {
  TilePlanWorkspace plan;
  uint2* previous_blocks;
  std::size_t size;

  Workspace(void* base, std::uint32_t count, std::uint64_t total_bytes) {
    WorkspaceCursor cursor(base);
    plan = take_tile_plan(cursor, count, total_bytes, 0, des_unit_bytes, des_units_per_tile);
    previous_blocks = cursor.take<uint2>(plan.tiles_max);
    size = cursor.used();
  }
};

struct UnitsOfTask {
  const CryptTask* tasks;

  __device__ std::uint32_t operator()(std::uint32_t index) const {
    const std::uint64_t size = tasks[index].size;
    return size == 0 ? 1 : static_cast<std::uint32_t>((size + des_unit_bytes - 1) / des_unit_bytes);
  }
};

bool is_pass_count(int count) {
  return count == 1 || count == des_passes_max;
}

}  // namespace

cudaError_t des_expand_keys(const RawKey* keys, std::uint32_t count, int pass_count,
                            DesKey* expanded, ExpandedSuiteKey* suites, cudaStream_t stream) {
  if (!is_pass_count(pass_count)) return cudaErrorInvalidValue;
  if (count == 0) return cudaSuccess;
  const std::uint32_t warps = (count + 31) / 32 * threads_per_key;
  expand<<<(warps * 32 + threads_per_block - 1) / threads_per_block, threads_per_block, 0,
           stream>>>(keys, count, pass_count, expanded, suites);
  return cudaGetLastError();
}

std::size_t des_crypt_workspace_size(std::uint32_t count, std::uint64_t total_bytes) {
  return Workspace(nullptr, count, total_bytes).size;
}

cudaError_t des_crypt(int pass_count, CryptMode mode, CryptDirection direction,
                      const CryptTask* tasks, std::uint32_t count, std::uint64_t total_bytes,
                      const DesKey* keys, void* workspace, cudaStream_t stream) {
  if (!is_pass_count(pass_count)) return cudaErrorInvalidValue;
  if (count == 0) return cudaSuccess;
  if (reinterpret_cast<std::uintptr_t>(tasks) % 16 != 0) return cudaErrorMisalignedAddress;
  const bool serial =
      mode == CryptMode::ofb || (mode == CryptMode::cbc && direction == CryptDirection::encrypt);
  if (serial) return des_crypt_serial(pass_count, mode, tasks, count, keys, stream);
  const Workspace pieces(workspace, count, total_bytes);
  const cudaError_t error = make_tile_plan(UnitsOfTask{tasks}, pieces.plan, stream);
  if (error != cudaSuccess) return error;
  return des_crypt_parallel(pass_count, mode, direction, tasks, pieces.plan, keys,
                            pieces.previous_blocks, stream);
}

}  // namespace nacre::engine::cuda
