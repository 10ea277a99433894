// SPDX-License-Identifier: Apache-2.0
// Montgomery multiplication of numbers of 2 N limbs by two lanes: the low one has the N low limbs.
//
// Each lane runs the rows of montgomery.cuh on its half. Once a row they exchange words: the
// multiple of the modulus, which the low lane finds, and the word that a shift takes out of the
// high half into the low one. What the low lane's sum has above its N words stays there (at most 3)
// until the rows are done.
//
// Lanes: is_low(), from_low(word) and from_high(word), which give both lanes the word of one. On a
// device that is a shuffle; tests run a lane a thread.
#pragma once

#include "gpu_engine/cuda/kernels/montgomery.cuh"

namespace nacre::engine::cuda {

// a - m; returns all ones in both lanes when the whole a is below the whole m. high: of the word
// above a, the same in both lanes.
template <int N, typename Number, typename Lanes>
NACRE_BOTH_SIDES std::uint32_t subtract_pair(Limbs<N>& a, const Number& m, const Lanes& lanes) {
  a.at[0] = sub_cc(a.at[0], m[0]);
  NACRE_UNROLL
  for (int j = 1; j < N; ++j)
    a.at[j] = subc_cc(a.at[j], m[j]);
  const std::uint32_t own = borrow_mask();
  const std::uint32_t borrow = lanes.from_low(own) & (lanes.is_low() ? 0 : 1);
  a.at[0] = sub_cc(a.at[0], borrow);
  NACRE_UNROLL
  for (int j = 1; j < N; ++j)
    a.at[j] = subc_cc(a.at[j], 0);
  const std::uint32_t below = borrow_mask();
  return lanes.from_high(own | below);
}

// As multiply(), of halves; b is the whole number, which both lanes read.
template <int N, typename Number, typename Lanes>
NACRE_BOTH_SIDES void multiply_pair(Limbs<N>& a, const LimbColumn& b, const Number& m,
                                    std::uint32_t m_inverse, const Lanes& lanes) {
  using Sum = Accumulator<N>;
  const std::uint32_t low_mask = lanes.is_low() ? ~std::uint32_t{0} : 0;
  Sum sum;
  sum.clear();
  NACRE_NO_UNROLL
  for (std::uint32_t i = 0; i < 2 * N; i += 2) {
    Sum::add_product(sum.even, sum.odd, sum.top, a, b[i]);
    Sum::add_multiple(sum.even, sum.odd, sum.top, m, lanes.from_low(sum.even.at[0] * m_inverse));
    Sum::add_above(sum.odd, sum.top, lanes.from_high(sum.even.at[0]) & low_mask);
    Sum::add_product(sum.odd, sum.even, sum.top, a, b[i + 1]);
    Sum::add_multiple(sum.odd, sum.even, sum.top, m, lanes.from_low(sum.odd.at[0] * m_inverse));
    Sum::add_above(sum.even, sum.top, lanes.from_high(sum.odd.at[0]) & low_mask);
  }
  sum.merge();
  const std::uint32_t carry = lanes.from_low(sum.top);
  sum.even.at[0] = add_cc(sum.even.at[0], carry & ~low_mask);
  NACRE_UNROLL
  for (int j = 1; j < N; ++j)
    sum.even.at[j] = addc_cc(sum.even.at[j], 0);
  sum.top = addc(sum.top, 0);
  const std::uint32_t high = lanes.from_high(sum.top);
  Limbs<N> less = sum.even;
  const std::uint32_t keep = subtract_pair(less, m, lanes) & (high - 1);
  NACRE_UNROLL
  for (int j = 0; j < N; ++j)
    a.at[j] = choose(keep, sum.even.at[j], less.at[j]);
}

}  // namespace nacre::engine::cuda
