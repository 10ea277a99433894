// SPDX-License-Identifier: Apache-2.0
// Numbers of N limbs of 32 bits, their sums and products with carries, and their Montgomery
// multiplication by one thread (CIOS; Koç, Acar, Kaliski, IEEE Micro 1996). R is 2^(32 * N).
// rsa_power.cuh has the multiplication by two threads.
//
// The plain loop:
//
//   for (i = 0; i < N; ++i) {                     // a row
//     sum += a * b[i];
//     sum += m * (sum[0] * m_inverse mod 2^32);   // makes the lowest word zero
//     sum >>= 32;
//   }
//   if (sum >= m) sum -= m;
//
// Each of the 2 N products of a row is 64 bits wide. To add them without splitting them, there are
// two accumulators: one for the products of even limbs (even[j] at word j), one for those of odd
// limbs (odd[j] at word j + 1). The shift by 32 bits exchanges their roles. So a product is one
// IMAD.WIDE with carry. A multiplication takes 2 N * N of these, and N for the multiples of m. An
// H200 does 7.6e12 a second, which gives 3.65e9 multiplications of 1,024 bits.
//
// A chain of carries begins with add_cc(), sub_cc() or mad_wide_cc(), which take no carry. It goes
// on with calls whose names have "c_", which take the carry and give a new one, and ends with
// addc() or borrow_mask(). Between these calls there may be no other chain and no branch: PTX keeps
// a carry in straight-line code only. So the loops over limbs must be unrolled, and nvcc does not
// unroll them under --Ofast-compile. A product and its two sums are one instruction if the low and
// the high word of the accumulator are a pair of registers. On the host the same calls keep the
// carry in a thread_local variable, so that tests can run there all that is built on them.
//
// Addresses, branches and time depend on sizes alone, never on the values of numbers.
#pragma once

#include <cstdint>

#include "gpu_engine/cuda/kernels/both_sides.h"
#include "gpu_engine/cuda/kernels/tasks.h"

namespace nacre::engine::cuda {

#if !defined(__CUDA_ARCH__)
inline thread_local std::uint32_t host_carry = 0;

inline std::uint32_t host_sum(std::uint64_t sum) {
  host_carry = static_cast<std::uint32_t>(sum >> 32);
  return static_cast<std::uint32_t>(sum);
}

inline std::uint32_t host_difference(std::uint32_t a, std::uint32_t b, std::uint32_t borrow) {
  const std::uint64_t difference = std::uint64_t{a} - b - borrow;
  host_carry = static_cast<std::uint32_t>(difference >> 63);
  return static_cast<std::uint32_t>(difference);
}
#endif

NACRE_BOTH_SIDES std::uint32_t add_cc(std::uint32_t a, std::uint32_t b) {
#if defined(__CUDA_ARCH__)
  std::uint32_t sum;
  asm volatile("add.cc.u32 %0, %1, %2;" : "=r"(sum) : "r"(a), "r"(b));
  return sum;
#else
  return host_sum(std::uint64_t{a} + b);
#endif
}

NACRE_BOTH_SIDES std::uint32_t addc_cc(std::uint32_t a, std::uint32_t b) {
#if defined(__CUDA_ARCH__)
  std::uint32_t sum;
  asm volatile("addc.cc.u32 %0, %1, %2;" : "=r"(sum) : "r"(a), "r"(b));
  return sum;
#else
  return host_sum(std::uint64_t{a} + b + host_carry);
#endif
}

NACRE_BOTH_SIDES std::uint32_t addc(std::uint32_t a, std::uint32_t b) {
#if defined(__CUDA_ARCH__)
  std::uint32_t sum;
  asm volatile("addc.u32 %0, %1, %2;" : "=r"(sum) : "r"(a), "r"(b));
  return sum;
#else
  return a + b + host_carry;
#endif
}

NACRE_BOTH_SIDES std::uint32_t sub_cc(std::uint32_t a, std::uint32_t b) {
#if defined(__CUDA_ARCH__)
  std::uint32_t difference;
  asm volatile("sub.cc.u32 %0, %1, %2;" : "=r"(difference) : "r"(a), "r"(b));
  return difference;
#else
  return host_difference(a, b, 0);
#endif
}

NACRE_BOTH_SIDES std::uint32_t subc_cc(std::uint32_t a, std::uint32_t b) {
#if defined(__CUDA_ARCH__)
  std::uint32_t difference;
  asm volatile("subc.cc.u32 %0, %1, %2;" : "=r"(difference) : "r"(a), "r"(b));
  return difference;
#else
  return host_difference(a, b, host_carry);
#endif
}

// All ones when the chain of differences borrowed, else 0.
NACRE_BOTH_SIDES std::uint32_t borrow_mask() {
#if defined(__CUDA_ARCH__)
  std::uint32_t mask;
  asm volatile("subc.u32 %0, 0, 0;" : "=r"(mask));
  return mask;
#else
  return std::uint32_t{0} - host_carry;
#endif
}

// high:low = a * b + add_high:add_low. low and high may be the same variables as add_low and
// add_high.
NACRE_BOTH_SIDES void mad_wide_cc(std::uint32_t& low, std::uint32_t& high, std::uint32_t a,
                                  std::uint32_t b, std::uint32_t add_low, std::uint32_t add_high) {
#if defined(__CUDA_ARCH__)
  std::uint32_t l;
  std::uint32_t h;
  asm volatile("mad.lo.cc.u32 %0, %2, %3, %4;\n\tmadc.hi.cc.u32 %1, %2, %3, %5;"
               : "=&r"(l), "=r"(h)
               : "r"(a), "r"(b), "r"(add_low), "r"(add_high));
  low = l;
  high = h;
#else
  const std::uint64_t product = std::uint64_t{a} * b;
  low = host_sum(std::uint64_t{add_low} + static_cast<std::uint32_t>(product));
  high = host_sum(std::uint64_t{add_high} + (product >> 32) + host_carry);
#endif
}

// The same, plus the carry of the call before.
NACRE_BOTH_SIDES void madc_wide_cc(std::uint32_t& low, std::uint32_t& high, std::uint32_t a,
                                   std::uint32_t b, std::uint32_t add_low, std::uint32_t add_high) {
#if defined(__CUDA_ARCH__)
  std::uint32_t l;
  std::uint32_t h;
  asm volatile("madc.lo.cc.u32 %0, %2, %3, %4;\n\tmadc.hi.cc.u32 %1, %2, %3, %5;"
               : "=&r"(l), "=r"(h)
               : "r"(a), "r"(b), "r"(add_low), "r"(add_high));
  low = l;
  high = h;
#else
  const std::uint64_t product = std::uint64_t{a} * b;
  low = host_sum(std::uint64_t{add_low} + static_cast<std::uint32_t>(product) + host_carry);
  high = host_sum(std::uint64_t{add_high} + (product >> 32) + host_carry);
#endif
}

// A number in memory whose limbs are `stride` words apart, so that the same limbs of neighbouring
// threads are adjacent.
struct LimbColumn {
  std::uint32_t* limbs;
  std::uint32_t stride;
  NACRE_BOTH_SIDES std::uint32_t& operator[](std::uint32_t i) const { return limbs[i * stride]; }
};

template <int N>
struct Limbs {
  std::uint32_t at[N];
  NACRE_BOTH_SIDES std::uint32_t operator[](int i) const { return at[i]; }
};

// A sum of products: even + odd * 2^32 + top * 2^(32 (N + 1)).
template <int N>
struct Accumulator {
  static_assert(N % 2 == 0);
  Limbs<N> even;
  Limbs<N> odd;
  std::uint32_t top;

  NACRE_BOTH_SIDES void clear() {
    NACRE_UNROLL
    for (int j = 0; j < N; ++j)
      even.at[j] = odd.at[j] = 0;
    top = 0;
  }

  // Shifts the sum down by a word, which exchanges the roles of the accumulators, and adds a * b.
  // odd: the accumulator that was `even` until now; its words move down by two (word 1 is added to
  // the new even[0], and top becomes word N). For every caller top is at most 4.
  template <typename Number>
  static NACRE_BOTH_SIDES void add_product(Limbs<N>& even, Limbs<N>& odd, std::uint32_t& top,
                                           const Number& a, std::uint32_t b) {
    even.at[0] = add_cc(even.at[0], odd.at[1]);
    NACRE_UNROLL
    for (int j = 0; j < N - 2; j += 2)
      madc_wide_cc(odd.at[j], odd.at[j + 1], a[j + 1], b, odd.at[j + 2], odd.at[j + 3]);
    madc_wide_cc(odd.at[N - 2], odd.at[N - 1], a[N - 1], b, 0, top);
    top = addc(0, 0);
    add_even(even, odd, top, a, b);
  }

  // Adds a * b, without a shift.
  template <typename Number>
  static NACRE_BOTH_SIDES void add_multiple(Limbs<N>& even, Limbs<N>& odd, std::uint32_t& top,
                                            const Number& a, std::uint32_t b) {
    mad_wide_cc(odd.at[0], odd.at[1], a[1], b, odd.at[0], odd.at[1]);
    NACRE_UNROLL
    for (int j = 2; j < N; j += 2)
      madc_wide_cc(odd.at[j], odd.at[j + 1], a[j + 1], b, odd.at[j], odd.at[j + 1]);
    top = addc(top, 0);
    add_even(even, odd, top, a, b);
  }

  // Adds to word N of the sum.
  static NACRE_BOTH_SIDES void add_above(Limbs<N>& odd, std::uint32_t& top, std::uint32_t word) {
    odd.at[N - 1] = add_cc(odd.at[N - 1], word);
    top = addc(top, 0);
  }

  // After an even number of rows: adds odd to even. Then even is the value, and top its word N.
  NACRE_BOTH_SIDES void merge() {
    even.at[0] = add_cc(even.at[0], odd.at[1]);
    NACRE_UNROLL
    for (int j = 1; j < N - 1; ++j)
      even.at[j] = addc_cc(even.at[j], odd.at[j + 1]);
    even.at[N - 1] = addc_cc(even.at[N - 1], 0);
    top = addc(top, 0);
  }

 private:
  template <typename Number>
  static NACRE_BOTH_SIDES void add_even(Limbs<N>& even, Limbs<N>& odd, std::uint32_t& top,
                                        const Number& a, std::uint32_t b) {
    mad_wide_cc(even.at[0], even.at[1], a[0], b, even.at[0], even.at[1]);
    NACRE_UNROLL
    for (int j = 2; j < N; j += 2)
      madc_wide_cc(even.at[j], even.at[j + 1], a[j], b, even.at[j], even.at[j + 1]);
    const std::uint32_t carry = addc(0, 0);
    add_above(odd, top, carry);
  }
};

// mask ? a : b, without a branch; mask is all ones or 0.
NACRE_BOTH_SIDES std::uint32_t choose(std::uint32_t mask, std::uint32_t a, std::uint32_t b) {
  return (a & mask) | (b & ~mask);
}

// Reduces high * 2^(32 N) + a, which must be below 2 m, modulo m into a.
template <int N, typename Number>
NACRE_BOTH_SIDES void reduce_once(Limbs<N>& a, std::uint32_t high, const Number& m) {
  Limbs<N> less;
  less.at[0] = sub_cc(a.at[0], m[0]);
  NACRE_UNROLL
  for (int j = 1; j < N; ++j)
    less.at[j] = subc_cc(a.at[j], m[j]);
  const std::uint32_t keep = borrow_mask() & (high - 1);
  NACRE_UNROLL
  for (int j = 0; j < N; ++j)
    a.at[j] = choose(keep, a.at[j], less.at[j]);
}

// a <- a + b mod m. a and b are below m.
template <int N, typename Other, typename Number>
NACRE_BOTH_SIDES void add_modulo(Limbs<N>& a, const Other& b, const Number& m) {
  a.at[0] = add_cc(a.at[0], b[0]);
  NACRE_UNROLL
  for (int j = 1; j < N; ++j)
    a.at[j] = addc_cc(a.at[j], b[j]);
  const std::uint32_t high = addc(0, 0);
  reduce_once(a, high, m);
}

// a <- a - b mod m. a and b are below m.
template <int N, typename Other, typename Number>
NACRE_BOTH_SIDES void subtract_modulo(Limbs<N>& a, const Other& b, const Number& m) {
  a.at[0] = sub_cc(a.at[0], b[0]);
  NACRE_UNROLL
  for (int j = 1; j < N; ++j)
    a.at[j] = subc_cc(a.at[j], b[j]);
  const std::uint32_t below = borrow_mask();
  a.at[0] = add_cc(a.at[0], m[0] & below);
  NACRE_UNROLL
  for (int j = 1; j < N; ++j)
    a.at[j] = addc_cc(a.at[j], m[j] & below);
}

// How many rows one turn of the loop computes. The shift by words renames registers, so every
// register is moved once a turn: long turns have fewer moves. But if the numbers leave no register
// free, long turns spill. Measured on an H200, 2026-11-22: private operations a second with turns
// of 2 and of 8 rows.
//
//   bits    2,048     3,072     4,096
//   2 rows  826,000   270,000   117,000
//   8 rows  919,000   311,000   112,000     (16 rows, 2,048 bits: 926,000)
template <int N>
inline constexpr std::uint32_t rows_a_turn = N <= 48 ? 8 : 2;

template <int N, typename Number>
NACRE_BOTH_SIDES void add_two_rows(Accumulator<N>& sum, const Limbs<N>& a, std::uint32_t b_low,
                                   std::uint32_t b_high, const Number& m, std::uint32_t m_inverse) {
  using Sum = Accumulator<N>;
  Sum::add_product(sum.even, sum.odd, sum.top, a, b_low);
  Sum::add_multiple(sum.even, sum.odd, sum.top, m, sum.even.at[0] * m_inverse);
  Sum::add_product(sum.odd, sum.even, sum.top, a, b_high);
  Sum::add_multiple(sum.odd, sum.even, sum.top, m, sum.odd.at[0] * m_inverse);
}

// a <- a * b / R mod m, below m. One of a and b must be below m, the other below R. m is odd.
// m_inverse: -1 / m mod 2^32.
template <int N, typename Number>
NACRE_BOTH_SIDES void multiply(Limbs<N>& a, const LimbColumn& b, const Number& m,
                               std::uint32_t m_inverse) {
  Accumulator<N> sum;
  sum.clear();
  constexpr std::uint32_t row_count = N < rows_a_turn<N> ? N : rows_a_turn<N>;
  static_assert(N % row_count == 0);
  NACRE_NO_UNROLL
  for (std::uint32_t i = 0; i < N; i += row_count) {
    NACRE_UNROLL
    for (std::uint32_t k = 0; k < row_count; k += 2)
      add_two_rows(sum, a, b[i + k], b[i + k + 1], m, m_inverse);
  }
  sum.merge();
  reduce_once(sum.even, sum.top, m);
  a = sum.even;
}

// Returns a * (b_high:b_low) / 2^64 mod m; below m if a is.
template <int N, typename Number>
NACRE_BOTH_SIDES Limbs<N> multiply_short(const Limbs<N>& a, std::uint32_t b_low,
                                         std::uint32_t b_high, const Number& m,
                                         std::uint32_t m_inverse) {
  Accumulator<N> sum;
  sum.clear();
  add_two_rows(sum, a, b_low, b_high, m, m_inverse);
  sum.merge();
  reduce_once(sum.even, sum.top, m);
  return sum.even;
}

// out <- a * b + c. out has 2 N limbs, the others N.
template <int N>
NACRE_BOTH_SIDES void multiply_add(const LimbColumn& out, const Limbs<N>& a, const LimbColumn& b,
                                   const LimbColumn& c) {
  using Sum = Accumulator<N>;
  Sum sum;
  sum.clear();
  std::uint32_t carry = 0;
  NACRE_NO_UNROLL
  for (std::uint32_t i = 0; i < N; i += 2) {
    Sum::add_product(sum.even, sum.odd, sum.top, a, b[i]);
    std::uint32_t word = add_cc(sum.even.at[0], c[i]);
    std::uint32_t high = addc(0, 0);
    out[i] = add_cc(word, carry);
    carry = addc(high, 0);
    Sum::add_product(sum.odd, sum.even, sum.top, a, b[i + 1]);
    word = add_cc(sum.odd.at[0], c[i + 1]);
    high = addc(0, 0);
    out[i + 1] = add_cc(word, carry);
    carry = addc(high, 0);
  }
  sum.merge();
  out[N] = add_cc(sum.even.at[0], carry);
  NACRE_UNROLL
  for (int j = 1; j < N; ++j)
    out[N + j] = addc_cc(sum.even.at[j], 0);
}

// Limb i of the big-endian number in size bytes; 0 for limbs past them.
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
// A modulus of up to 48 limbs stays in registers. A longer one would leave no registers for the
// sums, so it lies in shared memory. That delivers 32 words a cycle, twice what the products need.
template <int N>
constexpr bool modulus_in_registers = N <= 48;
#endif

}  // namespace nacre::engine::cuda
