// SPDX-License-Identifier: Apache-2.0
// Launches the codec lzw, with one warp for each part of a piece. The decoder is lzw_decoder.cuh.
// The encoder (lzw_encoder.cuh) writes the parts to the workspace; a second kernel joins them.
#include <algorithm>

#include "gpu_engine/cuda/kernels/codecs.h"
#include "gpu_engine/cuda/kernels/lzw_decoder.cuh"
#include "gpu_engine/cuda/kernels/lzw_encoder.cuh"

namespace nacre::engine::cuda {

namespace lzw {
namespace {

constexpr std::uint32_t all_valid_threads = 256;
constexpr std::uint32_t parts_a_block = 2;

__global__ void __launch_bounds__(all_valid_threads)
    take_for_valid(std::uint32_t* results, std::uint32_t count) {
  const std::uint32_t i = blockIdx.x * all_valid_threads + threadIdx.x;
  if (i < count) results[i] = 1;
}

__global__ void __launch_bounds__(parts_a_block* lane_count)
    decode_parts(const CodecTask* tasks, std::uint32_t* results) {
  __shared__ DecoderMemory memory[parts_a_block];
  const std::uint32_t index = blockIdx.x * parts_a_block + this_warp();
  const std::uint32_t piece = index / part_count_max;
  const bool valid = decode_part(tasks[piece], index % part_count_max, memory[this_warp()]);
  if (!valid && this_lane() == 0) results[piece] = 0;
}

}  // namespace
}  // namespace lzw

std::size_t lzw_decode_workspace_size(std::uint32_t /*count*/) {
  return 0;
}

cudaError_t lzw_decode(const CodecTask* tasks, std::uint32_t count, std::uint32_t* results,
                       void* /*workspace*/, cudaStream_t stream) {
  using namespace lzw;
  if (count == 0) return cudaSuccess;
  const std::uint32_t blocks = (count + all_valid_threads - 1) / all_valid_threads;
  take_for_valid<<<blocks, all_valid_threads, 0, stream>>>(results, count);
  decode_parts<<<count*(part_count_max / parts_a_block), parts_a_block * lane_count, 0, stream>>>(
      tasks, results);
  return cudaGetLastError();
}

namespace lzw {
namespace {

constexpr std::uint32_t pieces_at_once_max = 640;
constexpr std::uint32_t join_threads = 256;

// The part of the workspace that belongs to a piece.
struct alignas(16) CodedParts {
  std::uint32_t code[part_count_max][part_room / sizeof(std::uint32_t)];
  std::uint32_t sizes[part_count_max];
};

__global__ void __launch_bounds__(lane_count)
    encode_parts(const CodecTask* tasks, CodedParts* coded) {
  __shared__ EncoderMemory memory;
  const CodecTask task = tasks[blockIdx.x / part_count_max];
  const std::uint32_t part = blockIdx.x % part_count_max;
  if (task.in_size > piece_size_max || part >= count_parts(task.in_size)) return;
  CodedParts& parts = coded[blockIdx.x / part_count_max];
  const std::uint32_t size = encode_part(memory, task.in + part * part_size_max,
                                         part_size(task.in_size, part), parts.code[part]);
  if (threadIdx.x == 0) parts.sizes[part] = size;
}

__global__ void __launch_bounds__(join_threads)
    join_parts(const CodecTask* tasks, const CodedParts* coded, std::uint32_t* results) {
  const CodecTask task = tasks[blockIdx.x];
  const CodedParts& parts = coded[blockIdx.x];
  const std::uint32_t part_count = task.in_size > piece_size_max ? 0 : count_parts(task.in_size);
  std::uint32_t total = 2 * part_count;
  for (std::uint32_t i = 0; i < part_count; ++i)
    total += parts.sizes[i];
  const bool fits = part_count != 0 && total <= min(task.out_size, task.in_size - 1);
  if (threadIdx.x == 0) results[blockIdx.x] = fits ? total : 0;
  if (!fits) return;
  Byte* to = task.out + 2 * part_count;
  for (std::uint32_t i = 0; i < part_count; ++i) {
    const std::uint32_t size = parts.sizes[i];
    if (threadIdx.x < 2)
      task.out[2 * i + threadIdx.x] = static_cast<Byte>(size >> (8 * threadIdx.x));
    copy_bytes(to, reinterpret_cast<const Byte*>(parts.code[i]), size, threadIdx.x, join_threads);
    to += size;
  }
}

}  // namespace
}  // namespace lzw

std::size_t lzw_encode_workspace_size(std::uint32_t count) {
  return std::min(count, lzw::pieces_at_once_max) * sizeof(lzw::CodedParts);
}

cudaError_t lzw_encode(const CodecTask* tasks, std::uint32_t count, std::uint32_t* results,
                       void* workspace, cudaStream_t stream, int /*level*/) {
  using namespace lzw;
  auto* const coded = static_cast<CodedParts*>(workspace);
  for (std::uint32_t first = 0; first < count; first += pieces_at_once_max) {
    const std::uint32_t at_once = std::min(count - first, pieces_at_once_max);
    encode_parts<<<at_once * part_count_max, lane_count, 0, stream>>>(tasks + first, coded);
    join_parts<<<at_once, join_threads, 0, stream>>>(tasks + first, coded, results + first);
  }
  return cudaGetLastError();
}

}  // namespace nacre::engine::cuda
