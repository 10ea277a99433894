// SPDX-License-Identifier: Apache-2.0
// AES by tables (Daemen and Rijmen, "AES proposal: Rijndael", 5.2.1; FIPS 197).
//
// A state is four columns, each a little-endian word (row 0 is byte 0). The encryption table's word
// of x is SubBytes and MixColumns of a column with x in row 0: bytes 2S, S, S, 3S. The table of row
// r is the same, rotated left by 8 r bits. The decryption table does InvSubBytes and InvMixColumns:
// bytes 14S', 9S', 13S', 11S'. So a plain round is, for each of four columns, four look-ups (one
// word of each row's table) and four XORs (of these words and the round key).
//
// The tables lie in shared memory without bank conflicts: each lane has its own copy of every
// table, in its own bank (Tezcan, "Optimization of Advanced Encryption Standard on graphics
// processing units", 2021; here with all four tables). Tables 2k and 2k + 1 interleave: entry x of
// both takes 256 bytes, first 32 lanes of table 2k, then 32 of table 2k + 1. So in an address
// byte 1 is x, and byte 0 is 4 * lane. Four tables (table_count 4) take 128 KiB. Two, for devices
// with less shared memory, take 64 KiB, and their words are rotated for rows 2 and 3.
//
// Counted for a block of AES-128 in a lane: 160 look-ups, each of them one byte permutation that
// makes the address and one load; and 80 three-input XORs. A multiprocessor does 32 look-ups and 64
// permutations or XORs a cycle, so the look-ups are the bound: 10 for each byte. An H200 was seen
// to do 7.9 * 10^12 look-ups a second, which gives 790 GB/s. AES-256 has 14 look-ups for each byte,
// so 560 GB/s. Measured on an H200, 2026-11-21: CTR 764 and 554 GB/s.
//
// SmallTables serve single blocks: a hash key, a tag's mask, an IV. They are one table in shared
// memory, and lanes may have bank conflicts.
#pragma once

#include <cstdint>

#include "gpu_engine/cuda/kernels/block_io.cuh"
#include "gpu_engine/cuda/kernels/keys.h"

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
  // The powers of 3 are all elements but 0; 0xf6 is the inverse of 3.
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

// Multiplies each of four bytes by x.
__device__ inline std::uint32_t times_x(std::uint32_t column) {
  return (column & 0x7f7f7f7f) << 1 ^ ((column >> 7) & 0x01010101) * 0x1b;
}

__device__ inline std::uint32_t mix_column(std::uint32_t column) {
  const std::uint32_t next = rotate_left(column, 24);
  return times_x(column ^ next) ^ next ^ rotate_left(column, 16) ^ rotate_left(column, 8);
}

// InvMixColumns is MixColumns after this step: to each row a, add 4 (a + b), where b is the row two
// further on.
__device__ inline std::uint32_t unmix_column(std::uint32_t column) {
  return mix_column(column ^ times_x(times_x(column ^ rotate_left(column, 16))));
}

inline constexpr int table_pair_bytes = 256 * 256;

// Four tables begin at this address of shared memory, so that the address is a constant in every
// load. It lies past what the driver keeps for itself (1 KiB on sm_90). Two tables begin where
// dynamic shared memory begins, since they fill all that a block of sm_75 can have.
inline constexpr int fixed_tables_address = 2048;

template <int table_count>
inline constexpr int shared_tables_bytes = table_count / 2 * table_pair_bytes +
                                           (table_count == 4 ? fixed_tables_address : 0);

template <int table_count>
class SharedTables {
 public:
  // All threads of the block call it. shared: the kernel's dynamic shared memory, exactly
  // shared_tables_bytes<table_count>; the kernel may have no static shared memory.
  __device__ SharedTables(std::uint32_t* shared, const AesTable& table) {
    base_ = static_cast<std::uint32_t>(__cvta_generic_to_shared(shared));
    if (at_fixed_address) {
      if (base_ > fixed_tables_address) __trap();
      shared += (fixed_tables_address - base_) / 4;
    }
#pragma unroll 8
    for (int i = static_cast<int>(threadIdx.x); i < table_count / 2 * table_pair_bytes / 4;
         i += static_cast<int>(blockDim.x)) {
      const int row = i / (table_pair_bytes / 4) * 2 + i / 32 % 2;
      shared[i] = rotate_left(table.words[i / 64 % 256], 8 * row);
    }
    __syncthreads();
    lane_ = threadIdx.x % 32 * 4;
  }

  // The word of row `row`'s table for byte `row` of column.
  template <int row>
  __device__ std::uint32_t at(std::uint32_t column) const {
    return from_table<row, row>(column);
  }
  // Table 0's word.
  template <int row>
  __device__ std::uint32_t at_first(std::uint32_t column) const {
    return from_table<row, 0>(column);
  }

 private:
  template <int row, int table>
  __device__ std::uint32_t from_table(std::uint32_t column) const {
    std::uint32_t address = __byte_perm(column, lane_, 0x7604 | row << 4);
    if (!at_fixed_address) address += base_;
    constexpr int stored = table % table_count;
    std::uint32_t word;
    asm volatile("ld.shared.u32 %0, [%1 + %2];"
                 : "=r"(word)
                 : "r"(address), "n"(stored / 2 * table_pair_bytes + stored % 2 * 128 +
                                     (at_fixed_address ? fixed_tables_address : 0)));
    return stored == table ? word : rotate_left(word, 16);
  }

  static constexpr bool at_fixed_address = table_count == 4;

  std::uint32_t base_;
  std::uint32_t lane_;
};

template <typename Tables>
__device__ inline uint4 encrypt_round(const Tables& t, uint4 s, uint4 key) {
  return make_uint4(t.template at<0>(s.x) ^ t.template at<1>(s.y) ^ t.template at<2>(s.z) ^
                        t.template at<3>(s.w),
                    t.template at<0>(s.y) ^ t.template at<1>(s.z) ^ t.template at<2>(s.w) ^
                        t.template at<3>(s.x),
                    t.template at<0>(s.z) ^ t.template at<1>(s.w) ^ t.template at<2>(s.x) ^
                        t.template at<3>(s.y),
                    t.template at<0>(s.w) ^ t.template at<1>(s.x) ^ t.template at<2>(s.y) ^
                        t.template at<3>(s.z)) ^
         key;
}

// Byte 1 of table 0's word is the plain substitution.
template <typename Tables>
__device__ inline std::uint32_t substitute_column(const Tables& t, std::uint32_t row_0,
                                                  std::uint32_t row_1, std::uint32_t row_2,
                                                  std::uint32_t row_3) {
  const std::uint32_t low =
      __byte_perm(t.template at_first<0>(row_0), t.template at_first<1>(row_1), 0x0051);
  const std::uint32_t high =
      __byte_perm(t.template at_first<2>(row_2), t.template at_first<3>(row_3), 0x0051);
  return __byte_perm(low, high, 0x5410);
}

template <typename Tables>
__device__ inline uint4 last_encrypt_round(const Tables& t, uint4 s, uint4 key) {
  return make_uint4(
             substitute_column(t, s.x, s.y, s.z, s.w), substitute_column(t, s.y, s.z, s.w, s.x),
             substitute_column(t, s.z, s.w, s.x, s.y), substitute_column(t, s.w, s.x, s.y, s.z)) ^
         key;
}

template <typename Tables>
__device__ inline uint4 decrypt_round(const Tables& t, uint4 s, uint4 key) {
  return make_uint4(t.template at<0>(s.x) ^ t.template at<1>(s.w) ^ t.template at<2>(s.z) ^
                        t.template at<3>(s.y),
                    t.template at<0>(s.y) ^ t.template at<1>(s.x) ^ t.template at<2>(s.w) ^
                        t.template at<3>(s.z),
                    t.template at<0>(s.z) ^ t.template at<1>(s.y) ^ t.template at<2>(s.x) ^
                        t.template at<3>(s.w),
                    t.template at<0>(s.w) ^ t.template at<1>(s.z) ^ t.template at<2>(s.y) ^
                        t.template at<3>(s.x)) ^
         key;
}

// No byte of the decryption table is the plain inverse substitution. So the last round is run as a
// full round, and then its InvMixColumns is undone. That takes some 40 operations; a table of its
// own would have bank conflicts in 16 look-ups.
template <typename Tables>
__device__ inline uint4 last_decrypt_round(const Tables& t, uint4 s, uint4 key) {
  const uint4 mixed = decrypt_round(t, s, make_uint4(0, 0, 0, 0));
  return make_uint4(mix_column(mixed.x), mix_column(mixed.y), mix_column(mixed.z),
                    mix_column(mixed.w)) ^
         key;
}

// Runs the rounds from first_round on, for a state that has passed the rounds before. keys: those
// of all rounds, in registers.
template <bool decrypt, int first_round, typename Tables>
__device__ inline uint4 run_rounds(const Tables& t, uint4 s, const uint4 (&keys)[15],
                                   std::uint32_t round_count) {
  const auto round = [&](int number) {
    s = decrypt ? decrypt_round(t, s, keys[number]) : encrypt_round(t, s, keys[number]);
  };
#pragma unroll
  for (int number = first_round; number < 10; ++number)
    round(number);
  if (round_count > 10) {
    round(10);
    round(11);
    if (round_count > 12) {
      round(12);
      round(13);
    }
  }
  return decrypt ? last_decrypt_round(t, s, keys[RoundKeys::last_round])
                 : last_encrypt_round(t, s, keys[RoundKeys::last_round]);
}

// The round keys of one key; in memory they are `distance` elements apart.
template <int distance>
struct RoundKeyView {
  const uint4* first;

  __device__ uint4 at(std::uint32_t round) const { return first[distance * round]; }
};

// One key of a table.
struct CipherKeyView {
  const CipherKeyGroup& group;
  std::uint32_t place;

  __device__ CipherKeyView(const CipherKeyGroup* table, std::uint32_t key)
      : group(table[key / CipherKeyGroup::key_count]), place(key % CipherKeyGroup::key_count) {}
  using RoundKeysView = RoundKeyView<CipherKeyGroup::key_count>;
  __device__ RoundKeysView encrypt() const { return {&group.encrypt[0][place]}; }
  __device__ RoundKeysView decrypt() const { return {&group.decrypt[0][place]}; }
  __device__ std::uint32_t round_count() const { return group.round_counts[place]; }
};

// Leaves out the round keys that round_count does not need.
template <int distance>
__device__ inline void load_round_keys(uint4 (&keys)[15], const RoundKeyView<distance>& from,
                                       std::uint32_t round_count) {
#pragma unroll
  for (int i = 0; i < 10; ++i)
    keys[i] = from.at(i);
  if (round_count > 10) {
    keys[10] = from.at(10);
    keys[11] = from.at(11);
    if (round_count > 12) {
      keys[12] = from.at(12);
      keys[13] = from.at(13);
    }
  }
  keys[RoundKeys::last_round] = from.at(RoundKeys::last_round);
}

class SmallTables {
 public:
  // All threads of the block call it, with 256 words of shared memory.
  __device__ explicit SmallTables(std::uint32_t* shared) : shared_(shared) {
    for (std::uint32_t i = threadIdx.x; i < 256; i += blockDim.x)
      shared[i] = aes_encryption_table.words[i];
    __syncthreads();
  }
  template <int row>
  __device__ std::uint32_t at(std::uint32_t column) const {
    return rotate_left(at_first<row>(column), 8 * row);
  }
  template <int row>
  __device__ std::uint32_t at_first(std::uint32_t column) const {
    return shared_[column >> (8 * row) & 0xff];
  }

 private:
  const std::uint32_t* shared_;
};

template <int distance>
__device__ inline uint4 encrypt_one_block(const SmallTables& tables,
                                          const RoundKeyView<distance>& keys,
                                          std::uint32_t round_count, uint4 block) {
  uint4 state = block ^ keys.at(0);
  for (std::uint32_t round = 1; round < round_count; ++round)
    state = encrypt_round(tables, state, keys.at(round));
  return last_encrypt_round(tables, state, keys.at(RoundKeys::last_round));
}

}  // namespace nacre::engine::cuda
