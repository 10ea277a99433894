// SPDX-License-Identifier: Apache-2.0
// AES by tables (Daemen and Rijmen, "AES proposal: Rijndael", 5.2.1; FIPS 197).
//
// A state is four columns, each a little-endian word (row 0 is byte 0). The encryption table's word
// of x is SubBytes and MixColumns of a column with x in row 0: bytes 2S, S, S, 3S. The table of row
// r is the same, rotated left by 8 r bits. The decryption table does InvSubBytes and InvMixColumns:
// bytes 14S', 9S', 13S', 11S'.
#pragma once

#include <cstdint>

namespace nacre::engine::cuda {

struct AesTable {
  std::uint32_t words[256];
};

constexpr std::uint32_t multiply_in_gf256(std::uint32_t a, std::uint32_t b) {
  std::uint32_t product = 0;
  for (; b != 0; b >>= 1) {
    if ((b & 1) != 0) product ^= a;
    a = (a << 1) ^ ((a & 0x80) != 0 ? 0x11b : 0);
  }
  return product;
}

// Words hold the substitution of a byte (FIPS 197, 5.1.1), or the inverse one.
constexpr AesTable make_substitution(bool inverse) {
  AesTable table = {};
  // 3 generates all but 0; 0xf6 is its inverse.
  std::uint32_t value = 1, inverse_value = 1;
  for (int i = 0; i < 255; ++i) {
    std::uint32_t mixed = inverse_value;
    for (int shift = 1; shift <= 4; ++shift)
      mixed ^= inverse_value << shift | inverse_value >> (8 - shift);
    mixed = (mixed ^ 0x63) & 0xff;
    if (inverse)
      table.words[mixed] = value;
    else
      table.words[value] = mixed;
    value = multiply_in_gf256(value, 3);
    inverse_value = multiply_in_gf256(inverse_value, 0xf6);
  }
  table.words[inverse ? 0x63 : 0] = inverse ? 0 : 0x63;
  return table;
}

constexpr AesTable make_aes_table(bool decrypt) {
  const AesTable substitution = make_substitution(decrypt);
  const std::uint32_t factors[2][4] = {{2, 1, 1, 3}, {14, 9, 13, 11}};
  AesTable table = {};
  for (int x = 0; x < 256; ++x) {
    for (int row = 0; row < 4; ++row)
      table.words[x] |= multiply_in_gf256(substitution.words[x], factors[decrypt][row])
                        << (8 * row);
  }
  return table;
}

// SubBytes of each byte is byte 1 of the encryption table's word.
static __device__ const AesTable aes_encryption_table = make_aes_table(false);
static __device__ const AesTable aes_decryption_table = make_aes_table(true);

__device__ inline std::uint32_t rotate_left(std::uint32_t word, int bits) {
  return __funnelshift_l(word, word, bits);
}

// Four bytes at once, each times x.
__device__ inline std::uint32_t times_x(std::uint32_t column) {
  return (column & 0x7f7f7f7f) << 1 ^ ((column >> 7) & 0x01010101) * 0x1b;
}

__device__ inline std::uint32_t mix_column(std::uint32_t column) {
  const std::uint32_t next = rotate_left(column, 24);
  return times_x(column ^ next) ^ next ^ rotate_left(column, 16) ^ rotate_left(column, 8);
}

// InvMixColumns is MixColumns after adding 4 (a + a two rows on) to each row.
__device__ inline std::uint32_t unmix_column(std::uint32_t column) {
  return mix_column(column ^ times_x(times_x(column ^ rotate_left(column, 16))));
}

}  // namespace nacre::engine::cuda
