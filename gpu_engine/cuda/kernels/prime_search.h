// SPDX-License-Identifier: Apache-2.0
// Random primes in batches, for RSA keys: random starts, a sieve over the 64 candidates of each,
// one round of Miller-Rabin for the candidates that are left, and 31 more for those that pass.
// After each of these steps only the candidates that are left go on, in a list without gaps. The 31
// are one step: of random numbers of such a length that pass one round all but one in many millions
// are prime.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "gpu_engine/cuda/kernels/prime_test.cuh"

namespace nacre::engine::cuda {

inline constexpr std::uint32_t miller_rabin_round_count = 32;

// All pointers are to device memory. Everything that is written there is secret: the caller wipes
// it.
struct PrimeSearch {
  const ChaChaKey* key;  // random, for this search alone
  const SmallPrime* small_primes;
  std::uint32_t small_prime_count;
  std::uint32_t bits;  // of the primes: at most 32 N, and more than 64
  std::uint32_t interval_count;

  // Found primes: at most one of each interval, in no order. When primes are so near to each other
  // that they cannot make a key, only one of them is given.
  std::uint32_t* found_count;
  std::uint32_t* primes;  // interval_count * N limbs, each number's contiguous
  std::uint32_t* failed;  // for each found prime: not 0 when a later round found it composite
};

template <int N>
std::size_t prime_search_workspace_size(std::uint32_t interval_count);

template <int N>
cudaError_t search_primes(const PrimeSearch& search, void* workspace, cudaStream_t stream);

}  // namespace nacre::engine::cuda
