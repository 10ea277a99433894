// SPDX-License-Identifier: Apache-2.0
// From big-endian bytes to limbs and back, and where threads keep numbers.
#pragma once

#include "gpu_engine/cuda/kernels/montgomery.cuh"
#include "gpu_engine/cuda/kernels/tasks.h"

namespace nacre::engine::cuda {

// Limb i of the number that size bytes hold; 0 beyond them.
NACRE_BOTH_SIDES std::uint32_t load_limb(const Byte* bytes, std::uint32_t size, std::uint32_t i) {
  std::uint32_t limb = 0;
  for (std::uint32_t k = 0; k < 4; ++k) {
    const std::uint32_t place = 4 * i + k;
    if (place < size) limb |= std::uint32_t{bytes[size - 1 - place]} << (8 * k);
  }
  return limb;
}

NACRE_BOTH_SIDES void store_limb(Byte* bytes, std::uint32_t size, std::uint32_t i,
                                 std::uint32_t limb) {
  for (std::uint32_t k = 0; k < 4; ++k) {
    const std::uint32_t place = 4 * i + k;
    if (place < size) bytes[size - 1 - place] = static_cast<Byte>(limb >> (8 * k));
  }
}

template <int N>
NACRE_BOTH_SIDES void copy_limbs(const LimbColumn& to, const Limbs<N>& from) {
  NACRE_UNROLL
  for (int j = 0; j < N; ++j)
    to[j] = from.at[j];
}

template <int N, typename From>
NACRE_BOTH_SIDES void copy_limbs(Limbs<N>& to, const From& from) {
  NACRE_UNROLL
  for (int j = 0; j < N; ++j)
    to.at[j] = from[j];
}

#if defined(__CUDACC__)
// A modulus of up to 48 limbs stays in registers, which a longer one would not leave for the sums:
// it lies in shared memory, whose 32 words a clock the products need half of.
template <int N>
constexpr bool modulus_in_registers = N <= 48;
#endif

}  // namespace nacre::engine::cuda
