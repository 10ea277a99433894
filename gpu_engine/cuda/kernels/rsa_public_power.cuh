// SPDX-License-Identifier: Apache-2.0
// Powers with public exponents of numbers of 2 N limbs, by two lanes each.
#pragma once

#include "gpu_engine/cuda/kernels/montgomery_pair.cuh"
#include "gpu_engine/cuda/kernels/rsa_limbs.cuh"

namespace nacre::engine::cuda {

// A lane's part of number^exponent mod m. exponent is odd and 3 or more. column and base_column: 2
// N limbs each to work with, both lanes'. Everything that lanes write there they read in common.
template <int N, typename Number, typename Lanes>
NACRE_BOTH_SIDES void raise_public(Limbs<N>& a, const LimbColumn& number,
                                   const std::uint32_t* r_squared, std::uint64_t exponent,
                                   const LimbColumn& column, const LimbColumn& base_column,
                                   const Number& m, std::uint32_t m_inverse, const Lanes& lanes) {
  const std::uint32_t own = lanes.is_low() ? 0 : N;
  const LimbColumn own_column = {&column[own], column.stride};
  const LimbColumn own_base = {&base_column[own], base_column.stride};
  int bit = 63;
  while ((exponent >> bit & 1) == 0)
    --bit;
  // First to number * R, then a square a bit and a product a bit that is set.
  bool squares = false;
  copy_limbs(a, r_squared + own);
  NACRE_NO_UNROLL
  for (bool first = true;; first = false) {
    if (squares) copy_limbs(own_column, a);
    lanes.meet();
    // The last factor is without R, and takes it from the product.
    multiply_pair(a,
                  squares             ? column
                  : first || bit == 0 ? number
                                      : base_column,
                  m, m_inverse, lanes);
    lanes.meet();
    if (first) copy_limbs(own_base, a);
    if (!squares && bit == 0) return;
    squares = !squares || (exponent >> bit & 1) == 0;
    if (squares) --bit;
  }
}

// Whether both lanes find what they say; the same in both.
template <typename Lanes>
NACRE_BOTH_SIDES bool both(bool mine, const Lanes& lanes) {
  const std::uint32_t word = mine ? 1 : 0;
  return (lanes.from_low(word) & lanes.from_high(word)) != 0;
}

}  // namespace nacre::engine::cuda
