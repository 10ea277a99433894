// SPDX-License-Identifier: Apache-2.0
// Random starts, and the sieve and the test for the numbers from a start on. The starts come from
// the ChaCha20 block function (RFC 8439, 2.3): under a secret key its blocks cannot be told from
// random ones.
//
// All candidates are 3 mod 4. Then (n - 1) / 2 is odd, and a round of Miller-Rabin only asks
// whether one power is 1 or -1. The time and the addresses of a round depend only on the size of
// the number, and so do the addresses that the sieve reads.
#pragma once

#include <cstdint>

#include "gpu_engine/cuda/kernels/montgomery.cuh"

namespace nacre::engine::cuda {

struct ChaChaKey {
  std::uint32_t words[8];
};

struct ChaChaBlock {
  std::uint32_t words[16];
};

NACRE_BOTH_SIDES std::uint32_t rotate_left(std::uint32_t word, int by) {
  return word << by | word >> (32 - by);
}

NACRE_BOTH_SIDES void quarter_round(std::uint32_t& a, std::uint32_t& b, std::uint32_t& c,
                                    std::uint32_t& d) {
  a += b;
  d = rotate_left(d ^ a, 16);
  c += d;
  b = rotate_left(b ^ c, 12);
  a += b;
  d = rotate_left(d ^ a, 8);
  c += d;
  b = rotate_left(b ^ c, 7);
}

NACRE_BOTH_SIDES ChaChaBlock chacha20_block(const ChaChaKey& key, std::uint32_t counter,
                                            std::uint32_t nonce_0, std::uint32_t nonce_1,
                                            std::uint32_t nonce_2) {
  const std::uint32_t start[16] = {0x61707865,   0x3320646e,   0x79622d32,   0x6b206574,
                                   key.words[0], key.words[1], key.words[2], key.words[3],
                                   key.words[4], key.words[5], key.words[6], key.words[7],
                                   counter,      nonce_0,      nonce_1,      nonce_2};
  ChaChaBlock block;
  std::uint32_t* const w = block.words;
  for (int i = 0; i < 16; ++i)
    w[i] = start[i];
  for (int round = 0; round < 10; ++round) {
    quarter_round(w[0], w[4], w[8], w[12]);
    quarter_round(w[1], w[5], w[9], w[13]);
    quarter_round(w[2], w[6], w[10], w[14]);
    quarter_round(w[3], w[7], w[11], w[15]);
    quarter_round(w[0], w[5], w[10], w[15]);
    quarter_round(w[1], w[6], w[11], w[12]);
    quarter_round(w[2], w[7], w[8], w[13]);
    quarter_round(w[3], w[4], w[9], w[14]);
  }
  for (int i = 0; i < 16; ++i)
    w[i] += start[i];
  return block;
}

// The candidates of one start are start + 4 k, for k below this.
inline constexpr std::uint32_t interval_length = 64;

// An odd prime below 2^16, and the numbers with which the sieve divides by it.
struct SmallPrime {
  std::uint32_t prime;
  std::uint32_t negative_inverse;  // -1 / prime mod 2^32
  std::uint32_t factor;            // -R / 4 mod prime, for R of the starts' limbs
};

// Which of the start's candidates the prime divides: bit k for start + 4 k. start: N limbs.
//
// From the lowest limb up it computes rest = (rest + limb) / 2^32 mod prime; each division adds the
// multiple of the prime that makes the lowest word zero. At the end rest is start / R mod prime.
template <int N>
NACRE_BOTH_SIDES std::uint64_t find_multiples(const SmallPrime& small, const std::uint32_t* start) {
  std::uint32_t rest = 0;
  NACRE_NO_UNROLL
  for (int i = 0; i < N; ++i) {
    const std::uint64_t sum = std::uint64_t{rest} + start[i];
    const std::uint32_t multiple = static_cast<std::uint32_t>(sum) * small.negative_inverse;
    rest = static_cast<std::uint32_t>((sum + std::uint64_t{multiple} * small.prime) >> 32);
  }
  std::uint64_t multiples = 0;
  for (std::uint32_t k = rest * small.factor % small.prime; k < interval_length; k += small.prime)
    multiples |= std::uint64_t{1} << k;
  return multiples;
}

// Limb i of a start: a random number of that many bits that is 3 mod 4 and has its two highest bits
// set (so that a product of two primes has exactly twice as many bits). random: a random word.
NACRE_BOTH_SIDES std::uint32_t shape_start(std::uint32_t random, std::uint32_t i,
                                           std::uint32_t bits) {
  std::uint32_t limb = random;
  if (32 * i >= bits) return 0;
  if (32 * (i + 1) > bits) limb &= (std::uint32_t{1} << (bits % 32)) - 1;
  for (const std::uint32_t set : {bits - 1, bits - 2}) {
    if (set / 32 == i) limb |= std::uint32_t{1} << (set % 32);
  }
  return i == 0 ? limb | 3 : limb;
}

// R mod n, for an n of that many bits whose two highest are set.
template <int N, typename Number>
NACRE_BOTH_SIDES Limbs<N> r_modulo(const Number& n, std::uint32_t bits) {
  Limbs<N> a;
  NACRE_UNROLL
  for (std::uint32_t j = 0; j < N; ++j)
    a.at[j] = bits / 32 == j ? std::uint32_t{1} << (bits % 32) : 0;
  // 2^bits - n, where 2^(32 N) is 0.
  a.at[0] = sub_cc(a.at[0], n[0]);
  NACRE_UNROLL
  for (int j = 1; j < N; ++j)
    a.at[j] = subc_cc(a.at[j], n[j]);
  NACRE_NO_UNROLL
  for (std::uint32_t i = bits; i < 32 * N; ++i) {
    const Limbs<N> same = a;
    add_modulo(a, same, n);
  }
  return a;
}

// A round of Miller-Rabin for n, which is 3 mod 4 and has that many bits, the two highest set. The
// base is (base_high:base_low) / 2^64 mod n. n_limbs: the limbs of n in memory, where they can be
// indexed; n_inverse: -1 / n mod 2^32; column: scratch memory of N limbs.
template <int N, typename Number>
NACRE_BOTH_SIDES bool may_be_prime(const Number& n, const LimbColumn& n_limbs,
                                   std::uint32_t n_inverse, std::uint32_t bits,
                                   std::uint32_t base_low, std::uint32_t base_high,
                                   const LimbColumn& column) {
  Limbs<N> a = r_modulo<N>(n, bits);
  NACRE_NO_UNROLL
  for (std::uint32_t bit = bits - 1; bit > 0; --bit) {
    copy_limbs(column, a);
    multiply(a, column, n, n_inverse);
    const Limbs<N> raised = multiply_short(a, base_low, base_high, n, n_inverse);
    const std::uint32_t is_set = 0u - (n_limbs[bit / 32] >> (bit % 32) & 1);
    NACRE_UNROLL
    for (int j = 0; j < N; ++j)
      a.at[j] = choose(is_set, raised.at[j], a.at[j]);
  }
  // 1 or -1, times R.
  const Limbs<N> one = r_modulo<N>(n, bits);
  std::uint32_t from_one = 0;
  NACRE_UNROLL
  for (int j = 0; j < N; ++j)
    from_one |= a.at[j] ^ one.at[j];
  std::uint32_t from_minus_one = 0;
  a.at[0] = add_cc(a.at[0], one.at[0]);
  NACRE_UNROLL
  for (int j = 1; j < N; ++j)
    a.at[j] = addc_cc(a.at[j], one.at[j]);
  const std::uint32_t carry = addc(0, 0);
  NACRE_UNROLL
  for (int j = 0; j < N; ++j)
    from_minus_one |= a.at[j] ^ n[j];
  return from_one == 0 || (from_minus_one | carry) == 0;
}

}  // namespace nacre::engine::cuda
