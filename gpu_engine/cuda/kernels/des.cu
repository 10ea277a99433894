// SPDX-License-Identifier: Apache-2.0
// DES: the choice of a kernel, the expansion of each key by four threads, and the serial kernel.
// Modes in which blocks do not depend on each other go to des_blocks.cu after a tile plan.
//
// In CBC encryption and OFB each block waits for the one before, so one thread processes a message,
// as for AES (crypt.cu). A warp is busy until the longest of its 32 messages ends.
//
// Counted: 128 look-ups for each block and pass, which is 16 for each byte. Each lane of a warp has
// its own S-boxes in its own bank, so a multiprocessor does 32 look-ups a cycle: 520 GB/s on an
// H200, 174 for 3DES. But a block is a chain of 16 rounds of some 55 cycles, so 16 k messages can
// give 280 GB/s at best. Measured on an H200, 2026-11-22: 141 GB/s with 16 k messages of 64 KiB.
#include "gpu_engine/cuda/kernels/des.h"

#include <algorithm>

#include "gpu_engine/cuda/kernels/block_io.cuh"
#include "gpu_engine/cuda/kernels/crypt.h"
#include "gpu_engine/cuda/kernels/des_serial.h"
#include "gpu_engine/cuda/kernels/launch.cuh"
#include "gpu_engine/cuda/kernels/sha256.cuh"
#include "gpu_engine/cuda/kernels/tile_plan.cuh"

namespace nacre::engine::cuda {

namespace {

constexpr int threads_per_block = 512;
constexpr int warps_per_block = threads_per_block / 32;
__device__ DesBlock operator^(DesBlock a, DesBlock b) {
  return {a.first ^ b.first, a.second ^ b.second};
}

template <CryptMode mode, int pass_count>
__global__ __launch_bounds__(threads_per_block,
                             1) void des_chains(const CryptTask* tasks, std::uint32_t count,
                                                const DesKey* __restrict__ keys) {
  extern __shared__ std::uint32_t shared[];
  const LaneBoxes boxes(shared);
  const std::uint32_t groups = (count + 31) / 32;
  for (std::uint32_t group = blockIdx.x + gridDim.x * (threadIdx.x / 32); group < groups;
       group += gridDim.x * warps_per_block) {
    const std::uint32_t index = group * 32 + threadIdx.x % 32;
    if (index >= count) continue;
    const CryptTask task = tasks[index];
    if (task.key == no_key) {
      for (std::uint64_t offset = 0; offset < task.size; offset += des_block_bytes)
        store_des_block(task.out, offset, task.size, make_uint2(0, 0));
      continue;
    }
    // CBC processes whole blocks; bytes after the last one are ignored.
    const std::uint64_t size =
        mode == CryptMode::cbc ? task.size / des_block_bytes * des_block_bytes : task.size;
    DesSerialKey rounds[des_rounds_per_pass * pass_count];
#pragma unroll
    for (int i = 0; i < des_rounds_per_pass * pass_count; ++i)
      rounds[i] = keys[task.key].serial[i];
    DesBlock state = permute_initially(
        des_block_of(make_uint2(load_bytes(task.iv, 4), load_bytes(task.iv + 4, 4))));
    uint2 next = make_uint2(0, 0);
    if (size != 0) next = load_des_block(task.in, 0, size);
#pragma unroll 1
    for (std::uint64_t offset = 0; offset < size; offset += des_block_bytes) {
      const uint2 in = next;
      // The next block is loaded before the long chain of rounds.
      if (offset + des_block_bytes < size)
        next = load_des_block(task.in, offset + des_block_bytes, size);
      if (mode == CryptMode::cbc) state = state ^ permute_initially(des_block_of(in));
      state = run_serial_passes<pass_count>(boxes, rounds, state);
      uint2 out = des_words_of(permute_finally(state));
      if (mode == CryptMode::ofb) out = make_uint2(out.x ^ in.x, out.y ^ in.y);
      store_des_block(task.out, offset, size, out);
    }
  }
}

template <int pass_count>
cudaError_t launch(CryptMode mode, const CryptTask* tasks, std::uint32_t count, const DesKey* keys,
                   cudaStream_t stream) {
  DeviceShape shape;
  cudaError_t error = device_shape(shape);
  if (error != cudaSuccess) return error;
  const auto kernel = mode == CryptMode::cbc ? des_chains<CryptMode::cbc, pass_count>
                                             : des_chains<CryptMode::ofb, pass_count>;
  static_assert(LaneBoxes::shared_bytes <= shared_bytes_least);
  error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               LaneBoxes::shared_bytes);
  if (error != cudaSuccess) return error;
  const auto blocks =
      std::min((count + 31) / 32, static_cast<std::uint32_t>(shape.multiprocessors));
  kernel<<<blocks, threads_per_block, LaneBoxes::shared_bytes, stream>>>(tasks, count, keys);
  return cudaGetLastError();
}

}  // namespace

cudaError_t des_crypt_serial(int pass_count, CryptMode mode, const CryptTask* tasks,
                             std::uint32_t count, const DesKey* keys, cudaStream_t stream) {
  return pass_count == 1 ? launch<1>(mode, tasks, count, keys, stream)
                         : launch<des_passes_max>(mode, tasks, count, keys, stream);
}

namespace {

constexpr std::uint32_t expand_threads = 128;
constexpr std::uint32_t threads_per_key = 4;

__global__ void expand(const RawKey* keys, std::uint32_t count, int pass_count, DesKey* expanded,
                       ExpandedSuiteKey* suites) {
  // Each warp does one of four kinds of work, for 32 keys.
  const std::uint32_t thread = blockIdx.x * expand_threads + threadIdx.x;
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
  expand<<<(warps * 32 + expand_threads - 1) / expand_threads, expand_threads, 0, stream>>>(
      keys, count, pass_count, expanded, suites);
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
