// SPDX-License-Identifier: Apache-2.0
// Estimates from the counts of symbols how many bits entropy coding needs for them. The arithmetic
// is in integers, so that a sum is the same in any order and on any processor: encoders on
// different processors make the same choices.
#pragma once

#include <bit>
#include <cstdint>
#include <span>

namespace nacre::engine::gdeflate {

// Costs are counted in units of 2^-11 bits. The cost of a page of 65,536 items fits into 32 bits.
inline constexpr unsigned cost_fraction_bits = 11;
inline constexpr std::uint32_t cost_of_a_bit = 1u << cost_fraction_bits;

// A table for logarithm(): log2 of 1 + i / 256, taken at the middle of each step (but at its
// beginning for i = 0).
struct LogarithmTable {
  static constexpr unsigned fraction_bits = 8;
  std::uint16_t values[1u << fraction_bits];
};

// Finds each logarithm bit by bit: squaring doubles it, and if the square reaches 2 the next bit is
// set and the square halved.
constexpr LogarithmTable make_logarithm_table() {
  constexpr unsigned scale_bits = 31;
  LogarithmTable table{};  // powers of two are exact: the first value stays 0
  for (std::uint32_t i = 1; i < 1u << LogarithmTable::fraction_bits; ++i) {
    std::uint64_t x = ((std::uint64_t{1} << LogarithmTable::fraction_bits) + i) * 2 + 1;
    x <<= scale_bits - LogarithmTable::fraction_bits - 1;
    std::uint32_t bits = 0;
    for (unsigned place = 0; place <= cost_fraction_bits; ++place) {
      x = x * x >> scale_bits;
      const std::uint64_t bit = x >> (scale_bits + 1);
      bits = bits << 1 | static_cast<std::uint32_t>(bit);
      x >>= bit;
    }
    table.values[i] = static_cast<std::uint16_t>((bits + 1) >> 1);
  }
  return table;
}

// log2(value) in units of a cost; value >= 1. Powers of two are exact. The error is below 0.006
// just above a power of two, elsewhere below 0.003.
inline std::uint32_t logarithm(std::uint32_t value) {
  static constexpr LogarithmTable table = make_logarithm_table();
  const int shift = std::countl_zero(value);
  const std::uint32_t fraction = value << shift << 1 >> (32 - LogarithmTable::fraction_bits);
  return static_cast<std::uint32_t>(31 - shift) * cost_of_a_bit + table.values[fraction];
}

// The cost of all symbols together: each costs minus the logarithm of its share.
inline std::uint32_t entropy_cost(std::span<const std::uint32_t> counts) {
  std::uint32_t sum = 0;
  std::uint32_t cost = 0;  // modulo 2^32, as long as it is incomplete
  for (const std::uint32_t count : counts) {
    if (count == 0) continue;
    sum += count;
    cost -= count * logarithm(count);
  }
  return sum == 0 ? 0 : cost + sum * logarithm(sum);
}

}  // namespace nacre::engine::gdeflate
