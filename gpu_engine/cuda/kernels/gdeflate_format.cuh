// SPDX-License-Identifier: Apache-2.0
// The GDeflate format for the kernels: the constants of codec/gdeflate/format.h, and the meaning of
// symbols computed instead of looked up. It also compiles for the host, where tests run the
// decoder.
#pragma once

#include <cstdint>

#include "gpu_engine/codec/gdeflate/format.h"
#include "gpu_engine/cuda/kernels/both_sides.h"

namespace nacre::engine::cuda::gdeflate {

using namespace nacre::engine::gdeflate;

// A length or distance is first + (mantissa << extra_bits) + the value of the extra bits. The
// mantissa has at most three bits.
struct SymbolValue {
  std::uint32_t mantissa;
  std::uint32_t extra_bits;

  NACRE_LANE_CODE std::uint32_t base(std::uint32_t first) const {
    return first + (mantissa << extra_bits);
  }
};

constexpr std::uint32_t first_distance = 1;

// The value of a length symbol, with `first` = match_size_min. index: counted from
// first_length_symbol.
NACRE_LANE_CODE SymbolValue length_value(std::uint32_t index) {
  if (index < 8) return {index, 0};
  if (index == length_symbol_count - 1) return {0, 16};
  return {4 + index % 4, index / 4 - 1};
}

// The value of a distance symbol, with `first` = first_distance.
NACRE_LANE_CODE SymbolValue distance_value(std::uint32_t symbol) {
  if (symbol < 4) return {symbol, 0};
  return {2 + symbol % 2, symbol / 2 - 1};
}

// Packs code_length_order[from … to - 1], five bits each.
consteval std::uint64_t pack_code_length_order(unsigned from, unsigned to) {
  std::uint64_t packed = 0;
  for (unsigned at = from; at < to; ++at)
    packed |= std::uint64_t{code_length_order[at]} << 5 * (at - from);
  return packed;
}
constexpr std::uint64_t code_length_order_low = pack_code_length_order(0, 10);
constexpr std::uint64_t code_length_order_high =
    pack_code_length_order(10, code_length_symbol_count);

// code_length_order[i].
NACRE_LANE_CODE std::uint32_t code_length_symbol_at(std::uint32_t i) {
  const std::uint64_t packed = i < 10 ? code_length_order_low : code_length_order_high;
  return static_cast<std::uint32_t>(packed >> 5 * (i % 10)) & 31;
}

}  // namespace nacre::engine::cuda::gdeflate
