// SPDX-License-Identifier: Apache-2.0
// The plain definitions of reflected 32-bit CRCs, templates of the polynomial. The fast code must
// give the same results. A CRC starts from all ones and is inverted at the end.
#pragma once

#include <array>
#include <cstdint>

#include "gpu_engine/base/bytes.h"

namespace nacre::engine {

// Bit i of a reflected polynomial is the coefficient of x^(31-i); x^32 is implied.
inline constexpr std::uint32_t crc32_polynomial_reflected = 0xedb88320;
inline constexpr std::uint32_t crc32c_polynomial_reflected = 0x82f63b78;

// value * x modulo the polynomial: the effect of one more zero bit on a remainder.
template <std::uint32_t polynomial>
constexpr std::uint32_t crc_times_x(std::uint32_t value) {
  return (value >> 1) ^ ((value & 1) != 0 ? polynomial : 0);
}

// table[i]: the remainder of the single byte i.
template <std::uint32_t polynomial>
constexpr std::array<std::uint32_t, 256> make_crc_table() {
  std::array<std::uint32_t, 256> table = {};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t remainder = byte;
    for (int bit = 0; bit < 8; ++bit)
      remainder = crc_times_x<polynomial>(remainder);
    table[byte] = remainder;
  }
  return table;
}

// The CRC of everything that crc stands for and then bytes. crc is 0 at the beginning, so that a
// message may come in pieces. Any size, also 0. Pure, thread-safe.
//
// Sarwate 1988: the remainder of one more byte is
//   crc' = table[(crc ^ byte) & 0xff] ^ (crc >> 8),   table[i] = remainder of byte i alone.
template <std::uint32_t polynomial>
std::uint32_t crc_reference(std::uint32_t crc, ByteView bytes) {
  static constexpr std::array<std::uint32_t, 256> table = make_crc_table<polynomial>();
  crc = ~crc;
  for (const Byte byte : bytes)
    crc = table[(crc ^ byte) & 0xff] ^ (crc >> 8);
  return ~crc;
}

}  // namespace nacre::engine
