// SPDX-License-Identifier: Apache-2.0
// Takes the sample of gpu_engine/codec/sample.cpp with a thread block, and gives the same verdicts.
// A sum of squares does not depend on the order of the bytes. If several positions have the same
// place in the table, the CPU keeps the last, which is the greatest; so here the maximum is stored.
//
// Counted for 64 KiB of noise: 1,024 bytes, 512 positions of 8 bytes, and 547 probes that load 8
// bytes twice. That is some 13,900 loads of a byte, or 108 for each thread: little compared to an
// encoder, which is then spared.
#pragma once

#include <cstdint>

#include "gpu_engine/codec/sample_plan.h"
#include "gpu_engine/cuda/kernels/tasks.h"

namespace nacre::engine::cuda {

inline constexpr std::uint32_t sample_threads = 128;
inline constexpr std::uint32_t sample_block_size = 64u << 10;
static_assert(sample_threads == first_bytes && sample_threads == window_size);

// Shared memory of the thread block.
struct SampleMemory {
  std::uint32_t counts[256];
  std::uint32_t positions[1u << position_table_bits];
  std::uint32_t square_sum;
  std::uint32_t repeats;
};

inline __device__ std::uint64_t load_sample(const Byte* at) {
  std::uint64_t bytes = 0;
  for (int i = 7; i >= 0; --i)
    bytes = bytes << 8 | at[i];
  return bytes;
}

inline __device__ std::uint32_t place_of_sample(std::uint64_t bytes) {
  return static_cast<std::uint32_t>((bytes * position_hash_factor) >> (64 - position_table_bits));
}

inline __device__ void clear(std::uint32_t* words, std::uint32_t count) {
  for (std::uint32_t i = threadIdx.x; i < count; i += sample_threads)
    words[i] = 0;
}

// Whether the sum of squares over all bytes counted so far exceeds sum_max. Before,
// memory.square_sum must be 0. All threads call it.
inline __device__ bool squares_exceed(SampleMemory& memory, std::uint32_t sum_max) {
  std::uint32_t sum = 0;
  for (std::uint32_t i = threadIdx.x; i < 256; i += sample_threads)
    sum += memory.counts[i] * memory.counts[i];
  atomicAdd(&memory.square_sum, sum);
  __syncthreads();
  return memory.square_sum > sum_max;
}

inline __device__ bool block_looks_compressible(const Byte* block, std::uint32_t size,
                                                SampleMemory& memory) {
  const std::uint32_t stride = size / stretch_count;
  clear(memory.counts, 256);
  clear(memory.positions, 1u << position_table_bits);
  clear(&memory.square_sum, 1);
  clear(&memory.repeats, 1);
  __syncthreads();
  const auto count_byte = [&](std::uint32_t stretch, std::uint32_t i) {
    atomicAdd(&memory.counts[block[stretch * stride + i]], 1u);
  };
  count_byte(threadIdx.x / stretch_size * first_step, threadIdx.x % stretch_size);
  __syncthreads();
  if (squares_exceed(memory, first_square_sum_max)) return true;
  __syncthreads();
  clear(&memory.square_sum, 1);
  for (std::uint32_t i = threadIdx.x; i < counted_bytes; i += sample_threads) {
    const std::uint32_t stretch = i / stretch_size;
    if (stretch % first_step != 0) count_byte(stretch, i % stretch_size);
  }
  __syncthreads();
  if (squares_exceed(memory, square_sum_max)) return true;

  for (std::uint32_t window = 0; window < window_count; ++window) {
    const std::uint32_t at = window * (size / window_count) + threadIdx.x;
    atomicMax(&memory.positions[place_of_sample(load_sample(block + at))], at);
  }
  __syncthreads();
  for (std::uint32_t at = threadIdx.x * probe_stride; at + sizeof(std::uint64_t) <= size;
       at += sample_threads * probe_stride) {
    const std::uint64_t here = load_sample(block + at);
    const std::uint32_t candidate = memory.positions[place_of_sample(here)];
    if (candidate != at && load_sample(block + candidate) == here) atomicMax(&memory.repeats, 1u);
  }
  __syncthreads();
  return memory.repeats != 0;
}

// looks_compressible() of codec/sample.h. All of the block's sample_threads threads call it, and
// all get the answer.
inline __device__ bool looks_compressible(const Byte* plain, std::uint32_t size,
                                          SampleMemory& memory) {
  if (size < sampled_size_min) return size != 0;
  for (std::uint32_t at = 0; size - at >= sampled_size_min;) {
    const std::uint32_t block = size - at < sample_block_size ? size - at : sample_block_size;
    if (block_looks_compressible(plain + at, block, memory)) return true;
    at += block;
    __syncthreads();
  }
  return false;
}

}  // namespace nacre::engine::cuda
