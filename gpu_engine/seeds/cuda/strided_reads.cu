// SPDX-License-Identifier: Apache-2.0
// Harrison and Waldron's memory test (figure 6 of their paper): what it costs when neighbouring
// threads read far from each other, each thread its own stretch of blocks.
#include "gpu_engine/seeds/cuda/device_run.h"

namespace nacre::engine::seeds {
namespace {

constexpr unsigned block_threads = 256;
constexpr std::uint32_t checked_threads = 64;

__host__ __device__ std::uint32_t word_at(std::uint64_t block) {
  return static_cast<std::uint32_t>(block * 2654435761u >> 7);
}

__global__ void fill(uint4* blocks, std::uint64_t count) {
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count;
       i += std::uint64_t{gridDim.x} * blockDim.x)
    blocks[i] = make_uint4(word_at(i), 1, 2, 3);
}

__global__ void read_stretches(const uint4* blocks, std::uint32_t thread_count,
                               std::uint32_t block_count, std::uint32_t* sums) {
  const std::uint32_t thread = blockIdx.x * blockDim.x + threadIdx.x;
  if (thread >= thread_count) return;
  const uint4* const own = blocks + std::uint64_t{thread} * block_count;
  std::uint32_t sum = 0;
  for (std::uint32_t i = 0; i < block_count; ++i) {
    const uint4 block = own[i];
    sum += block.x ^ block.y ^ block.z ^ block.w;
  }
  sums[thread] = sum;
}

}  // namespace

Result<double> strided_reads_on_device(std::uint32_t thread_count, std::uint32_t block_count,
                                       unsigned repetitions) {
  NACRE_TRY(need_device());
  if (thread_count == 0 || block_count == 0)
    return fail(ErrorCode::invalid_argument, "no thread or no block");
  const std::uint64_t blocks = std::uint64_t{thread_count} * block_count;
  NACRE_ASSIGN(const cuda::DeviceMemory d_blocks, cuda::DeviceMemory::allocate(16 * blocks));
  NACRE_ASSIGN(const cuda::DeviceMemory d_sums,
               cuda::DeviceMemory::allocate(4 * std::uint64_t{thread_count}));
  NACRE_ASSIGN(const cuda::Stream stream, cuda::Stream::create());
  auto* const at = reinterpret_cast<uint4*>(d_blocks.data());
  fill<<<1024, block_threads, 0, stream.get()>>>(at, blocks);
  NACRE_TRY(cuda::check(cudaGetLastError(), "filling memory"));
  double seconds = 0;
  NACRE_ASSIGN(seconds, device_seconds(stream.get(), repetitions, [&] {
                 read_stretches<<<(thread_count + block_threads - 1) / block_threads, block_threads,
                                  0, stream.get()>>>(
                     at, thread_count, block_count,
                     reinterpret_cast<std::uint32_t*>(d_sums.data()));
                 return cudaGetLastError();
               }));
  const std::uint32_t checked = std::min(thread_count, checked_threads);
  std::uint32_t sums[checked_threads];
  NACRE_TRY(cuda::check(cudaMemcpy(sums, d_sums.data(), 4 * checked, cudaMemcpyDeviceToHost),
                        "copying from the device"));
  for (std::uint32_t thread = 0; thread < checked; ++thread) {
    std::uint32_t expected = 0;
    for (std::uint32_t i = 0; i < block_count; ++i)
      expected += word_at(std::uint64_t{thread} * block_count + i) ^ 1 ^ 2 ^ 3;
    if (sums[thread] != expected)
      return fail(ErrorCode::io, "a read of a stretch on the device gave something else");
  }
  return seconds;
}

}  // namespace nacre::engine::seeds
