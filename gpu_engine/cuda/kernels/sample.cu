// SPDX-License-Identifier: Apache-2.0
// Samples streams, with one thread block per stream.
#include "gpu_engine/cuda/kernels/stream_tasks.h"

#include "gpu_engine/cuda/kernels/sample.cuh"

namespace nacre::engine::cuda {
namespace {

__global__ void __launch_bounds__(sample_threads)
    sample_streams_kernel(StreamTask* streams, const CodecTask* pieces, CodecTask* to_encode) {
  __shared__ SampleMemory memory;
  const StreamTask stream = streams[blockIdx.x];
  const bool coded = stream.piece_count != 0 &&
                     looks_compressible(pieces[stream.first_piece].in, stream.plain_size, memory);
  if (threadIdx.x == 0) streams[blockIdx.x].coded = coded;
  for (std::uint32_t p = threadIdx.x; p < stream.piece_count; p += sample_threads) {
    CodecTask task = pieces[stream.first_piece + p];
    if (!coded) task.in_size = 0;
    to_encode[stream.first_piece + p] = task;
  }
}

}  // namespace

cudaError_t sample_streams(StreamTask* streams, std::uint32_t count, const CodecTask* pieces,
                           CodecTask* to_encode, cudaStream_t stream) {
  if (count == 0) return cudaSuccess;
  sample_streams_kernel<<<count, sample_threads, 0, stream>>>(streams, pieces, to_encode);
  return cudaGetLastError();
}

}  // namespace nacre::engine::cuda
