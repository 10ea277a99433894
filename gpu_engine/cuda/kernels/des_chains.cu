// SPDX-License-Identifier: Apache-2.0
// CBC encryption and OFB with DES, where each block waits for the one before: a message a thread,
// as for AES (crypt_serial.cu). A warp's 32 messages end with the longest.
//
// Counted: 128 lookups a block and pass, 16 a byte. Each lane of a warp has S-boxes of its own, a
// bank each, so 32 lookups a clock and multiprocessor: 520 GB/s on an H200, 174 for 3DES. But a
// block is a chain of 16 rounds of some 55 cycles: with 16 k messages 280 GB/s at the most.
#include <algorithm>

#include "gpu_engine/cuda/kernels/crypt.h"
#include "gpu_engine/cuda/kernels/des_block_io.cuh"
#include "gpu_engine/cuda/kernels/des_boxes.cuh"
#include "gpu_engine/cuda/kernels/device_shape.h"

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
    // CBC takes whole blocks; what hangs over is no block.
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
      // Asked for a block ahead, before the long chain.
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

}  // namespace nacre::engine::cuda
