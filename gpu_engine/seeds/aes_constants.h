// SPDX-License-Identifier: Apache-2.0
// The tables that plain AES codes use (FIPS 197; Daemen and Rijmen, "AES proposal: Rijndael",
// 5.2.1), made when compiling, and the key schedule.
#pragma once

#include <array>
#include <cstdint>

namespace nacre::engine::seeds {

constexpr std::uint8_t aes_times(std::uint8_t a, std::uint8_t b) {
  unsigned product = 0, factor = a;
  for (unsigned rest = b; rest != 0; rest >>= 1) {
    if ((rest & 1) != 0) product ^= factor;
    factor = factor << 1 ^ ((factor & 0x80) != 0 ? 0x11b : 0);
  }
  return static_cast<std::uint8_t>(product);
}

struct AesConstants {
  std::uint8_t substitution[256] = {};
  std::uint8_t inverse[256] = {};
  // Logarithms to the base 3, which generates the field: logarithm[power[i]] is i for i below 255.
  // power[255 + i] is power[i], so a sum of two logarithms needs no modulo.
  std::uint8_t logarithm[256] = {};
  std::uint8_t power[512] = {};
  // Columns are little-endian words, row 0 in the lowest byte. round[0][x]: SubBytes and MixColumns
  // of x in row 0; round[r] of x in row r. undo[r]: InvSubBytes and InvMixColumns.
  std::uint32_t round[4][256] = {};
  std::uint32_t undo[4][256] = {};
};

constexpr std::uint32_t aes_column(std::uint8_t value, const std::array<std::uint8_t, 4>& factors,
                                   int row) {
  std::uint32_t word = 0;
  for (int i = 0; i < 4; ++i)
    word |= std::uint32_t{aes_times(value, factors[static_cast<std::size_t>(i)])}
            << 8 * ((i + row) % 4);
  return word;
}

constexpr AesConstants make_aes_constants() {
  AesConstants made = {};
  std::uint8_t value = 1, reciprocal = 1;
  for (int i = 0; i < 255; ++i) {
    made.power[i] = made.power[i + 255] = value;
    made.logarithm[value] = static_cast<std::uint8_t>(i);
    unsigned mixed = reciprocal;
    for (unsigned shift = 1; shift <= 4; ++shift)
      mixed ^= (unsigned{reciprocal} << shift | unsigned{reciprocal} >> (8 - shift)) & 0xff;
    made.substitution[value] = static_cast<std::uint8_t>(mixed ^ 0x63);
    value = aes_times(value, 3);
    reciprocal = aes_times(reciprocal, 0xf6);
  }
  made.substitution[0] = 0x63;
  for (int x = 0; x < 256; ++x)
    made.inverse[made.substitution[x]] = static_cast<std::uint8_t>(x);
  for (int row = 0; row < 4; ++row) {
    for (int x = 0; x < 256; ++x) {
      made.round[row][x] = aes_column(made.substitution[x], {2, 1, 1, 3}, row);
      made.undo[row][x] = aes_column(made.inverse[x], {14, 9, 13, 11}, row);
    }
  }
  return made;
}

inline constexpr AesConstants aes_constants = make_aes_constants();

inline constexpr int aes_round_count_max = 14;
inline constexpr int aes_schedule_bytes_max = 16 * (aes_round_count_max + 1);
constexpr int aes_round_count(std::size_t key_size_bytes) {
  return static_cast<int>(key_size_bytes / 4) + 6;
}

// schedule: 16 bytes for the start and for each round.
constexpr void expand_aes_key(const std::uint8_t* key, std::size_t key_size_bytes,
                              std::uint8_t* schedule) {
  const std::size_t size = 16 * (static_cast<std::size_t>(aes_round_count(key_size_bytes)) + 1);
  std::uint8_t round_constant = 1;
  for (std::size_t i = 0; i < key_size_bytes; ++i)
    schedule[i] = key[i];
  for (std::size_t at = key_size_bytes; at < size; at += 4) {
    std::uint8_t word[4] = {schedule[at - 4], schedule[at - 3], schedule[at - 2], schedule[at - 1]};
    if (at % key_size_bytes == 0) {
      const std::uint8_t first = word[0];
      for (int i = 0; i < 3; ++i)
        word[i] = aes_constants.substitution[word[i + 1]];
      word[3] = aes_constants.substitution[first];
      word[0] ^= round_constant;
      round_constant = aes_times(round_constant, 2);
    } else if (key_size_bytes == 32 && at % 32 == 16) {
      for (std::uint8_t& byte : word)
        byte = aes_constants.substitution[byte];
    }
    for (std::size_t i = 0; i < 4; ++i)
      schedule[at + i] = schedule[at - key_size_bytes + i] ^ word[i];
  }
}

}  // namespace nacre::engine::seeds
