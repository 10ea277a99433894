// SPDX-License-Identifier: Apache-2.0
// Encodes each piece as an LZ4 block with the warps of one thread block. Each warp enters the bytes
// before its part into its table, and codes its part into the workspace. Then the parts are joined.
// So pieces take about equally long, and even few of them keep the device busy.
//
// match_finder.cuh and lz4_encoder.cuh derive what a warp does. By count a byte takes 8.2
// instructions of a warp, which gives 127 GB/s if an H200 issues all that it can. Measured on an
// H200, 2026-11-21, 64 KiB pieces of Silesia: 58 GB/s with 512 pieces in eight parts, 63 and 76
// GB/s with 1,024 and 4,096 pieces in four parts, at 1.00 and 1.01 of liblz4's ratio. With one warp
// per piece it was 13 and 70 GB/s with 512 and 4,096 pieces.
#include "gpu_engine/cuda/kernels/codecs.h"
#include "gpu_engine/cuda/kernels/lz4_encoder.cuh"

namespace nacre::engine::cuda {
namespace lz4 {
namespace {

template <std::uint32_t part_count>
constexpr std::uint32_t part_size = piece_size_max / part_count;

// The most bytes of a part's code: sequences take no more room than one sequence that has all bytes
// as literals.
template <std::uint32_t part_count>
constexpr std::uint32_t part_code_size_max = (part_size<part_count> + part_size<part_count> / 255 +
                                              32) /
                                             16 * 16;

// Joins the parts: puts their sequences one after the other, and the last literals after them. The
// first sequence of a part also gets the literals that the parts before it left over. Returns the
// size of the code, or 0 when it would be above out_size. Each warp moves its own part, which lies
// at coded; the first part is already in its place.
template <std::uint32_t part_count>
__device__ std::uint32_t join_parts(const CodecTask& task, const Part* parts, const Byte* coded,
                                    std::uint32_t out_size) {
  const std::uint32_t warp = this_warp_in_all_lanes();
  std::uint32_t size = 0;           // of the code so far
  std::uint32_t literals_from = 0;  // offset of the first plain byte that is not yet coded
  std::uint32_t my_place = 0;
  std::uint32_t my_literals_from = 0;
  for (std::uint32_t i = 0; i < part_count; ++i) {
    const Part& part = parts[i];
    if (!part.fits) return 0;
    if (part.size == 0) continue;
    if (i == warp) {
      my_place = size;
      my_literals_from = literals_from;
    }
    const std::uint32_t literals = i * part_size<part_count> + part.first_literals - literals_from;
    size += part.size - extra_bytes(part.first_literals) - part.first_literals +
            extra_bytes(literals) + literals;
    literals_from = part.literals_from;
  }
  const std::uint32_t rest = task.in_size - literals_from;
  const std::uint32_t rest_to = size + 1 + extra_bytes(rest);
  if (rest_to + rest > out_size) return 0;

  if (warp == 0) {
    if (this_lane() == 0) put_literals_head(task.out + size, rest, 0);
    copy_bytes(task.out + rest_to, task.in + literals_from, rest);
  } else if (parts[warp].size != 0) {
    const std::uint32_t first = parts[warp].first_literals;
    const std::uint32_t literals = warp * part_size<part_count> + first - my_literals_from;
    Byte* to = task.out + my_place;
    if (this_lane() == 0) put_literals_head(to, literals, load(coded) & 15);
    to += 1 + extra_bytes(literals);
    copy_bytes(to, task.in + my_literals_from, literals);
    const std::uint32_t done = 1 + extra_bytes(first) + first;
    copy_bytes(to + literals, coded + done, parts[warp].size - done);
  }
  return rest_to + rest;
}

// One block per piece, one warp per part.
template <std::uint32_t entry_count, std::uint32_t part_count>
__global__ void __launch_bounds__(lane_count* part_count)
    encode_pieces(const CodecTask* tasks, std::uint32_t* results, Byte* workspace) {
  constexpr std::uint32_t vector_count = entry_count * sizeof(std::uint16_t) / sizeof(uint4);
  __shared__ uint4 tables[part_count][vector_count];
  __shared__ Part parts[part_count];
  const CodecTask task = tasks[blockIdx.x];
  const std::uint32_t warp = this_warp_in_all_lanes();
  std::uint32_t size = 0;
  if (task.in_size > match_free_tail && task.in_size <= piece_size_max) {
    const std::uint32_t out_size = min(task.out_size, task.in_size - 1);
    const std::uint32_t from = warp * part_size<part_count>;
    Byte* const coded = warp == 0 ? task.out
                                  : workspace + (blockIdx.x * (part_count - 1) + warp - 1) *
                                                    std::size_t{part_code_size_max<part_count>};
    Part part = {0, 0, 0, true};
    if (from < task.in_size) {
      for (std::uint32_t i = this_lane(); i < vector_count; i += lane_count)
        tables[warp][i] = make_uint4(0, 0, 0, 0);
      __syncwarp();
      Encoder<entry_count> encoder(task.in, from, min(task.in_size, from + part_size<part_count>),
                                   coded, warp == 0 ? out_size : part_code_size_max<part_count>,
                                   reinterpret_cast<std::uint32_t*>(tables[warp]));
      if (warp != 0) encoder.learn_history();
      part = encoder.run();
    }
    if (this_lane() == 0) parts[warp] = part;
    __syncthreads();
    size = join_parts<part_count>(task, parts, coded, out_size);
  }
  if (threadIdx.x == 0) results[blockIdx.x] = size;
}

// With fewer tasks than four_parts_min, a task has eight parts, since four would leave the device
// idle. With one_part_min tasks or more it has one: parts would take much workspace, and in batches
// of that size tasks are rarely whole pieces. (From level 3 on it has two parts or one.)
constexpr std::uint32_t four_parts_min = 700;
constexpr std::uint32_t one_part_min = 1500;

}  // namespace
}  // namespace lz4

std::size_t lz4_encode_workspace_size(std::uint32_t count) {
  using namespace lz4;
  if (count >= one_part_min) return 0;
  const std::size_t a_piece =
      count < four_parts_min ? 7 * part_code_size_max<8> : 3 * part_code_size_max<4>;
  return count * a_piece;
}

cudaError_t lz4_encode(const CodecTask* tasks, std::uint32_t count, std::uint32_t* results,
                       void* workspace, cudaStream_t stream, int level) {
  using namespace lz4;
  if (count == 0) return cudaSuccess;
  Byte* const coded = static_cast<Byte*>(workspace);
  if (level > 2 && count < one_part_min)
    encode_pieces<8192, 2><<<count, 2 * lane_count, 0, stream>>>(tasks, results, coded);
  else if (level > 2)
    encode_pieces<8192, 1><<<count, lane_count, 0, stream>>>(tasks, results, coded);
  else if (count < four_parts_min)
    encode_pieces<3056, 8><<<count, 8 * lane_count, 0, stream>>>(tasks, results, coded);
  else if (count < one_part_min)
    encode_pieces<3456, 4><<<count, 4 * lane_count, 0, stream>>>(tasks, results, coded);
  else
    encode_pieces<3072, 1><<<count, lane_count, 0, stream>>>(tasks, results, coded);
  return cudaGetLastError();
}

}  // namespace nacre::engine::cuda
