// SPDX-License-Identifier: Apache-2.0
// What counts of symbols cost in bits, estimated by their entropy.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <span>

namespace nacre::engine::gdeflate {

// log2(value) within 0.003, value >= 1: the power of two and a table of what is above it.
class Logarithm {
 public:
  static float of(std::uint32_t value) {
    static const Logarithm logarithm;
    const int shift = std::countl_zero(value);
    const std::uint32_t fraction = value << shift << 1 >> (32 - fraction_bits);
    return static_cast<float>(31 - shift) + logarithm.table_[fraction];
  }

 private:
  static constexpr unsigned fraction_bits = 8;
  Logarithm() {
    for (std::size_t i = 0; i < table_.size(); ++i)
      table_[i] =
          std::log2(1.0f + (static_cast<float>(i) + 0.5f) / static_cast<float>(table_.size()));
    table_[0] = 0;  // powers of two are exact
  }
  std::array<float, 1u << fraction_bits> table_;
};

// Bits of all symbols together, each at the logarithm of its share.
inline float entropy_bits(std::span<const std::uint32_t> counts) {
  std::uint32_t sum = 0;
  float bits = 0;
  for (const std::uint32_t count : counts) {
    if (count == 0) continue;
    sum += count;
    bits -= static_cast<float>(count) * Logarithm::of(count);
  }
  return sum == 0 ? 0 : bits + static_cast<float>(sum) * Logarithm::of(sum);
}

}  // namespace nacre::engine::gdeflate
