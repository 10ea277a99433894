// SPDX-License-Identifier: Apache-2.0
// CRCs as products of binary matrices, on the tensor cores: the remainder of a piece is linear over
// GF(2) in its bits, so it is the bits times a matrix of powers of x (binary_matrix.cuh; ghash.cu
// does the same with more columns).
//
// A warp takes 2 KiB at a time: lane l loads the 16 bytes at 512 s + 16 l in step s. The four lanes
// of a group make a row of 64 bytes; four steps make 32 rows. A row's remainder stays with it, a
// byte in each of its lanes, and is multiplied by x^(8 * 2048) before the next 2 KiB. A tile is 8
// KiB; at its end each lane multiplies one row by the power that its place asks for, and the tile's
// remainder goes to memory. One more kernel adds a message's tiles up.
//
// Tiles lie on the 16-byte grid of addresses and end with the message's last block; what lies
// before the message are zeros, which change nothing, and the zeros after it are divided off.
//
// The fragments of the matrices are constants, 20 registers. 2 KiB cost a warp 4 loads, 24 products
// and some 100 operations, a fifth of what memory at 4.2 TB/s leaves time for.
#include "gpu_engine/cuda/kernels/checksum.h"

#include <algorithm>

#include "gpu_engine/cuda/kernels/binary_matrix.cuh"
#include "gpu_engine/cuda/kernels/block_io.cuh"
#include "gpu_engine/cuda/kernels/crc_tables.h"
#include "gpu_engine/cuda/kernels/tile_plan.h"

namespace nacre::engine::cuda {
namespace {

constexpr unsigned all_lanes = 0xffffffffu;
constexpr int hash_threads = 256;
constexpr int hash_warps = hash_threads / 32;
constexpr int batch_blocks = crc_batch_bytes / 16;
constexpr int tile_blocks = crc_tile_bytes / 16;
constexpr int batches_per_tile = tile_blocks / batch_blocks;
constexpr int simple_threads = 128;

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

// A message on the grid of 16-byte blocks that its addresses make.
struct Grid {
  const Byte* data;
  std::uint64_t size;
  std::uint32_t lead;  // bytes of block 0 before the message
  std::int64_t blocks;

  __host__ __device__ explicit Grid(const ChecksumTask& task)
      : data(task.data),
        size(task.size),
        lead(static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(task.data) % 16)),
        blocks(size == 0 ? 0 : static_cast<std::int64_t>((lead + size + 15) / 16)) {}

  __host__ __device__ std::uint32_t tiles() const {
    const auto needed = static_cast<std::uint32_t>((blocks + tile_blocks - 1) / tile_blocks);
    return needed == 0 ? 1 : needed;
  }
  __device__ std::uint32_t bytes_after() const {
    return static_cast<std::uint32_t>(16 * blocks - lead - size);
  }
  // Zeros outside the message.
  __device__ uint4 block(std::int64_t index) const {
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

__global__ void count_units(const ChecksumTask* tasks, std::uint32_t count, std::uint32_t* units) {
  const std::uint32_t index = blockIdx.x * simple_threads + threadIdx.x;
  if (index > count) return;
  units[index] = index == count ? 0 : Grid(tasks[index]).tiles();
}

struct Fragments {
  uint2 data[crc_column_tiles][2];
  std::uint32_t fold[crc_column_tiles];
};

__device__ void add_batch(std::uint32_t (&rows)[4], const uint4 (&blocks)[4],
                          const Fragments& fragments) {
  std::uint32_t results[4] = {};
#pragma unroll
  for (int tile = 0; tile < crc_column_tiles; ++tile) {
#pragma unroll
    for (int pair = 0; pair < 2; ++pair) {
      const uint4 low = blocks[2 * pair], high = blocks[2 * pair + 1];
      RowCounts counts;
      multiply_add(counts, rows[2 * pair], rows[2 * pair + 1], fragments.fold[tile]);
      multiply_add(counts, low.x, high.x, low.y, high.y, fragments.data[tile][0]);
      multiply_add(counts, low.z, high.z, low.w, high.w, fragments.data[tile][1]);
      results[2 * pair] |= parities(counts.low_row) << (2 * tile);
      results[2 * pair + 1] |= parities(counts.high_row) << (2 * tile);
    }
  }
#pragma unroll
  for (int step = 0; step < 4; ++step)
    rows[step] = results[step];
}

// The sum of the rows times their powers; in all lanes.
__device__ std::uint32_t sum_of_rows(const std::uint32_t (&rows)[4], std::uint32_t lane,
                                     std::uint32_t row_power, std::uint32_t polynomial) {
  // Lane 4 g + s takes row 8 s + g, whose bytes are in the lanes of group g.
  std::uint32_t row = 0;
#pragma unroll
  for (std::uint32_t step = 0; step < 4; ++step) {
    std::uint32_t whole = rows[step] << (8 * (lane % 4));
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

__global__ __launch_bounds__(hash_threads) void reduce_tiles(const ChecksumTask* tasks,
                                                             TilePlan plan, int polynomial,
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
  for (std::uint32_t tile = blockIdx.x * hash_warps + threadIdx.x / 32; tile < tile_count;
       tile += gridDim.x * hash_warps) {
    const std::uint32_t message = plan.tile_messages[tile];
    const Grid grid(tasks[message]);
    const std::uint32_t tiles_from_here = plan.first_units[message + 1] - tile;
    const std::int64_t first = grid.blocks - std::int64_t{tiles_from_here} * tile_blocks;
    // Neither the first block nor the last is among a plain tile's.
    const bool plain = first > 0 && tiles_from_here > 1;
    const auto* const at =
        reinterpret_cast<const uint4*>(grid.data + (16 * first - grid.lead)) + lane;
    std::uint32_t rows[4] = {};
#pragma unroll 1
    for (int batch = 0; batch < batches_per_tile; ++batch) {
      const std::int64_t start = first + batch * batch_blocks;
      if (start + batch_blocks <= 0) continue;
      uint4 blocks[4];
#pragma unroll
      for (int step = 0; step < 4; ++step)
        blocks[step] =
            plain ? at[batch * batch_blocks + 32 * step] : grid.block(start + 32 * step + lane);
      __syncwarp();
      add_batch(rows, blocks, fragments);
    }
    const std::uint32_t sum = sum_of_rows(rows, lane, row_power, tables.polynomial);
    if (lane == 0) partials[tile] = sum;
  }
}

// A block a message.
__global__ __launch_bounds__(crc_finish_threads) void add_tiles(const ChecksumTask* tasks,
                                                                TilePlan plan, int polynomial,
                                                                const std::uint32_t* partials,
                                                                std::uint32_t* results) {
  __shared__ std::uint32_t sums[crc_finish_threads];
  const CrcTables& tables = crc_tables[polynomial];
  const std::uint32_t message = blockIdx.x;
  const std::uint32_t first = plan.first_units[message];
  const std::uint32_t tiles = plan.first_units[message + 1] - first;
  std::uint32_t sum = 0;
  if (threadIdx.x < tiles) {
    // Thread i has the tiles that have i, i + 128, … tiles after them; the farthest first.
    std::uint32_t after =
        (tiles - 1 - threadIdx.x) / crc_finish_threads * crc_finish_threads + threadIdx.x;
    sum = partials[first + tiles - 1 - after];
    while (after >= crc_finish_threads) {
      after -= crc_finish_threads;
      sum = multiply(sum, tables.stride_power, tables.polynomial) ^
            partials[first + tiles - 1 - after];
    }
    if (threadIdx.x != 0) sum = multiply(sum, tables.tile_powers[threadIdx.x], tables.polynomial);
  }
  const Grid grid(tasks[message]);
  // The last warp does what needs no tile.
  if (threadIdx.x == crc_finish_threads - 1)
    sums[0] = append_zeros(~tasks[message].before, grid.size, tables);
  __syncthreads();
  for (int distance = 16; distance > 0; distance /= 2)
    sum ^= __shfl_xor_sync(all_lanes, sum, distance);
  if (threadIdx.x % 32 == 0) sums[1 + threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int warp = 1; warp < crc_finish_threads / 32; ++warp)
    sum ^= sums[1 + warp];
  sum = multiply(sum, tables.inverse_byte_powers[grid.bytes_after()], tables.polynomial);
  results[message] = ~(sum ^ sums[0]);
}

__global__ void combine(int polynomial, const std::uint32_t* first, const std::uint32_t* second,
                        const std::uint64_t* second_sizes, std::uint32_t count,
                        std::uint32_t* results) {
  const std::uint32_t index = blockIdx.x * simple_threads + threadIdx.x;
  if (index < count)
    results[index] =
        append_zeros(first[index], second_sizes[index], crc_tables[polynomial]) ^ second[index];
}

struct Workspace {
  TilePlanWorkspace plan;
  std::uint32_t* partials;
  std::size_t size;

  Workspace(void* base, std::uint32_t count, std::uint64_t total_bytes) {
    WorkspaceCursor cursor(base);
    // A message can begin and end in blocks that it fills in part.
    plan = take_tile_plan(cursor, count, total_bytes, 2 * 16, crc_tile_bytes, 1);
    partials = cursor.take<std::uint32_t>(plan.tiles_max);
    size = cursor.used();
  }
};

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
  count_units<<<count / simple_threads + 1, simple_threads, 0, stream>>>(
      tasks, count, pieces.plan.plan.first_units);
  error = make_tile_plan(pieces.plan, stream);
  if (error != cudaSuccess) return error;
  const auto blocks = static_cast<std::uint32_t>(std::min<std::uint64_t>(
      (pieces.plan.tiles_max + hash_warps - 1) / hash_warps, shape.multiprocessors * 8));
  reduce_tiles<<<blocks, hash_threads, 0, stream>>>(tasks, pieces.plan.plan, index,
                                                    pieces.partials);
  add_tiles<<<count, crc_finish_threads, 0, stream>>>(tasks, pieces.plan.plan, index,
                                                      pieces.partials, results);
  return cudaGetLastError();
}

cudaError_t combine_checksums(ChecksumPolynomial polynomial, const std::uint32_t* first,
                              const std::uint32_t* second, const std::uint64_t* second_sizes,
                              std::uint32_t count, std::uint32_t* results, cudaStream_t stream) {
  if (count == 0) return cudaSuccess;
  combine<<<(count + simple_threads - 1) / simple_threads, simple_threads, 0, stream>>>(
      static_cast<int>(polynomial), first, second, second_sizes, count, results);
  return cudaGetLastError();
}

}  // namespace nacre::engine::cuda
