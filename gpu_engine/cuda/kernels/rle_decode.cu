// SPDX-License-Identifier: Apache-2.0
// PackBits, decoded by a block a piece, of a warp for every two parts.
//
// Counted: 1.25 instructions of a warp a byte, so 830 GB/s where an H200 issues all it can.
// Measured on one, 2026-11-22, 64 KiB pieces of Silesia: 342 and 594 GB/s with 512 and 10,000.
#include "gpu_engine/cuda/kernels/device_shape.h"
#include "gpu_engine/cuda/kernels/launch_sharing.cuh"
#include "gpu_engine/cuda/kernels/rle.h"
#include "gpu_engine/cuda/kernels/rle_decoder.cuh"

namespace nacre::engine::cuda {
namespace rle {
namespace {

// The second where a block may share less (sm_75): 0.95 of the speed on an H200.
constexpr std::uint32_t decode_warps = 8;
constexpr std::uint32_t few_decode_warps = 6;
constexpr int decode_memory_size_bytes(std::uint32_t warps) {
  return static_cast<int>(warps * sizeof(DecoderMemory));
}
static_assert(decode_memory_size_bytes(few_decode_warps) <= shared_bytes_least);

template <std::uint32_t warps>
__global__ void __launch_bounds__(warps* lane_count)
    decode_pieces(const CodecTask* tasks, std::uint32_t* results) {
  extern __shared__ uint4 memory[];
  const bool valid =
      decode_piece(tasks[blockIdx.x], reinterpret_cast<DecoderMemory*>(memory), warps);
  const int all_valid = __syncthreads_and(valid);
  if (threadIdx.x == 0) results[blockIdx.x] = all_valid != 0;
}

}  // namespace
}  // namespace rle

std::size_t rle_decode_workspace_size(std::uint32_t /*count*/) {
  return 0;
}

cudaError_t rle_decode(const CodecTask* tasks, std::uint32_t count, std::uint32_t* results,
                       void* /*workspace*/, cudaStream_t stream) {
  using namespace rle;
  if (count == 0) return cudaSuccess;
  DeviceShape shape;
  const cudaError_t error = device_shape(shape);
  if (error != cudaSuccess) return error;
  const bool fits = decode_memory_size_bytes(decode_warps) <= shape.shared_bytes_max;
  const std::uint32_t warps = fits ? decode_warps : few_decode_warps;
  const auto kernel = fits ? decode_pieces<decode_warps> : decode_pieces<few_decode_warps>;
  return launch_sharing(kernel, count, warps * lane_count, decode_memory_size_bytes(warps), stream,
                        tasks, results);
}

}  // namespace nacre::engine::cuda
