// SPDX-License-Identifier: Apache-2.0
// zstd frames, decoded by a warp each. zstd_decoder.cuh derives what a warp does.
//
// Three ways were weighed, by cycles of a frame of 64 KiB, taken as 5,000 sequences: a
// warp a frame, about 8 instructions a byte by a sketch; two warps, of which one reads what the
// other writes, the same work in less time, but registers for half as many frames; a kernel a
// phase, with a lane a stream, fewer instructions, but each phase through device memory. Shared
// memory holds the tables of 20 frames a multiprocessor under any of them. So the first was built.
//
// Executed: 4.8 instructions of a warp a byte, so 188 GB/s where an H200 issues all it can. A
// frame's time with 20 of them on a multiprocessor: literals 23 %, sequences read 25 %, written
// 42 %, tables 4 % (before tiles were moved four at a time, which made 3 %). Few frames take as
// long as the slowest of them. Measured on one, 2026-11-28, 64 KiB frames of Silesia by libzstd at
// level 1:
//
//   frames              512   1,024   2,048   4,096   10,000
//   GB/s                 24      42      75      86      108
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
