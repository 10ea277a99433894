// SPDX-License-Identifier: Apache-2.0
// Powers of x modulo a CRC's polynomial, and the binary matrices made of these powers, for
// checksum.cu. All are computed at compile time: 7 KiB for each polynomial.
#pragma once

#include <cstdint>

#include "gpu_engine/checksum/crc_reference.h"

namespace nacre::engine::cuda {

inline constexpr int crc_rows = 32;
inline constexpr int crc_row_bytes = 64;
inline constexpr int crc_batch_bytes = crc_rows * crc_row_bytes;
inline constexpr int crc_tile_bytes = 8192;
inline constexpr std::uint32_t crc_tile_factor_max = 8;
inline constexpr std::uint32_t crc_finish_threads = 128;
inline constexpr std::uint32_t crc_tile_powers = crc_finish_threads * crc_tile_factor_max;
inline constexpr int crc_column_tiles = 4;
inline constexpr std::uint32_t crc_one = 1u << 31;  // x^0 in reflected order

struct CrcWordPair {
  std::uint32_t low, high;
};

struct CrcTables {
  std::uint32_t polynomial;
  CrcWordPair data[crc_column_tiles][2][32];
  std::uint32_t fold[crc_column_tiles][32];
  std::uint32_t row_powers[crc_rows];          // x^(8 * 64 k)
  std::uint32_t tile_powers[crc_tile_powers];  // x^(8 * 8192 k)
  std::uint32_t largest_stride_power;          // x^(8 * 8192 * crc_tile_powers)
  std::uint32_t byte_powers[64];               // x^(8 * 2^k)
  std::uint32_t inverse_byte_powers[16];       // x^(-8 k)
};

template <std::uint32_t polynomial>
constexpr std::uint32_t crc_multiply(std::uint32_t a, std::uint32_t b) {
  std::uint32_t product = 0;
  for (std::uint32_t bit = crc_one; bit != 0; bit >>= 1) {
    if ((a & bit) != 0) product ^= b;
    b = crc_times_x<polynomial>(b);
  }
  return product;
}

template <std::uint32_t polynomial>
constexpr std::uint32_t crc_power(std::uint64_t exponent) {
  std::uint32_t power = crc_one, square = crc_one >> 1;
  for (; exponent != 0; exponent >>= 1) {
    if ((exponent & 1) != 0) power = crc_multiply<polynomial>(power, square);
    square = crc_multiply<polynomial>(square, square);
  }
  return power;
}

// Divides by x. That is possible because the constant term of the polynomial is 1.
template <std::uint32_t polynomial>
constexpr std::uint32_t crc_over_x(std::uint32_t value) {
  return (value & crc_one) != 0 ? (value ^ polynomial) << 1 | 1 : value << 1;
}

template <std::uint32_t polynomial>
constexpr CrcTables make_crc_tables() {
  CrcTables tables = {};
  tables.polynomial = polynomial;
  // A message's bits run from the lowest bit of byte 0 upwards. A bit that has e bits after it in
  // its row contributes x^(e + 32).
  std::uint32_t data_bits[8 * crc_row_bytes] = {};
  std::uint32_t power = crc_power<polynomial>(32);
  for (int bit = 8 * crc_row_bytes; bit-- > 0;) {
    data_bits[bit] = power;
    power = crc_times_x<polynomial>(power);
  }
  // Bit b of a remainder is x^(31 - b). It is multiplied by the power for the batch that follows.
  std::uint32_t fold_bits[32] = {};
  power = crc_power<polynomial>(8 * crc_batch_bytes);
  for (int bit = 32; bit-- > 0;) {
    fold_bits[bit] = power;
    power = crc_times_x<polynomial>(power);
  }
  for (int tile = 0; tile < crc_column_tiles; ++tile) {
    for (int lane = 0; lane < 32; ++lane) {
      // In each place add_parities() puts the count of column n at bit 8 (n mod 4) + n / 4. The
      // bits of the four places, each shifted up by twice the place, make the remainder.
      const int column = lane / 4, place = lane % 4;
      const int n = 2 * tile + column % 2;
      const int bit = 8 * (n % 4) + n / 4 + 2 * (column / 2);
      for (int half = 0; half < 2; ++half) {
        for (int i = 0; i < 32; ++i) {
          const int at = 128 * place + 64 * half + i;
          tables.data[tile][half][lane].low |= (data_bits[at] >> bit & 1) << i;
          tables.data[tile][half][lane].high |= (data_bits[at + 32] >> bit & 1) << i;
        }
      }
      for (int i = 0; i < 32; ++i) {
        if (i % 8 < 2) tables.fold[tile][lane] |= (fold_bits[i + 2 * place] >> bit & 1) << i;
      }
    }
  }
  const auto fill_powers = [](std::uint32_t* powers, std::uint32_t count, std::uint32_t step) {
    std::uint32_t next = crc_one;
    for (std::uint32_t i = 0; i < count; ++i) {
      powers[i] = next;
      next = crc_multiply<polynomial>(next, step);
    }
    return next;
  };
  fill_powers(tables.row_powers, crc_rows, crc_power<polynomial>(8 * crc_row_bytes));
  tables.largest_stride_power =
      fill_powers(tables.tile_powers, crc_tile_powers, crc_power<polynomial>(8 * crc_tile_bytes));
  power = crc_power<polynomial>(8);
  for (std::uint32_t& byte_power : tables.byte_powers) {
    byte_power = power;
    power = crc_multiply<polynomial>(power, power);
  }
  power = crc_one;
  for (std::uint32_t& inverse : tables.inverse_byte_powers) {
    inverse = power;
    for (int bit = 0; bit < 8; ++bit)
      power = crc_over_x<polynomial>(power);
  }
  return tables;
}

}  // namespace nacre::engine::cuda
