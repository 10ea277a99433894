// SPDX-License-Identifier: Apache-2.0
// zstd frames, decoded by a warp each. zstd_decoder.cuh derives what a warp does.
#include "gpu_engine/cuda/kernels/codecs.h"
#include "gpu_engine/cuda/kernels/zstd_decoder.cuh"

namespace nacre::engine::cuda {
namespace zstd {
namespace {

// A block a frame. Shared memory is what bounds how many are under way.
__global__ void __launch_bounds__(lane_count)
    decode_frames(const CodecTask* tasks, std::uint32_t* results) {
  __shared__ FrameMemory memory;
  const CodecTask task = tasks[blockIdx.x];
  const bool valid = decode_frame(memory, task);
  if (threadIdx.x == 0) results[blockIdx.x] = valid;
}

}  // namespace
}  // namespace zstd

std::size_t zstd_decode_workspace_size(std::uint32_t /*count*/) {
  return 0;
}

cudaError_t zstd_decode(const CodecTask* tasks, std::uint32_t count, std::uint32_t* results,
                        void* /*workspace*/, cudaStream_t stream) {
  if (count == 0) return cudaSuccess;
  const cudaError_t error = cudaFuncSetAttribute(
      zstd::decode_frames, cudaFuncAttributePreferredSharedMemoryCarveout, 100);
  if (error != cudaSuccess) return error;
  zstd::decode_frames<<<count, lane_count, 0, stream>>>(tasks, results);
  return cudaGetLastError();
}

}  // namespace nacre::engine::cuda
