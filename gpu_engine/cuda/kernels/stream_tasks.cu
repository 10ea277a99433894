// SPDX-License-Identifier: Apache-2.0
// Moves codec streams. Each byte is read and written once, at the speed of device memory, in some
// 2 % of the encoders' time.
//
// scatter_to_host has four blocks. They saturate PCIe, and more blocks slow the copy engine that
// brings in the next batch (from 46.9 to 32 GB/s). gather_from_host needs more bytes in flight: a
// load over PCIe takes some 1.5 us, so 55 GB/s need 83 KB in flight at any time. A block of 512
// threads with four loads of 16 bytes each has 32 KB. With tasks of 32 KiB, 4 blocks give 50.6
// GB/s, and 8 or more 51.4; with one load for each thread it would be 22 and 41 (H200, 2026-11-21).
#include <algorithm>

#include "gpu_engine/cuda/kernels/copy_bytes.cuh"
#include "gpu_engine/cuda/kernels/stream_tasks.h"

namespace nacre::engine::cuda {
namespace {

constexpr std::uint32_t piece_size_bytes = 64u << 10;
constexpr std::uint32_t word_size_bytes = 4;
constexpr std::uint32_t stored_bit = 1u << 31;
constexpr int block_threads = 256;
constexpr int scatter_blocks = 4;
constexpr int scatter_threads = 512;
constexpr std::uint32_t gather_blocks_min = 8;
constexpr std::uint32_t gather_blocks_max = 32;
constexpr std::uint64_t gather_bytes_in_flight = 128u << 10;
constexpr int gather_threads = 512;

std::uint32_t blocks_for(std::uint32_t count) {
  return (count + block_threads - 1) / block_threads;
}

__device__ std::uint32_t smaller(std::uint32_t a, std::uint32_t b) {
  return a < b ? a : b;
}

__device__ std::uint32_t piece_plain_size(std::uint32_t plain_size, std::uint32_t place) {
  return smaller(plain_size - place * piece_size_bytes, piece_size_bytes);
}

__device__ void store_word(Byte* to, std::uint32_t word) {
  for (int i = 0; i < 4; ++i)
    to[i] = static_cast<Byte>(word >> (8 * i));
}

__device__ std::uint32_t load_word(const Byte* from) {
  return from[0] | from[1] << 8 | from[2] << 16 | static_cast<std::uint32_t>(from[3]) << 24;
}

__global__ void size_streams_kernel(const StreamTask* tasks, std::uint32_t count,
                                    const std::uint32_t* code_sizes, StreamSize* sizes) {
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const StreamTask task = tasks[i];
  std::uint32_t size = 0;
  for (std::uint32_t p = 0; p < task.piece_count && task.coded != 0; ++p) {
    const std::uint32_t code = code_sizes[task.first_piece + p];
    size += word_size_bytes + (code != 0 ? code : piece_plain_size(task.plain_size, p));
  }
  const bool coded = task.coded != 0 && task.plain_size != 0 && size <= task.size_max;
  sizes[i] = {coded ? size : task.plain_size, coded};
}

__global__ void write_streams_kernel(const StreamTask* tasks, const StreamSize* sizes,
                                     const PieceOwner* owners, const CodecTask* pieces,
                                     const std::uint32_t* code_sizes) {
  const PieceOwner owner = owners[blockIdx.x];
  const StreamTask task = tasks[owner.message];
  const CodecTask piece = pieces[blockIdx.x];
  if (sizes[owner.message].coded == 0) {
    copy_bytes(task.out + owner.place * piece_size_bytes, piece.in, piece.in_size, threadIdx.x,
               blockDim.x);
    return;
  }
  std::uint32_t offset = 0;
  for (std::uint32_t p = 0; p < owner.place; ++p) {
    const std::uint32_t code = code_sizes[task.first_piece + p];
    offset += word_size_bytes + (code != 0 ? code : piece_size_bytes);
  }
  const std::uint32_t code = code_sizes[blockIdx.x];
  if (threadIdx.x == 0)
    store_word(task.out + offset, code != 0 ? code : stored_bit | piece.in_size);
  copy_bytes(task.out + offset + word_size_bytes, code != 0 ? piece.out : piece.in,
             code != 0 ? code : piece.in_size, threadIdx.x, blockDim.x);
}

// The index of the codec's array, less than 0 if it has none.
__device__ int place_of(const CodecPlaces& places, std::uint32_t codec) {
  return codec <= CodecPlaces::number_max ? places.place[codec] : -1;
}

__global__ void cut_streams_kernel(const CutTask* tasks, std::uint32_t count, DecodeArrays arrays,
                                   CodecTask* copies, std::uint32_t* valid) {
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const CutTask task = tasks[i];
  const bool coded = task.codec != 0;
  const bool whole = task.codec == CodecPlaces::whole_number;
  const int place = place_of(arrays.places, task.codec);
  const std::uint32_t piece_count =
      task.plain_size / piece_size_bytes + (task.plain_size % piece_size_bytes != 0);
  bool good = task.valid != 0 && piece_count <= task.piece_max &&
              (coded ? place >= 0 : task.stream_size == task.plain_size);
  std::uint32_t at = 0;
  for (std::uint32_t p = 0; p < task.piece_max; ++p) {
    CodecTask to_decode = {};
    CodecTask to_copy = {};
    if (good && p < piece_count) {
      const std::uint32_t plain_size = piece_plain_size(task.plain_size, p);
      Byte* const plain = task.plain + p * piece_size_bytes;
      if (!coded) {
        to_copy = {task.stream + p * piece_size_bytes, plain, plain_size, plain_size};
      } else if (whole) {
        if (p == 0) to_decode = {task.stream, task.plain, task.stream_size, task.plain_size};
        at = task.stream_size;
      } else if (task.stream_size - at < word_size_bytes) {
        good = false;
      } else {
        const std::uint32_t word = load_word(task.stream + at);
        const std::uint32_t size = word & ~stored_bit;
        at += word_size_bytes;
        const bool stored = (word & stored_bit) != 0;
        if (size > task.stream_size - at ||
            (stored ? size != plain_size : size == 0 || size >= plain_size)) {
          good = false;
        } else {
          (stored ? to_copy : to_decode) = {task.stream + at, plain, size, plain_size};
          at += size;
        }
      }
    }
    for (int codec = 0; codec < static_cast<int>(arrays.codec_count); ++codec)
      arrays.tasks[codec * arrays.piece_count + task.first_piece + p] =
          codec == place ? to_decode : CodecTask{};
    copies[task.first_piece + p] = to_copy;
  }
  if (coded && at != task.stream_size) good = false;
  valid[i] = good;
}

__global__ void copy_pieces_kernel(const CodecTask* copies) {
  const CodecTask copy = copies[blockIdx.x];
  copy_bytes(copy.out, copy.in, copy.in_size, threadIdx.x, blockDim.x);
}

__global__ void judge_streams_kernel(const CutTask* tasks, std::uint32_t count, DecodeArrays arrays,
                                     std::uint32_t* valid, std::uint32_t* sizes) {
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const CutTask task = tasks[i];
  bool good = valid[i] != 0;
  const int place = place_of(arrays.places, task.codec);
  if (good && place >= 0) {
    const std::uint32_t first = place * arrays.piece_count + task.first_piece;
    for (std::uint32_t p = first; p < first + task.piece_max; ++p)
      good = good && (arrays.tasks[p].out_size == 0 || arrays.results[p] != 0);
  }
  valid[i] = good;
  sizes[i] = good ? task.plain_size : 0;
}

__global__ void scatter_to_host_kernel(const BusTask* tasks, std::uint32_t count) {
  for (std::uint32_t i = blockIdx.x; i < count; i += gridDim.x) {
    const BusTask task = tasks[i];
    copy_bytes(task.to, task.from, static_cast<std::uint32_t>(task.size), threadIdx.x, blockDim.x);
  }
}

__global__ void gather_from_host_kernel(const BusTask* tasks, std::uint32_t count) {
  for (std::uint32_t i = blockIdx.x; i < count; i += gridDim.x) {
    const BusTask task = tasks[i];
    copy_aligned_alike(task.to, task.from, static_cast<std::uint32_t>(task.size), threadIdx.x,
                       blockDim.x);
  }
}

}  // namespace

cudaError_t size_streams(const StreamTask* tasks, std::uint32_t count,
                         const std::uint32_t* code_sizes, StreamSize* sizes, cudaStream_t stream) {
  if (count == 0) return cudaSuccess;
  size_streams_kernel<<<blocks_for(count), block_threads, 0, stream>>>(tasks, count, code_sizes,
                                                                       sizes);
  return cudaGetLastError();
}

cudaError_t write_streams(const StreamTask* tasks, const StreamSize* sizes,
                          const PieceOwner* owners, const CodecTask* pieces,
                          std::uint32_t piece_count, const std::uint32_t* code_sizes,
                          cudaStream_t stream) {
  if (piece_count == 0) return cudaSuccess;
  write_streams_kernel<<<piece_count, block_threads, 0, stream>>>(tasks, sizes, owners, pieces,
                                                                  code_sizes);
  return cudaGetLastError();
}

cudaError_t cut_streams(const CutTask* tasks, std::uint32_t count, const DecodeArrays& arrays,
                        CodecTask* copies, std::uint32_t* valid, cudaStream_t stream) {
  if (count == 0) return cudaSuccess;
  cut_streams_kernel<<<blocks_for(count), block_threads, 0, stream>>>(tasks, count, arrays, copies,
                                                                      valid);
  return cudaGetLastError();
}

cudaError_t copy_pieces(const CodecTask* copies, std::uint32_t piece_count, cudaStream_t stream) {
  if (piece_count == 0) return cudaSuccess;
  copy_pieces_kernel<<<piece_count, block_threads, 0, stream>>>(copies);
  return cudaGetLastError();
}

cudaError_t judge_streams(const CutTask* tasks, std::uint32_t count, const DecodeArrays& arrays,
                          std::uint32_t* valid, std::uint32_t* sizes, cudaStream_t stream) {
  if (count == 0) return cudaSuccess;
  judge_streams_kernel<<<blocks_for(count), block_threads, 0, stream>>>(tasks, count, arrays, valid,
                                                                        sizes);
  return cudaGetLastError();
}

cudaError_t scatter_to_host(const BusTask* tasks, std::uint32_t count, cudaStream_t stream) {
  if (count == 0) return cudaSuccess;
  scatter_to_host_kernel<<<scatter_blocks, scatter_threads, 0, stream>>>(tasks, count);
  return cudaGetLastError();
}

cudaError_t gather_from_host(const BusTask* tasks, std::uint32_t count, std::uint64_t total_bytes,
                             cudaStream_t stream) {
  if (count == 0) return cudaSuccess;
  // A block moves one task at a time, so small tasks need more blocks.
  const std::uint64_t task_size = std::max<std::uint64_t>(total_bytes / count, 1);
  const auto blocks = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(
      gather_bytes_in_flight / task_size, gather_blocks_min, gather_blocks_max));
  gather_from_host_kernel<<<blocks, gather_threads, 0, stream>>>(tasks, count);
  return cudaGetLastError();
}

}  // namespace nacre::engine::cuda
