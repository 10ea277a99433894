// SPDX-License-Identifier: Apache-2.0
// Powers modulo a number, with secret exponents: a fixed window, and a table of powers of which all
// entries are read each time.
//
// For 1,024 bits and windows of 4: 1,024 squarings, 256 products and 14 of the table, 1,294
// multiplications of 2,080 products each; windows of 5 take 1,259, but twice the bytes of table.
//
// Each function is one loop around one multiplication, which is long and unrolled: what a step
// multiplies is put in place before, and what it gives is put away after.
#pragma once

#include "gpu_engine/cuda/kernels/rsa_limbs.cuh"

namespace nacre::engine::cuda {

// Bits [at, at + W) of the exponent, of N limbs.
template <int N, int W>
NACRE_BOTH_SIDES std::uint32_t exponent_digit(const std::uint32_t* exponent, std::uint32_t at) {
  const std::uint32_t limb = at / 32;
  const std::uint64_t above = limb + 1 < N ? exponent[limb + 1] : 0;
  const std::uint64_t both = above << 32 | (limb < N ? exponent[limb] : 0);
  return static_cast<std::uint32_t>(both >> (at % 32)) & ((1u << W) - 1);
}

// to <- entry of the table, of 2^W entries of N limbs.
template <int N, int W>
NACRE_BOTH_SIDES void select_power(const LimbColumn& to, const LimbColumn& table,
                                   std::uint32_t entry) {
  NACRE_NO_UNROLL
  for (std::uint32_t j = 0; j < N; ++j) {
    std::uint32_t limb = 0;
    NACRE_UNROLL
    for (std::uint32_t k = 0; k < 1u << W; ++k) {
      const std::uint32_t mask = k == entry ? ~std::uint32_t{0} : 0;
      limb |= table[k * N + j] & mask;
    }
    to[j] = limb;
  }
}

// a <- number^exponent mod m, below m. number: 2 N limbs below R^2; r_squared: R^2 mod m;
// exponent: N limbs, exponent_bits of them to be looked at. column: N limbs to work with; table:
// 2^W * N.
template <int N, int W, typename Number>
NACRE_BOTH_SIDES void raise(Limbs<N>& a, const LimbColumn& number, const std::uint32_t* r_squared,
                            const std::uint32_t* exponent, std::uint32_t exponent_bits,
                            const LimbColumn& column, const LimbColumn& table, const Number& m,
                            std::uint32_t m_inverse) {
  enum Step : std::uint32_t { one, r_cubed, high_part, low_part, powers };
  constexpr std::uint32_t entry_count = 1u << W;
  const std::uint32_t digit_count = (exponent_bits + W - 1) / W;
  // The first digit costs no multiplication; the last step takes R from the product.
  const std::uint32_t first_square = powers + entry_count - 2;
  const std::uint32_t last = first_square + (digit_count - 1) * (W + 1);
  const LimbColumn second = {&table[N], table.stride};
  std::uint32_t digit_at = digit_count * W;
  std::uint32_t square_count = W;  // since the last product
  NACRE_NO_UNROLL
  for (std::uint32_t step = 0;; ++step) {
    if (step == one || step == last) {
      if (step == one) copy_limbs(a, r_squared);
      NACRE_NO_UNROLL
      for (std::uint32_t j = 0; j < N; ++j)
        column[j] = j == 0 ? 1 : 0;
    } else if (step == r_cubed) {
      copy_limbs(a, r_squared);
      copy_limbs(column, a);
    } else if (step == high_part || step == low_part) {
      // high R + low, times R: high R^3 / R + low R^2 / R.
      const std::uint32_t from = step == high_part ? N : 0;
      if (step == low_part) copy_limbs(a, r_squared);
      NACRE_NO_UNROLL
      for (std::uint32_t j = 0; j < N; ++j)
        column[j] = number[from + j];
    } else if (step >= first_square) {
      if (square_count < W) {
        copy_limbs(column, a);
        ++square_count;
      } else {
        digit_at -= W;
        select_power<N, W>(column, table, exponent_digit<N, W>(exponent, digit_at));
        square_count = 0;
      }
    }
    multiply(a, column, m, m_inverse);
    if (step == one) {
      copy_limbs(table, a);
    } else if (step == high_part) {
      copy_limbs(second, a);
    } else if (step == low_part) {
      add_modulo(a, second, m);
      copy_limbs(second, a);
      copy_limbs(column, a);
    } else if (step >= powers && step < first_square) {
      copy_limbs(LimbColumn{&table[(2 + step - powers) * N], table.stride}, a);
    } else if (step == last) {
      return;
    }
    if (step + 1 == first_square) {
      digit_at -= W;
      select_power<N, W>(column, table, exponent_digit<N, W>(exponent, digit_at));
      copy_limbs(a, column);
      square_count = 0;
    }
  }
}

// From the residues mod p and mod q to the number, of 2 N limbs (Garner). The residues are below p
// and q, and these below R. column: N limbs to work with.
template <int N, typename Number>
NACRE_BOTH_SIDES void recombine(const LimbColumn& out, const LimbColumn& p_residue,
                                const LimbColumn& q_residue, const Number& p,
                                std::uint32_t p_inverse, const std::uint32_t* p_r_squared,
                                const std::uint32_t* q, const std::uint32_t* q_inverse,
                                const LimbColumn& column) {
  enum Step { to_q_residue, to_p_residue, by_inverse, step_count };
  // out serves as memory before it is written.
  Limbs<N> a;
  NACRE_NO_UNROLL
  for (int step = 0; step < step_count; ++step) {
    if (step == to_q_residue) copy_limbs(a, q_residue);
    if (step == to_p_residue) copy_limbs(a, p_residue);
    const std::uint32_t* const factor = step == by_inverse ? q_inverse : p_r_squared;
    NACRE_NO_UNROLL
    for (std::uint32_t j = 0; j < N; ++j)
      column[j] = factor[j];
    multiply(a, column, p, p_inverse);
    if (step == to_q_residue) copy_limbs(out, a);
    // The difference mod p, times R.
    if (step == to_p_residue) subtract_modulo(a, out, p);
  }
  copy_limbs(column, a);
  copy_limbs(a, q);
  multiply_add(out, a, column, q_residue);
}

}  // namespace nacre::engine::cuda
