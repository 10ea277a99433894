// SPDX-License-Identifier: Apache-2.0
// AES rounds out of tables in shared memory without a bank conflict: each lane has a copy of its
// own in its own bank (Tezcan, "Optimization of Advanced Encryption Standard on graphics processing
// units", 2021; here with all four tables).
//
// Counting one block of AES-128 in a lane: 160 lookups, each one byte permutation that makes the
// address and one load; 80 three-input XORs. A multiprocessor does 32 lookups and 64 permutations
// or XORs a cycle, so the lookups bound: 10 a byte, 790 GB/s at the 7.9 * 10^12 lookups a second
// that an H200 was seen to do; AES-256 14 a byte, 560 GB/s.
//
// Tables 2k and 2k + 1 interleave: entry x of both is 256 bytes, 32 lanes of the one, then 32 of
// the other. So an address is byte 1 = x, byte 0 = 4 * lane. table_count 4 takes 128 KiB; 2 takes
// 64 KiB, for devices with less, and rotates words for the rows 2 and 3.
#pragma once

#include <cstdint>

#include "gpu_engine/cuda/kernels/aes_tables.cuh"
#include "gpu_engine/cuda/kernels/block_io.cuh"
#include "gpu_engine/cuda/kernels/keys.h"

namespace nacre::engine::cuda {

inline constexpr int table_pair_bytes = 256 * 256;

// Four tables begin at this address of shared memory, which is past what the driver keeps for
// itself (1 KiB on sm_90), so that the address is a constant in every load. Two tables begin where
// dynamic shared memory does: sm_75 has not a byte more.
inline constexpr int fixed_tables_address = 2048;

template <int table_count>
inline constexpr int shared_tables_bytes = table_count / 2 * table_pair_bytes +
                                           (table_count == 4 ? fixed_tables_address : 0);

template <int table_count>
class SharedTables {
 public:
  // All threads of the block; shared_tables_bytes<table_count> of dynamic shared memory, and no
  // other.
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

// No byte of the decryption table is the plain inverse substitution, so the last round is a full
// one whose InvMixColumns is taken back: some 40 operations, where a table would cost 16 conflicts.
template <typename Tables>
__device__ inline uint4 last_decrypt_round(const Tables& t, uint4 s, uint4 key) {
  const uint4 mixed = decrypt_round(t, s, make_uint4(0, 0, 0, 0));
  return make_uint4(mix_column(mixed.x), mix_column(mixed.y), mix_column(mixed.z),
                    mix_column(mixed.w)) ^
         key;
}

// Rounds first_round and on, of a state that has passed the ones before. keys: of all rounds, in
// registers.
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

// One key's round keys, distance apart.
template <int distance>
struct RoundKeyView {
  const uint4* first;

  __device__ uint4 at(std::uint32_t round) const { return first[distance * round]; }
};

// A key of a table.
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

// Leaves out those that round_count does without.
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

}  // namespace nacre::engine::cuda
