// SPDX-License-Identifier: Apache-2.0
// AES in plain modes: the choice of a kernel, and the serial kernel. Modes in which blocks do not
// depend on each other go to crypt_parallel.cu after a tile plan, or to crypt_short.cu without a
// plan when the messages are short.
//
// In CBC encryption and OFB each block waits for the one before, so one thread processes a message.
// A warp is busy until the longest of its 32 messages ends. Neighbouring warps of messages go to
// different multiprocessors, so that even few messages use many of them.
//
// A block is a chain of 10 to 14 rounds, each of which waits some 30 cycles for its 16 look-ups.
// With four warps on a multiprocessor (16 k messages on an H200) at most half of the look-ups that
// a multiprocessor could do are done.
#include "gpu_engine/cuda/kernels/crypt.h"

#include <algorithm>

#include "gpu_engine/cuda/kernels/crypt_parts.cuh"
#include "gpu_engine/cuda/kernels/des.h"
#include "gpu_engine/cuda/kernels/launch.cuh"
#include "gpu_engine/cuda/kernels/tile_plan.cuh"

namespace nacre::engine::cuda {

namespace {

constexpr int threads_per_block = 512;
constexpr int warps_per_block = threads_per_block / 32;

__device__ void fill_with_zeros(const CryptTask& task) {
  for (std::uint64_t offset = 0; offset < task.size; offset += block_bytes)
    store_block(task.out, offset, task.size, make_uint4(0, 0, 0, 0));
}

template <CryptMode mode, int table_count>
__global__ __launch_bounds__(threads_per_block,
                             1) void crypt_chains(const CryptTask* tasks, std::uint32_t count,
                                                  const CipherKeyGroup* __restrict__ expanded) {
  extern __shared__ std::uint32_t shared[];
  const SharedTables<table_count> tables(shared, aes_encryption_table);
  const std::uint32_t groups = (count + 31) / 32;
  for (std::uint32_t group = blockIdx.x + gridDim.x * (threadIdx.x / 32); group < groups;
       group += gridDim.x * warps_per_block) {
    const std::uint32_t index = group * 32 + threadIdx.x % 32;
    if (index >= count) continue;
    const CryptTask task = tasks[index];
    if (task.key == no_key) {
      fill_with_zeros(task);
      continue;
    }
    // CBC processes whole blocks; bytes after the last one are ignored.
    const std::uint64_t size =
        mode == CryptMode::cbc ? task.size / block_bytes * block_bytes : task.size;
    const CipherKeyView key(expanded, task.key);
    const std::uint32_t round_count = key.round_count();
    uint4 keys[15] = {};
    load_round_keys(keys, key.encrypt(), round_count);
    uint4 state = load_bytes_of_block(task.iv, 16);
    uint4 next = {};
    if (size != 0) next = load_block(task.in, 0, size);
#pragma unroll 1
    for (std::uint64_t offset = 0; offset < size; offset += block_bytes) {
      const uint4 in = next;
      // The next block is loaded before the long chain of rounds.
      if (offset + block_bytes < size) next = load_block(task.in, offset + block_bytes, size);
      if (mode == CryptMode::cbc) state = state ^ in;
      state = run_rounds<false, 1>(tables, state ^ keys[0], keys, round_count);
      store_block(task.out, offset, size, mode == CryptMode::cbc ? state : state ^ in);
    }
  }
}

template <CryptMode mode, int table_count>
cudaError_t launch(const CryptTask* tasks, std::uint32_t count, const CipherKeyGroup* keys,
                   const DeviceShape& shape, cudaStream_t stream) {
  const auto kernel = crypt_chains<mode, table_count>;
  constexpr int shared_bytes = shared_tables_bytes<table_count>;
  static_assert(table_count > 2 || shared_bytes <= shared_bytes_least);
  const cudaError_t error =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes);
  if (error != cudaSuccess) return error;
  const auto blocks = static_cast<int>(
      std::min((count + 31) / 32, static_cast<std::uint32_t>(shape.multiprocessors)));
  kernel<<<blocks, threads_per_block, shared_bytes, stream>>>(tasks, count, keys);
  return cudaGetLastError();
}

}  // namespace

cudaError_t crypt_serial(CryptMode mode, const CryptTask* tasks, std::uint32_t count,
                         const CipherKeyGroup* keys, cudaStream_t stream) {
  DeviceShape shape;
  const cudaError_t error = device_shape(shape);
  if (error != cudaSuccess) return error;
  const bool all_tables = shape.shared_bytes_max >= shared_tables_bytes<4>;
  if (mode == CryptMode::cbc)
    return all_tables ? launch<CryptMode::cbc, 4>(tasks, count, keys, shape, stream)
                      : launch<CryptMode::cbc, 2>(tasks, count, keys, shape, stream);
  return all_tables ? launch<CryptMode::ofb, 4>(tasks, count, keys, shape, stream)
                    : launch<CryptMode::ofb, 2>(tasks, count, keys, shape, stream);
}

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
