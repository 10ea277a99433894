// SPDX-License-Identifier: Apache-2.0
// CBC encryption and OFB, where each block waits for the one before: a message a thread. A warp's
// 32 messages end with the longest. Warps are dealt over the multiprocessors, neighbours apart, so
// that few messages spread as far as they go.
//
// A block's rounds are a chain of 10 to 14 lookups of some 30 cycles, 16 at a time; with four warps
// on a multiprocessor (16 k messages on an H200) half of the lookups a cycle can be kept busy.
#include <algorithm>

#include "gpu_engine/cuda/kernels/aes_rounds.cuh"
#include "gpu_engine/cuda/kernels/crypt_parts.h"
#include "gpu_engine/cuda/kernels/device_shape.h"

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
    // CBC takes whole blocks; what hangs over is no block.
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
      // Asked for a block ahead, before the long chain.
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

}  // namespace nacre::engine::cuda
