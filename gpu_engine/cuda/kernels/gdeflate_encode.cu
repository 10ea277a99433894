// SPDX-License-Identifier: Apache-2.0
// Launches the encoders of GDeflate pages, which gdeflate_encoder.cuh (with matches) and
// huffman_encoder.cuh (literals alone) derive.
#include <algorithm>

#include "gpu_engine/cuda/kernels/codecs.h"
#include "gpu_engine/cuda/kernels/gdeflate_encoder.cuh"
#include "gpu_engine/cuda/kernels/huffman_encoder.cuh"
#include "gpu_engine/cuda/kernels/launch.cuh"

namespace nacre::engine::cuda {
namespace gdeflate {
namespace {

// One block per piece.
__global__ void __launch_bounds__(LiteralEncoder::thread_count)
    encode_literals(const CodecTask* tasks, std::uint32_t* results) {
  __shared__ LiteralPage page;
  const std::uint32_t size = LiteralEncoder(tasks[blockIdx.x], page).run();
  if (threadIdx.x == 0) results[blockIdx.x] = size;
}

// The index of the next piece, which all thread blocks share, lies in front of their workspaces.
constexpr std::size_t counter_size = 256;

// There are as many thread blocks as workspaces. Each block encodes one piece after the other.
template <typename Encoder>
__global__ void __launch_bounds__(Encoder::thread_count)
    encode_pieces(const CodecTask* tasks, std::uint32_t count, std::uint32_t* results,
                  Byte* workspace) {
  extern __shared__ uint4 memory[];
  __shared__ std::uint32_t taken;
  auto& page = *reinterpret_cast<typename Encoder::Page*>(memory);
  std::uint32_t* const counter = reinterpret_cast<std::uint32_t*>(workspace);
  Byte* const mine = workspace + counter_size + blockIdx.x * Encoder::workspace_size;
  for (;;) {
    if (threadIdx.x == 0) taken = atomicAdd(counter, 1);
    __syncthreads();
    const std::uint32_t piece = taken;
    if (piece >= count) break;
    const std::uint32_t size = Encoder(tasks[piece], page, mine).run();
    if (threadIdx.x == 0) results[piece] = size;
    __syncthreads();
  }
}

template <typename Encoder>
cudaError_t launch(const CodecTask* tasks, std::uint32_t count, std::uint32_t* results,
                   void* workspace, cudaStream_t stream, std::uint32_t block_count_max) {
  cudaError_t error = cudaMemsetAsync(workspace, 0, counter_size, stream);
  if (error != cudaSuccess) return error;
  error = cudaFuncSetAttribute(encode_pieces<Encoder>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               sizeof(typename Encoder::Page));
  if (error != cudaSuccess) return error;
  encode_pieces<Encoder>
      <<<std::min(count, block_count_max), Encoder::thread_count, sizeof(typename Encoder::Page),
         stream>>>(tasks, count, results, static_cast<Byte*>(workspace));
  return cudaGetLastError();
}

constexpr std::uint32_t block_count_max = 396;

}  // namespace
}  // namespace gdeflate

std::size_t huffman_encode_workspace_size(std::uint32_t /*count*/) {
  return 0;
}

cudaError_t huffman_encode(const CodecTask* tasks, std::uint32_t count, std::uint32_t* results,
                           void* /*workspace*/, cudaStream_t stream, int /*level*/) {
  if (count == 0) return cudaSuccess;
  gdeflate::encode_literals<<<count, gdeflate::LiteralEncoder::thread_count, 0, stream>>>(tasks,
                                                                                          results);
  return cudaGetLastError();
}

std::size_t gdeflate_encode_workspace_size(std::uint32_t count) {
  static_assert(gdeflate::SmallPageEncoder::workspace_size ==
                gdeflate::PageEncoder::workspace_size);
  return gdeflate::counter_size +
         std::min(count, gdeflate::block_count_max) * gdeflate::PageEncoder::workspace_size;
}

cudaError_t gdeflate_encode(const CodecTask* tasks, std::uint32_t count, std::uint32_t* results,
                            void* workspace, cudaStream_t stream, int /*level*/) {
  if (count == 0) return cudaSuccess;
  DeviceShape shape;
  const cudaError_t error = device_shape(shape);
  if (error != cudaSuccess) return error;
  static_assert(int{sizeof(gdeflate::SmallPageEncoder::Page)} <= shared_bytes_least);
  const bool fits = int{sizeof(gdeflate::PageEncoder::Page)} <= shape.shared_bytes_max;
  const auto launch =
      fits ? gdeflate::launch<gdeflate::PageEncoder> : gdeflate::launch<gdeflate::SmallPageEncoder>;
  return launch(tasks, count, results, workspace, stream, gdeflate::block_count_max);
}

}  // namespace nacre::engine::cuda
