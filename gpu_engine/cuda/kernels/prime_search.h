// SPDX-License-Identifier: Apache-2.0
// Random primes in batches, for RSA keys. The plain loop for one prime:
//
//   for (n = a random number that is 3 mod 4;; n += 4)
//     if n has no small factor, and 32 rounds of Miller-Rabin with random bases pass: return n;
//
// Candidates need very different times, so threads that each ran this loop would wait for the
// slowest. Instead each step is a kernel over all candidates that are left, which form a list
// without gaps: random starts of intervals; a sieve over the 64 candidates of each interval; one
// round of Miller-Rabin for the candidates that are left; 31 more rounds for those that pass. The
// 31 rounds are one step, because they hardly ever reject a candidate: of random numbers of this
// length that pass one round, all but one in many millions are prime.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "gpu_engine/cuda/kernels/prime_test.cuh"

namespace nacre::engine::cuda {

inline constexpr std::uint32_t miller_rabin_round_count = 32;

// Pointers are to device memory. The key, the primes and the workspace are secret: the caller wipes
// them.
struct PrimeSearch {
  const ChaChaKey* key;  // random, for this search alone
  const SmallPrime* small_primes;
  std::uint32_t small_prime_count;
  std::uint32_t bits;  // length of the primes: more than 64, at most 32 N
  std::uint32_t interval_count;

  // The primes that were found, in no order: at most one of each interval, since primes that are so
  // near to each other cannot make a key.
  std::uint32_t* found_count;
  std::uint32_t* primes;  // room for interval_count numbers of N contiguous limbs
  std::uint32_t*
      failed;  // for each number: not 0 if one of the 31 rounds showed it to be composite
};

// N: 16, 32, 48 or 64. In bytes; the workspace is aligned to 4.
template <int N>
std::size_t prime_search_workspace_size(std::uint32_t interval_count);

template <int N>
cudaError_t search_primes(const PrimeSearch& search, void* workspace, cudaStream_t stream);

}  // namespace nacre::engine::cuda
