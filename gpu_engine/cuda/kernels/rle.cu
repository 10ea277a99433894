// SPDX-License-Identifier: Apache-2.0
// Launches the codec rle with one thread block per piece. A block of the decoder (rle_decoder.cuh)
// has one warp for every two parts. A block of the encoder (rle_encoder.cuh) has one warp per part.
// On devices whose blocks have less shared memory (sm_75), both have fewer warps, which take parts
// in turn.
#include "gpu_engine/cuda/kernels/codecs.h"
#include "gpu_engine/cuda/kernels/launch.cuh"
#include "gpu_engine/cuda/kernels/rle_decoder.cuh"
#include "gpu_engine/cuda/kernels/rle_encoder.cuh"

namespace nacre::engine::cuda {

namespace rle {
namespace {

// few_decode_warps is for devices whose blocks have less shared memory (sm_75). On an H200 it has
// 0.95 of the speed.
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

namespace rle {
namespace {

constexpr std::uint32_t few_encode_warps = part_count_max / 2;
constexpr int encode_memory_size_bytes(std::uint32_t warps) {
  return static_cast<int>(warps * sizeof(EncoderMemory));
}
static_assert(encode_memory_size_bytes(few_encode_warps) + part_count_max * 4 <=
              shared_bytes_least);

template <std::uint32_t warps>
__global__ void __launch_bounds__(warps* lane_count, 2)
    encode_pieces(const CodecTask* tasks, std::uint32_t* results) {
  extern __shared__ uint4 shared[];
  __shared__ std::uint32_t sizes[part_count_max];
  auto* const memory = reinterpret_cast<EncoderMemory*>(shared);
  const CodecTask& task = tasks[blockIdx.x];
  std::uint32_t size = 0;
  if constexpr (warps == part_count_max)
    size = encode_piece(task, memory, sizes);
  else
    size = encode_piece_in_turns(task, memory, warps, sizes);
  if (threadIdx.x == 0) results[blockIdx.x] = size;
}

}  // namespace
}  // namespace rle

std::size_t rle_encode_workspace_size(std::uint32_t /*count*/) {
  return 0;
}

cudaError_t rle_encode(const CodecTask* tasks, std::uint32_t count, std::uint32_t* results,
                       void* /*workspace*/, cudaStream_t stream, int /*level*/) {
  using namespace rle;
  if (count == 0) return cudaSuccess;
  DeviceShape shape;
  const cudaError_t error = device_shape(shape);
  if (error != cudaSuccess) return error;
  const bool fits =
      encode_memory_size_bytes(part_count_max) + part_count_max * 4 <= shape.shared_bytes_max;
  const std::uint32_t warps = fits ? part_count_max : few_encode_warps;
  const auto kernel = fits ? encode_pieces<part_count_max> : encode_pieces<few_encode_warps>;
  return launch_sharing(kernel, count, warps * lane_count, encode_memory_size_bytes(warps), stream,
                        tasks, results);
}

}  // namespace nacre::engine::cuda
