// SPDX-License-Identifier: Apache-2.0
// Decodes each zstd frame with one warp. zstd_decoder.cuh derives what a warp does.
//
// Three ways were compared by estimate, for frames of 64 KiB with 5,000 sequences:
//
// - One warp for each frame: about 8 instructions for a byte.
// - Two warps for each frame, of which one reads sequences and the other writes them: the same work
//   in less time, but registers for only half as many frames.
// - One kernel for each phase, and one lane for each stream: fewer instructions, but the results of
//   each phase go through device memory.
//
// In all three, the tables of 20 frames fit into the shared memory of a multiprocessor. So the
// first way was built.
//
// A byte takes 4.8 instructions of a warp (counted as executed), which gives 188 GB/s if an H200
// issues all that it can. With 20 frames on a multiprocessor, a frame's time went to writing
// sequences (42 %), reading them (25 %), literals (23 %) and tables (4 %). Moving four tiles at a
// time has since saved 3 % of it. A launch of few frames takes as long as the slowest of them.
// Measured on an H200, 2026-11-28, 64 KiB frames of Silesia that libzstd compressed at level 1:
//
//   frames              512   1,024   2,048   4,096   10,000
//   GB/s                 24      42      75      86      108
#include "gpu_engine/cuda/kernels/codecs.h"
#include "gpu_engine/cuda/kernels/zstd_decoder.cuh"

namespace nacre::engine::cuda {
namespace zstd {
namespace {

// One block for each frame. Shared memory bounds the number of frames that are under way.
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
