// SPDX-License-Identifier: Apache-2.0
// Powers modulo a number: with secret exponents by one thread (raise), with public exponents and
// numbers of 2 N limbs by two lanes (raise_public).
//
// The plain loop squares once for each bit of the exponent, and multiplies if the bit is set. For
// 1,024 bits these are some 1,536 multiplications, whose order reveals the exponent. raise()
// instead takes four bits of the exponent at a time, a window. For each window it multiplies once,
// by an entry of a table of powers, and reads all entries of the table to select that one. That is
// 1,024 squarings, 256 products and 14 for the table: 1,294 multiplications of 2,080 products each,
// whatever the bits are. Windows of 5 bits would take 1,259, but a table twice as large.
//
// Each function is one loop around one multiplication, since the unrolled multiplication is long.
// Each step prepares the operands before it, and stores the result after it.
//
// The multiplication by two lanes: the low lane has the N low limbs, the high lane the N high
// limbs, and each runs the rows of montgomery.cuh on its half. In each row they exchange two words:
// the factor for the modulus, which the low lane computes, and the word that the shift moves from
// the high half into the low half. Carries above the N words of the low lane's sum (at most 3) stay
// in the low lane until all rows are done.
//
// Lanes: is_low(); from_low(word) and from_high(word), which return in both lanes the word of the
// low or the high lane; meet(), after which each lane sees what the other stored. On a device these
// are shuffles and a barrier; in tests a lane is a thread.
#pragma once

#include "gpu_engine/cuda/kernels/montgomery.cuh"

namespace nacre::engine::cuda {

// Bits [at, at + W) of an exponent of N limbs.
template <int N, int W>
NACRE_BOTH_SIDES std::uint32_t exponent_digit(const std::uint32_t* exponent, std::uint32_t at) {
  const std::uint32_t limb = at / 32;
  const std::uint64_t above = limb + 1 < N ? exponent[limb + 1] : 0;
  const std::uint64_t both = above << 32 | (limb < N ? exponent[limb] : 0);
  return static_cast<std::uint32_t>(both >> (at % 32)) & ((1u << W) - 1);
}

// to <- the entry with this index of a table of 2^W entries of N limbs. Reads all entries, so that
// addresses do not depend on the index.
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

// a <- number^exponent mod m, below m. number: 2 N limbs, below R^2; r_squared: R^2 mod m;
// exponent: N limbs, of which the low exponent_bits are used. Scratch memory: column (N limbs) and
// table (2^W * N limbs).
template <int N, int W, typename Number>
NACRE_BOTH_SIDES void raise(Limbs<N>& a, const LimbColumn& number, const std::uint32_t* r_squared,
                            const std::uint32_t* exponent, std::uint32_t exponent_bits,
                            const LimbColumn& column, const LimbColumn& table, const Number& m,
                            std::uint32_t m_inverse) {
  enum Step : std::uint32_t { one, r_cubed, high_part, low_part, powers };
  constexpr std::uint32_t entry_count = 1u << W;
  const std::uint32_t digit_count = (exponent_bits + W - 1) / W;
  // The first digit costs no multiplication. The last step removes R from the product.
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

// out <- the number of 2 N limbs that has these residues mod p and mod q (Garner's formula). The
// residues are below p and q, and p and q below R. p_inverse: -1 / p mod 2^32; p_r_squared: R^2 mod
// p; q_inverse: 1 / q mod p. column: scratch memory of N limbs.
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

// a <- a - m, where each lane has half of a and of m. Returns all ones in both lanes if the whole a
// was below the whole m, else 0.
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

// Like multiply(), where each lane has half of a and of m; b is the whole number, which both lanes
// read.
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

// a <- this lane's half of number^exponent mod m. number: 2 N limbs. exponent: odd, at least 3. m:
// this lane's half. column and base_column: scratch memory of 2 N limbs each, which both lanes
// share.
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
  // First number * R, then a square for each bit and a product for each bit that is set.
  bool squares = false;
  copy_limbs(a, r_squared + own);
  NACRE_NO_UNROLL
  for (bool first = true;; first = false) {
    if (squares) copy_limbs(own_column, a);
    lanes.meet();
    // The last factor is the number without R, so this product removes R.
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

// Whether `mine` is true in both lanes. Both lanes get the same answer.
template <typename Lanes>
NACRE_BOTH_SIDES bool both(bool mine, const Lanes& lanes) {
  const std::uint32_t word = mine ? 1 : 0;
  return (lanes.from_low(word) & lanes.from_high(word)) != 0;
}

}  // namespace nacre::engine::cuda
