// SPDX-License-Identifier: Apache-2.0
// GHASH as products of binary matrices. The plain loop:
//
//   for each block of the stream: sum = (sum ^ block) * H    // in GF(2^128)
//
// Each step waits for the one before it. But the multiplication by a fixed power of H is linear
// over GF(2): it is a block of 128 bits times a 128 x 128 matrix. So the result is a sum of blocks
// times powers of H. Tensor cores compute such sums from single bits (binary_matrix.cuh), with
// counts taken modulo 2.
//
// A warp processes a tile of the stream, cut into 32 rows of equally many neighbouring blocks. It
// takes four blocks of each row at a time. The four lanes of a group load the four blocks of a row,
// one per lane; in four steps a group loads those of four rows. A lane's words go into the products
// unchanged: the rows of the matrices are ordered so that the four blocks are multiplied by H^4,
// H^3, H^2 and H, and no lane needs the data of another. Two steps fill the 16 rows of a product;
// four steps fill the two products that use the same fragment of the matrices. A row's sum is four
// words, one in each of its lanes, and is added to the first of its next four blocks: Horner's
// rule. At the end of a tile each lane multiplies the sum of one row by the power of H for the rows
// that follow.
//
// Tiles are counted from the end of the stream. So the first tile may begin with blocks of zeros
// before the stream, which change nothing, and all exponents are multiples of the tile's length.
//
// For 2 KiB a warp does 64 products with k = 256 (an H200's multiprocessor completes one in about
// four cycles), 4 loads of data, 32 of matrices (8 KiB a key, in the first-level cache), 16
// shuffles, and some 160 operations on counts.
#include <algorithm>

#include "gpu_engine/cuda/kernels/aead.h"
#include "gpu_engine/cuda/kernels/aes.cuh"
#include "gpu_engine/cuda/kernels/binary_matrix.cuh"
#include "gpu_engine/cuda/kernels/crypt.h"
#include "gpu_engine/cuda/kernels/gf128.cuh"
#include "gpu_engine/cuda/kernels/launch.cuh"
#include "gpu_engine/cuda/kernels/tile_plan.cuh"

namespace nacre::engine::cuda {
namespace {

constexpr int hash_threads = 256;
constexpr int hash_blocks = 2;  // a multiprocessor
constexpr int hash_warps = hash_threads / 32;
constexpr int batch_blocks = 128;
constexpr int group_blocks = 4;
constexpr int finish_threads = ghash_powers;

struct StreamView {
  const Byte* data;
  const Byte* aad;
  std::uint64_t size;
  std::uint64_t aad_size;
  std::int64_t aad_blocks, blocks;

  __device__ StreamView(const AeadTask& task, TagUse use)
      : data(use == TagUse::write_of_out ? task.out : task.in),
        aad(task.aad),
        size(task.size),
        aad_size(task.aad_size) {
    const HashStream stream = hash_stream(task);
    aad_blocks = static_cast<std::int64_t>(stream.aad_blocks);
    blocks = static_cast<std::int64_t>(stream.blocks);
  }

  // Whether a block is entirely data, at an aligned address.
  __device__ bool is_plain(std::int64_t index) const {
    return alignment_of(data) == 0 && index >= aad_blocks &&
           index < aad_blocks + static_cast<std::int64_t>(size / block_bytes);
  }
  __device__ uint4 plain_block(std::int64_t index) const {
    const Byte* const from = data;
    __builtin_assume(__isGlobal(from));
    return *reinterpret_cast<const uint4*>(from + (index - aad_blocks) * 16);
  }
  // Blocks before the stream are zeros.
  __device__ __noinline__ uint4 block(std::int64_t index) const {
    if (index < 0) return make_uint4(0, 0, 0, 0);
    if (index < aad_blocks) return load_block(aad, index * block_bytes, aad_size);
    if (index < blocks - 1) return load_block(data, (index - aad_blocks) * block_bytes, size);
    const std::uint64_t aad_bits = aad_size * 8, bits = size * 8;
    return swap_bytes(make_uint4(aad_bits >> 32, static_cast<std::uint32_t>(aad_bits), bits >> 32,
                                 static_cast<std::uint32_t>(bits)));
  }
};

// Adds each row's sum to the first of its next four blocks, multiplies these blocks by H^4 to H,
// and makes the sum of the products the row's new sum.
__device__ void add_batch(std::uint32_t (&rows)[4], uint4 (&blocks)[4], const ExpandedSuiteKey& key,
                          std::uint32_t lane) {
#pragma unroll
  for (int step = 0; step < 4; ++step) {
    uint4 row;
    row.x = __shfl_sync(all_lanes, rows[step], 0, group_blocks);
    row.y = __shfl_sync(all_lanes, rows[step], 1, group_blocks);
    row.z = __shfl_sync(all_lanes, rows[step], 2, group_blocks);
    row.w = __shfl_sync(all_lanes, rows[step], 3, group_blocks);
    if (lane % group_blocks == 0) blocks[step] = blocks[step] ^ row;
  }
  std::uint32_t results[4] = {};
#pragma unroll
  for (int tiles = 0; tiles < 8; ++tiles) {
    RowCounts counts[2][2];
#pragma unroll
    for (int odd = 0; odd < 2; ++odd) {
      const int tile = 2 * tiles + odd;
      const uint2 low_words = key.ghash_matrices[tile][0][lane];
      const uint2 high_words = key.ghash_matrices[tile][1][lane];
#pragma unroll
      for (int pair = 0; pair < 2; ++pair) {
        const uint4 low = blocks[2 * pair], high = blocks[2 * pair + 1];
        RowCounts& sums = counts[odd][pair];
        multiply_add(sums, low.x, high.x, low.y, high.y, low_words);
        multiply_add(sums, low.z, high.z, low.w, high.w, high_words);
      }
    }
#pragma unroll
    for (int pair = 0; pair < 2; ++pair) {
      add_parities(results[2 * pair], counts[0][pair].low_row, counts[1][pair].low_row, tiles);
      add_parities(results[2 * pair + 1], counts[0][pair].high_row, counts[1][pair].high_row,
                   tiles);
    }
  }
#pragma unroll
  for (int step = 0; step < 4; ++step)
    rows[step] = results[step];
}

// The sum of the rows' sums times their powers of H. All lanes get it.
__device__ uint4 sum_of_rows(const std::uint32_t (&rows)[4], uint4 power, std::uint32_t lane) {
  // Row 8 s + g is in the four lanes of group g; lane 8 s + g gathers it.
  std::uint32_t words[4] = {};
#pragma unroll
  for (int word = 0; word < 4; ++word) {
#pragma unroll
    for (std::uint32_t step = 0; step < 4; ++step) {
      const std::uint32_t value = __shfl_sync(all_lanes, rows[step], lane % 8 * 4 + word);
      if (lane / 8 == step) words[word] = value;
    }
  }
  uint4 sum = gf128_multiply(swap_bytes(make_uint4(words[0], words[1], words[2], words[3])), power);
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2)
    sum = sum ^ make_uint4(__shfl_xor_sync(all_lanes, sum.x, distance),
                           __shfl_xor_sync(all_lanes, sum.y, distance),
                           __shfl_xor_sync(all_lanes, sum.z, distance),
                           __shfl_xor_sync(all_lanes, sum.w, distance));
  return sum;
}

// How many blocks each row has, so that the rows hold a tile's blocks and the powers of H for that
// length are known.
__device__ std::uint32_t row_length(std::uint32_t blocks) {
  if (blocks <= 3 * batch_blocks) return (blocks + batch_blocks - 1) / batch_blocks * group_blocks;
  std::uint32_t length = 16;
  while (ghash_rows * length < blocks)
    length *= 2;
  return length;
}

// Loads one block for each of the four steps: the rows of two steps are `stride` blocks apart.
__device__ void load_batch(uint4 (&blocks)[4], const StreamView& stream, std::int64_t first,
                           std::uint32_t stride) {
  const std::int64_t last = first + 3 * std::int64_t{stride};
  if (__all_sync(all_lanes, stream.is_plain(first) && stream.is_plain(last))) {
#pragma unroll
    for (std::uint32_t step = 0; step < 4; ++step)
      blocks[step] = stream.plain_block(first + step * stride);
  } else {
#pragma unroll
    for (std::uint32_t step = 0; step < 4; ++step)
      blocks[step] = stream.block(first + step * stride);
    __syncwarp();
  }
}

__global__ __launch_bounds__(hash_threads,
                             hash_blocks) void hash_tiles(const AeadTask* tasks, TagUse use,
                                                          TilePlan plan, std::int64_t tile_blocks,
                                                          const ExpandedSuiteKey* keys,
                                                          uint4* partials) {
  const std::uint32_t lane = threadIdx.x % 32;
  const std::uint32_t tile_count = plan.first_units[plan.message_count];
  const TileRange range =
      tiles_of_warp(tile_count, blockIdx.x * hash_warps + threadIdx.x / 32, gridDim.x * hash_warps);
  for (std::uint32_t tile = range.begin; tile < range.end; ++tile) {
    const std::uint32_t message = plan.tile_messages[tile];
    const AeadTask& task = tasks[message];
    const StreamView stream(task, use);
    const ExpandedSuiteKey& key = keys[task.key];
    // Tiles are counted from the stream's end. Only the first one may have fewer blocks.
    const std::uint32_t tiles_from_here = plan.first_units[message + 1] - tile;
    const std::int64_t end = stream.blocks - (tiles_from_here - 1) * tile_blocks;
    const std::uint32_t row_blocks = row_length(static_cast<std::uint32_t>(min(end, tile_blocks)));
    // This lane's first block in step 0. In the next step its row is eight rows on.
    const std::int64_t first = end - std::int64_t{ghash_rows} * row_blocks +
                               lane / group_blocks * row_blocks + lane % group_blocks;
    std::uint32_t rows[4] = {};
    uint4 blocks[4] = {};
    load_batch(blocks, stream, first, 8 * row_blocks);
#pragma unroll 1
    for (std::uint32_t at = group_blocks; at <= row_blocks; at += group_blocks) {
      uint4 next[4] = {};
      // Loaded before the products, which take a while.
      if (at < row_blocks) load_batch(next, stream, first + at, 8 * row_blocks);
      add_batch(rows, blocks, key, lane);
#pragma unroll
      for (int step = 0; step < 4; ++step)
        blocks[step] = next[step];
    }
    const std::uint32_t rows_after = ghash_rows - 1 - lane;
    const uint4 power = row_blocks < 16 ? key.ghash_short_powers[rows_after * (row_blocks / 4)]
                                        : key.ghash_long_powers[rows_after * (row_blocks / 16)];
    const uint4 sum = sum_of_rows(rows, power, lane);
    if (lane == 0) partials[tile] = sum;
  }
}

// The sum of the tiles times their powers of H. All threads of the block call it; the result is
// valid in thread 0.
__device__ uint4 sum_of_tiles(const uint4* partials, std::uint32_t tiles, std::uint32_t tile_factor,
                              const ExpandedSuiteKey& key,
                              uint4 (&warp_sums)[finish_threads / 32]) {
  uint4 sum = {};
  const std::uint32_t threads = finish_threads / tile_factor;
  if (threadIdx.x < min(tiles, threads)) {
    // Thread i takes the tiles that have i, i + threads, … tiles after them; the farthest first.
    std::uint32_t after = (tiles - 1 - threadIdx.x) / threads * threads + threadIdx.x;
    sum = partials[tiles - 1 - after];
    while (after >= threads) {
      after -= threads;
      sum = gf128_multiply(sum, key.ghash_stride_power) ^ partials[tiles - 1 - after];
    }
    if (threadIdx.x != 0)
      sum = gf128_multiply(sum, key.ghash_tile_powers[threadIdx.x * tile_factor]);
  }
  __syncwarp();
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2)
    sum = sum ^ make_uint4(__shfl_xor_sync(all_lanes, sum.x, distance),
                           __shfl_xor_sync(all_lanes, sum.y, distance),
                           __shfl_xor_sync(all_lanes, sum.z, distance),
                           __shfl_xor_sync(all_lanes, sum.w, distance));
  if (threadIdx.x % 32 == 0) warp_sums[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int warp = 1; warp < finish_threads / 32; ++warp)
      sum = sum ^ warp_sums[warp];
  }
  return sum;
}

// One block per message.
__global__ __launch_bounds__(finish_threads) void finish_tags(
    const AeadTask* tasks, TagUse use, TilePlan plan, std::uint32_t tile_factor, KeyTable keys,
    const uint4* partials, CryptTask* crypt_tasks, std::uint32_t* verdicts) {
  __shared__ std::uint32_t shared[256];
  __shared__ uint4 warp_sums[finish_threads / 32];
  __shared__ uint4 mask;
  const SmallTables tables(shared);
  const std::uint32_t message = blockIdx.x;
  const AeadTask& task = tasks[message];
  // This thread is in another warp than thread 0, which has most multiplications to do.
  if (threadIdx.x == finish_threads - 32) {
    uint4 counter = load_bytes_of_block(task.nonce, sizeof(task.nonce));
    counter.w = swap_bytes(1u);
    const CipherKeyView key(keys.ciphers, task.key);
    mask = encrypt_one_block(tables, key.encrypt(), key.round_count(), counter);
  }
  const std::uint32_t first = plan.first_units[message];
  const uint4 sum = sum_of_tiles(partials + first, plan.first_units[message + 1] - first,
                                 tile_factor, keys.suites[task.key], warp_sums);
  if (threadIdx.x != 0) return;
  const uint4 tag = swap_bytes(sum) ^ mask;
  if (use == TagUse::write_of_out) {
    store_block(task.tag, 0, block_bytes, tag);
    return;
  }
  const uint4 difference = tag ^ load_block(task.tag, 0, block_bytes);
  const bool matches = (difference.x | difference.y | difference.z | difference.w) == 0;
  verdicts[message] = matches ? 1 : 0;
  if (!matches) crypt_tasks[message].key = no_key;
}

}  // namespace

std::uint32_t ghash_tile_factor(std::uint64_t total_bytes, int multiprocessors) {
  // Each warp that can run at a time should get four tiles.
  const std::uint64_t small_tiles = total_bytes / ghash_small_tile_bytes;
  const std::uint64_t wanted = std::uint64_t{4} * 16 * multiprocessors;
  return small_tiles >= 4 * wanted ? 4 : small_tiles >= 2 * wanted ? 2 : 1;
}

cudaError_t ghash_tags(TagUse use, const AeadTask* tasks, const TilePlanWorkspace& plan,
                       std::uint32_t tile_factor, KeyTable keys, uint4* partials,
                       CryptTask* crypt_tasks, std::uint32_t* verdicts, cudaStream_t stream) {
  DeviceShape shape;
  const cudaError_t error = device_shape(shape);
  if (error != cudaSuccess) return error;
  const auto blocks = static_cast<std::uint32_t>(std::min<std::uint64_t>(
      (plan.tiles_max + hash_warps - 1) / hash_warps, shape.multiprocessors * 8));
  hash_tiles<<<blocks, hash_threads, 0, stream>>>(
      tasks, use, plan.plan, std::int64_t{tile_factor} * ghash_small_tile_blocks, keys.suites,
      partials);
  finish_tags<<<plan.plan.message_count, finish_threads, 0, stream>>>(
      tasks, use, plan.plan, tile_factor, keys, partials, crypt_tasks, verdicts);
  return cudaGetLastError();
}

}  // namespace nacre::engine::cuda
