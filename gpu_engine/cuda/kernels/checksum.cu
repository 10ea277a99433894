// SPDX-License-Identifier: Apache-2.0
// CRCs as products of binary matrices, on the tensor cores. The plain loop:
//
//   for each byte of the message: remainder = (remainder * x^8 + byte * x^32) mod polynomial
//
// (A CRC inverts the first and the last remainder as well.) Each step waits for the one before it.
// But the remainder is linear over GF(2) in the bits of the message: a bit that is followed by n
// bits adds x^(n + 32) mod polynomial. So the remainder of a piece is its bits times a matrix of
// powers of x. And the remainder of two pieces in a row is that of the first, times a power of x,
// plus that of the second. Tensor cores compute products of bits and matrices (binary_matrix.cuh;
// ghash.cu does the same with more columns).
//
// A warp takes 2 KiB of its tile at a time: lane l loads the 16 bytes at 512 s + 16 l in step s.
// The four lanes of a group make a row of 64 bytes; four steps make 32 rows. A row's remainder
// stays in the four lanes of the row, eight bits in each, and is multiplied by x^(8 * 2048) before
// the next 2 KiB. A tile is 8 to 64 KiB. At its end each lane multiplies one row's remainder by the
// power of x for the bytes that follow the row, and the sum, the tile's remainder, goes to memory.
// A second kernel combines the tiles of each message.
//
// Tiles begin and end at addresses that are multiples of 16; the last one ends with the message's
// last block. Bytes of a block outside the message count as zeros. Zeros before the message change
// nothing; for those after it the remainder is divided by a power of x.
//
// The fragments of the matrices are constants in 20 registers. 2 KiB cost a warp 4 loads, 24
// products and some 100 operations. That is a fifth of what it could do while memory delivers them
// at 4.2 TB/s.
#include "gpu_engine/cuda/kernels/checksum.h"

#include <algorithm>

#include "gpu_engine/cuda/kernels/binary_matrix.cuh"
#include "gpu_engine/cuda/kernels/block_io.cuh"
#include "gpu_engine/cuda/kernels/crc_tables.h"
#include "gpu_engine/cuda/kernels/launch.cuh"
#include "gpu_engine/cuda/kernels/tile_plan.cuh"

namespace nacre::engine::cuda {
namespace {

constexpr int hash_threads = 256;
constexpr int hash_blocks = 3;  // a multiprocessor
constexpr int hash_warps = hash_threads / 32;
constexpr int batch_blocks = crc_batch_bytes / 16;
constexpr int small_tile_blocks = crc_tile_bytes / 16;

__device__ const CrcTables crc_tables[2] = {make_crc_tables<crc32_polynomial_reflected>(),
                                            make_crc_tables<crc32c_polynomial_reflected>()};

__device__ std::uint32_t multiply(std::uint32_t a, std::uint32_t b, std::uint32_t polynomial) {
  std::uint32_t product = 0;
#pragma unroll 8
  for (int bit = 31; bit >= 0; --bit) {
    product ^= (a >> bit & 1) != 0 ? b : 0;
    b = b >> 1 ^ ((b & 1) != 0 ? polynomial : 0);
  }
  return product;
}

__device__ std::uint32_t append_zeros(std::uint32_t remainder, std::uint64_t bytes,
                                      const CrcTables& tables) {
  for (int log2 = 0; bytes != 0; ++log2, bytes >>= 1) {
    if ((bytes & 1) != 0)
      remainder = multiply(remainder, tables.byte_powers[log2], tables.polynomial);
  }
  return remainder;
}

// A message as blocks of 16 bytes at addresses that are multiples of 16. Its first and last block
// may lie in the message only in part.
struct Grid {
  const Byte* data;
  std::uint64_t size;
  std::uint32_t lead;  // bytes of block 0 that lie before the message
  std::int64_t blocks;

  __device__ explicit Grid(const ChecksumTask& task)
      : data(task.data),
        size(task.size),
        lead(size == 0 ? 0 : alignment_of(task.data)),
        blocks(static_cast<std::int64_t>((lead + size + 15) / 16)) {}

  __device__ std::uint32_t tiles(std::uint32_t tile_blocks) const {
    const auto needed = static_cast<std::uint32_t>((blocks + tile_blocks - 1) / tile_blocks);
    return needed == 0 ? 1 : needed;
  }
  __device__ std::uint32_t bytes_after() const {
    return static_cast<std::uint32_t>(16 * blocks - lead - size);
  }
  // Whether `count` blocks from `first` on lie entirely in the message.
  __device__ bool holds(std::int64_t first, int count) const {
    return 16 * first >= lead && 16 * (first + count) - lead <= static_cast<std::int64_t>(size);
  }
  // Zeros outside the message.
  __device__ __noinline__ uint4 block(std::int64_t index) const {
    if (index < 0 || index >= blocks) return make_uint4(0, 0, 0, 0);
    const std::int64_t begin = 16 * index - lead;  // within the message, or before it
    if (begin >= 0 && static_cast<std::uint64_t>(begin) + 16 <= size)
      return *reinterpret_cast<const uint4*>(data + begin);
    std::uint32_t words[4] = {};
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      const std::int64_t at = begin + i;
      if (at >= 0 && static_cast<std::uint64_t>(at) < size)
        words[i / 4] |= std::uint32_t{data[at]} << (8 * (i % 4));
    }
    return make_uint4(words[0], words[1], words[2], words[3]);
  }
};

struct TilesOfTask {
  const ChecksumTask* tasks;
  std::uint32_t tile_blocks;

  __device__ std::uint32_t operator()(std::uint32_t index) const {
    return Grid(tasks[index]).tiles(tile_blocks);
  }
};

struct Fragments {
  uint2 data[crc_column_tiles][2];
  std::uint32_t fold[crc_column_tiles];
};

__device__ void add_batch(std::uint32_t (&rows)[4], const uint4 (&blocks)[4],
                          const Fragments& fragments) {
  std::uint32_t results[4] = {};
#pragma unroll
  for (int tiles = 0; tiles < crc_column_tiles / 2; ++tiles) {
#pragma unroll
    for (int pair = 0; pair < 2; ++pair) {
      const uint4 low = blocks[2 * pair], high = blocks[2 * pair + 1];
      RowCounts counts[2];
#pragma unroll
      for (int odd = 0; odd < 2; ++odd) {
        const int tile = 2 * tiles + odd;
        multiply_add(counts[odd], rows[2 * pair], rows[2 * pair + 1], fragments.fold[tile]);
        multiply_add(counts[odd], low.x, high.x, low.y, high.y, fragments.data[tile][0]);
        multiply_add(counts[odd], low.z, high.z, low.w, high.w, fragments.data[tile][1]);
      }
      add_parities(results[2 * pair], counts[0].low_row, counts[1].low_row, tiles);
      add_parities(results[2 * pair + 1], counts[0].high_row, counts[1].high_row, tiles);
    }
  }
#pragma unroll
  for (int step = 0; step < 4; ++step)
    rows[step] = results[step];
}

// The sum of the rows' remainders times their powers. All lanes get it.
__device__ std::uint32_t sum_of_rows(const std::uint32_t (&rows)[4], std::uint32_t lane,
                                     std::uint32_t row_power, std::uint32_t polynomial) {
  // Lane 4 g + s takes row 8 s + g, whose bits are in the lanes of group g.
  std::uint32_t row = 0;
#pragma unroll
  for (std::uint32_t step = 0; step < 4; ++step) {
    std::uint32_t whole = rows[step] << (2 * (lane % 4));
    whole |= __shfl_xor_sync(all_lanes, whole, 1);
    whole |= __shfl_xor_sync(all_lanes, whole, 2);
    if (lane % 4 == step) row = whole;
  }
  std::uint32_t sum = multiply(row, row_power, polynomial);
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2)
    sum ^= __shfl_xor_sync(all_lanes, sum, distance);
  return sum;
}

// Loads the blocks of a batch that are this lane's.
__device__ void load_batch(uint4 (&blocks)[4], const Grid& grid, std::int64_t start,
                           std::uint32_t lane) {
  if (grid.holds(start, batch_blocks)) {
    const Byte* const data = grid.data;
    __builtin_assume(__isGlobal(data));
    const auto* const at = reinterpret_cast<const uint4*>(data + (16 * start - grid.lead)) + lane;
#pragma unroll
    for (int step = 0; step < 4; ++step)
      blocks[step] = at[32 * step];
  } else {
#pragma unroll
    for (int step = 0; step < 4; ++step)
      blocks[step] = grid.block(start + 32 * step + lane);
  }
}

__global__ __launch_bounds__(hash_threads, hash_blocks) void reduce_tiles(const ChecksumTask* tasks,
                                                                          TilePlan plan,
                                                                          std::int64_t tile_blocks,
                                                                          int polynomial,
                                                                          std::uint32_t* partials) {
  const std::uint32_t lane = threadIdx.x % 32;
  const CrcTables& tables = crc_tables[polynomial];
  Fragments fragments;
#pragma unroll
  for (int tile = 0; tile < crc_column_tiles; ++tile) {
#pragma unroll
    for (int half = 0; half < 2; ++half)
      fragments.data[tile][half] =
          make_uint2(tables.data[tile][half][lane].low, tables.data[tile][half][lane].high);
    fragments.fold[tile] = tables.fold[tile][lane];
  }
  const std::uint32_t row_power = tables.row_powers[crc_rows - 1 - (lane % 4 * 8 + lane / 4)];
  const std::uint32_t tile_count = plan.first_units[plan.message_count];
  const TileRange range =
      tiles_of_warp(tile_count, blockIdx.x * hash_warps + threadIdx.x / 32, gridDim.x * hash_warps);
  for (std::uint32_t tile = range.begin; tile < range.end; ++tile) {
    const std::uint32_t message = plan.tile_messages[tile];
    const Grid grid(tasks[message]);
    const std::uint32_t tiles_from_here = plan.first_units[message + 1] - tile;
    std::int64_t start = grid.blocks - tiles_from_here * tile_blocks;
    const std::int64_t end = start + tile_blocks;
    // Skips batches that lie before the message.
    if (start < 0) start += -start / batch_blocks * batch_blocks;
    std::uint32_t rows[4] = {};
    uint4 blocks[4] = {};
    load_batch(blocks, grid, start, lane);
#pragma unroll 1
    for (; start < end; start += batch_blocks) {
      uint4 next[4] = {};
      // Loaded before the products, which take a while.
      if (start + batch_blocks < end) load_batch(next, grid, start + batch_blocks, lane);
      __syncwarp();
      add_batch(rows, blocks, fragments);
#pragma unroll
      for (int step = 0; step < 4; ++step)
        blocks[step] = next[step];
    }
    const std::uint32_t sum = sum_of_rows(rows, lane, row_power, tables.polynomial);
    if (lane == 0) partials[tile] = sum;
  }
}

// One block of 32 or crc_finish_threads threads per message.
__global__ __launch_bounds__(crc_finish_threads) void add_tiles(
    const ChecksumTask* tasks, TilePlan plan, std::uint32_t tile_factor, int polynomial,
    const std::uint32_t* partials, std::uint32_t* results) {
  __shared__ std::uint32_t sums[1 + crc_finish_threads / 32];
  const CrcTables& tables = crc_tables[polynomial];
  const std::uint32_t message = blockIdx.x;
  const std::uint32_t first = plan.first_units[message];
  const std::uint32_t tiles = plan.first_units[message + 1] - first;
  std::uint32_t sum = 0;
  if (threadIdx.x < tiles) {
    // Thread i takes the tiles that have i, i + blockDim.x, … tiles after them; the farthest first.
    std::uint32_t after = (tiles - 1 - threadIdx.x) / blockDim.x * blockDim.x + threadIdx.x;
    sum = partials[first + tiles - 1 - after];
    const std::uint32_t stride = blockDim.x * tile_factor;
    const std::uint32_t stride_power =
        stride < crc_tile_powers ? tables.tile_powers[stride] : tables.largest_stride_power;
    while (after >= blockDim.x) {
      after -= blockDim.x;
      sum = multiply(sum, stride_power, tables.polynomial) ^ partials[first + tiles - 1 - after];
    }
    if (threadIdx.x != 0)
      sum = multiply(sum, tables.tile_powers[threadIdx.x * tile_factor], tables.polynomial);
  }
  const Grid grid(tasks[message]);
  if (threadIdx.x == blockDim.x - 1)
    sums[0] = append_zeros(~tasks[message].before, grid.size, tables);
  __syncthreads();
  for (int distance = 16; distance > 0; distance /= 2)
    sum ^= __shfl_xor_sync(all_lanes, sum, distance);
  if (threadIdx.x % 32 == 0) sums[1 + threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int warp = 1; warp < static_cast<int>(blockDim.x / 32); ++warp)
    sum ^= sums[1 + warp];
  if (grid.bytes_after() != 0)
    sum = multiply(sum, tables.inverse_byte_powers[grid.bytes_after()], tables.polynomial);
  results[message] = ~(sum ^ sums[0]);
}

struct Workspace {
  TilePlanWorkspace plan;
  std::uint32_t* partials;
  std::size_t size;

  Workspace(void* base, std::uint32_t count, std::uint64_t total_bytes) {
    WorkspaceCursor cursor(base);
    // A message may begin and end in blocks that it fills only in part.
    plan = take_tile_plan(cursor, count, total_bytes, 2 * 16, crc_tile_bytes, 1);
    partials = cursor.take<std::uint32_t>(plan.tiles_max);
    size = cursor.used();
  }
};

// Tiles are 2, 4 or 8 small tiles long if enough of them remain to keep the device busy.
std::uint32_t tile_factor_of(std::uint64_t total_bytes, int multiprocessors) {
  const std::uint64_t enough = std::uint64_t{4} * 24 * multiprocessors;
  std::uint32_t factor = 1;
  while (factor < crc_tile_factor_max && total_bytes / (2 * factor * crc_tile_bytes) >= enough)
    factor *= 2;
  return factor;
}

}  // namespace

std::size_t checksum_workspace_size(std::uint32_t count, std::uint64_t total_bytes) {
  return Workspace(nullptr, count, total_bytes).size;
}

cudaError_t checksum(ChecksumPolynomial polynomial, const ChecksumTask* tasks, std::uint32_t count,
                     std::uint64_t total_bytes, std::uint32_t* results, void* workspace,
                     cudaStream_t stream) {
  if (count == 0) return cudaSuccess;
  DeviceShape shape;
  cudaError_t error = device_shape(shape);
  if (error != cudaSuccess) return error;
  const Workspace pieces(workspace, count, total_bytes);
  const auto index = static_cast<int>(polynomial);
  const std::uint32_t factor = tile_factor_of(total_bytes, shape.multiprocessors);
  const std::uint32_t tile_blocks = factor * small_tile_blocks;
  error = make_tile_plan(TilesOfTask{tasks, tile_blocks}, pieces.plan, stream);
  if (error != cudaSuccess) return error;
  const auto blocks = static_cast<std::uint32_t>(std::min<std::uint64_t>(
      (pieces.plan.tiles_max + hash_warps - 1) / hash_warps, shape.multiprocessors * 8));
  reduce_tiles<<<blocks, hash_threads, 0, stream>>>(tasks, pieces.plan.plan, tile_blocks, index,
                                                    pieces.partials);
  // Long messages have enough tiles for more threads.
  const bool many_tiles = total_bytes / crc_tile_bytes / factor / count >= 64;
  add_tiles<<<count, many_tiles ? crc_finish_threads : 32, 0, stream>>>(
      tasks, pieces.plan.plan, factor, index, pieces.partials, results);
  return cudaGetLastError();
}

}  // namespace nacre::engine::cuda
