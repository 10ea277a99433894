// SPDX-License-Identifier: Apache-2.0
// The steps of prime_search.h.
//
// Counted for primes of 1,024 bits. Of the numbers that are 3 mod 4 every 355th is prime; of those
// that also have no factor below 2^16 every 36th is. So finding a prime takes 36 rounds of 1,087
// multiplications (squares, and a sixteenth for the base). An interval gives only one prime, which
// costs a tenth more. Confirming the prime takes 31 rounds. That is 71 rounds of 2.3e6 products, or
// 1.6e8. With two primes for each key, an H200 could make 23,500 keys a second. The sieve computes
// 6,541 residues of 32 limbs for an interval, and a prime needs six intervals: 4e6 operations, a
// fortieth of the rest.
#include "gpu_engine/cuda/kernels/prime_search.h"

namespace nacre::engine::cuda {
namespace {

constexpr int threads_per_block = 64;
constexpr int blocks_per_multiprocessor = 4;
constexpr int sieve_warps = 4;
// Room for the candidates that the sieve leaves, for each interval. It leaves 6.5 on average, with
// a standard deviation of 2.4, so the average over many intervals practically never exceeds this.
// Candidates without room are dropped.
constexpr std::uint32_t survivors_per_interval = 12;

// For what a ChaCha20 block is used; the first word of its nonce.
enum Purpose : std::uint32_t { starts_of_intervals, first_bases, later_bases };

template <int N>
struct Workspace {
  std::uint32_t* starts;          // N limbs an interval, contiguous
  std::uint32_t* survivors;       // interval * interval_length + k
  std::uint32_t* claimed;         // by interval: not 0 if it has given a prime
  std::uint32_t* survivor_count;  // follows claimed
  std::uint32_t survivor_count_max;

  static std::size_t size(std::uint32_t intervals) {
    return std::size_t{4} * (intervals * (N + survivors_per_interval + 1) + 1);
  }
  Workspace(void* memory, std::uint32_t intervals) {
    starts = static_cast<std::uint32_t*>(memory);
    survivors = starts + std::size_t{N} * intervals;
    survivor_count_max = intervals * survivors_per_interval;
    claimed = survivors + survivor_count_max;
    survivor_count = claimed + intervals;
  }
};

template <int N>
__global__ void draw_starts(PrimeSearch search, Workspace<N> workspace) {
  const std::uint32_t at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= search.interval_count * (N / 16)) return;
  const ChaChaBlock block = chacha20_block(*search.key, at, starts_of_intervals, 0, 0);
  for (std::uint32_t j = 0; j < 16; ++j)
    workspace.starts[16 * at + j] =
        shape_start(block.words[j], at % (N / 16) * 16 + j, search.bits);
}

// One warp per interval.
template <int N>
__global__ __launch_bounds__(32 * sieve_warps) void sieve(PrimeSearch search,
                                                          Workspace<N> workspace) {
  __shared__ std::uint32_t starts[sieve_warps][N];
  const std::uint32_t lane = threadIdx.x % 32;
  const std::uint32_t interval = blockIdx.x * sieve_warps + threadIdx.x / 32;
  if (interval >= search.interval_count) return;
  std::uint32_t* const start = starts[threadIdx.x / 32];
  for (int j = lane; j < N; j += 32)
    start[j] = workspace.starts[std::size_t{N} * interval + j];
  __syncwarp();
  std::uint64_t composite = 0;
  for (std::uint32_t i = lane; i < search.small_prime_count; i += 32)
    composite |= find_multiples<N>(search.small_primes[i], start);
  for (int distance = 16; distance > 0; distance /= 2)
    composite |= __shfl_xor_sync(~0u, composite, distance);
  const std::uint64_t left = ~composite;
  std::uint32_t base = 0;
  if (lane == 0) base = atomicAdd(workspace.survivor_count, __popcll(left));
  base = __shfl_sync(~0u, base, 0);
  for (std::uint32_t k = lane; k < interval_length; k += 32) {
    const std::uint32_t place = base + __popcll(left & ((std::uint64_t{1} << k) - 1));
    if ((left >> k & 1) != 0 && place < workspace.survivor_count_max)
      workspace.survivors[place] = interval * interval_length + k;
  }
}

// The shared memory of a block. Each thread has a column for its candidate, and one for
// intermediate results.
template <int N>
struct Shared {
  std::uint32_t column[N][threads_per_block];
  std::uint32_t candidate[N][threads_per_block];
};

// Runs one round of Miller-Rabin for the thread's candidate in shared memory.
template <int N>
__device__ __forceinline__ bool test(Shared<N>& shared, const PrimeSearch& search, Purpose purpose,
                                     std::uint32_t index) {
  const LimbColumn candidate = {&shared.candidate[0][threadIdx.x], threads_per_block};
  const LimbColumn column = {&shared.column[0][threadIdx.x], threads_per_block};
  const ChaChaBlock random = chacha20_block(*search.key, index, purpose, 0, 0);
  std::uint32_t inverse = candidate[0];
  for (int i = 0; i < 4; ++i)
    inverse *= 2 - candidate[0] * inverse;
  if constexpr (modulus_in_registers<N>) {
    Limbs<N> n;
    copy_limbs(n, candidate);
    return may_be_prime<N>(n, candidate, 0 - inverse, search.bits, random.words[0], random.words[1],
                           column);
  } else {
    return may_be_prime<N>(candidate, candidate, 0 - inverse, search.bits, random.words[0],
                           random.words[1], column);
  }
}

template <int N>
__global__ __launch_bounds__(threads_per_block, blocks_per_multiprocessor) void test_survivors(
    PrimeSearch search, Workspace<N> workspace) {
  __shared__ Shared<N> shared;
  const std::uint32_t index = blockIdx.x * threads_per_block + threadIdx.x;
  if (index >= min(*workspace.survivor_count, workspace.survivor_count_max)) return;
  const std::uint32_t survivor = workspace.survivors[index];
  const std::uint32_t interval = survivor / interval_length;
  std::uint64_t sum = 4 * (survivor % interval_length);
  for (int j = 0; j < N; ++j) {
    sum += workspace.starts[std::size_t{N} * interval + j];
    shared.candidate[j][threadIdx.x] = static_cast<std::uint32_t>(sum);
    sum >>= 32;
  }
  if (!test(shared, search, first_bases, index)) return;
  if (atomicExch(&workspace.claimed[interval], 1) != 0) return;
  const std::uint32_t place = atomicAdd(search.found_count, 1);
  for (int j = 0; j < N; ++j)
    search.primes[std::size_t{N} * place + j] = shared.candidate[j][threadIdx.x];
}

template <int N>
__global__ __launch_bounds__(threads_per_block,
                             blocks_per_multiprocessor) void test_found(PrimeSearch search) {
  __shared__ Shared<N> shared;
  const std::uint32_t index = blockIdx.x * threads_per_block + threadIdx.x;
  const std::uint32_t place = index / (miller_rabin_round_count - 1);
  if (place >= *search.found_count) return;
  for (int j = 0; j < N; ++j)
    shared.candidate[j][threadIdx.x] = search.primes[std::size_t{N} * place + j];
  if (!test(shared, search, later_bases, index)) atomicExch(&search.failed[place], 1);
}

constexpr std::uint32_t blocks_of(std::uint32_t threads, std::uint32_t per_block) {
  return (threads + per_block - 1) / per_block;
}

cudaError_t clear(std::uint32_t* words, std::uint32_t count, cudaStream_t stream) {
  return cudaMemsetAsync(words, 0, std::size_t{4} * count, stream);
}

}  // namespace

template <int N>
std::size_t prime_search_workspace_size(std::uint32_t interval_count) {
  return Workspace<N>::size(interval_count);
}

template <int N>
cudaError_t search_primes(const PrimeSearch& search, void* memory, cudaStream_t stream) {
  if (search.interval_count == 0) return cudaSuccess;
  const Workspace<N> workspace(memory, search.interval_count);
  const std::uint32_t intervals = search.interval_count;
  cudaError_t error = clear(workspace.claimed, intervals + 1, stream);
  if (error == cudaSuccess) error = clear(search.found_count, 1, stream);
  if (error == cudaSuccess) error = clear(search.failed, intervals, stream);
  if (error != cudaSuccess) return error;
  constexpr std::uint32_t draw_threads = 128;
  draw_starts<N><<<blocks_of(intervals * (N / 16), draw_threads), draw_threads, 0, stream>>>(
      search, workspace);
  sieve<N><<<blocks_of(intervals, sieve_warps), 32 * sieve_warps, 0, stream>>>(search, workspace);
  test_survivors<N><<<blocks_of(workspace.survivor_count_max, threads_per_block), threads_per_block,
                      0, stream>>>(search, workspace);
  test_found<N><<<blocks_of(intervals * (miller_rabin_round_count - 1), threads_per_block),
                  threads_per_block, 0, stream>>>(search);
  return cudaGetLastError();
}

#define NACRE_PRIME_SEARCH(N)                                         \
  template std::size_t prime_search_workspace_size<N>(std::uint32_t); \
  template cudaError_t search_primes<N>(const PrimeSearch&, void*, cudaStream_t);
NACRE_PRIME_SEARCH(16)
NACRE_PRIME_SEARCH(32)
NACRE_PRIME_SEARCH(48)
NACRE_PRIME_SEARCH(64)
#undef NACRE_PRIME_SEARCH

}  // namespace nacre::engine::cuda
