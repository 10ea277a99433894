// SPDX-License-Identifier: Apache-2.0
// Reads a round with 16 lanes a register (AVX-512 F, BW, VL and VBMI2). The table look-ups are
// gathers. One vpexpandd refills the lanes: it gives the next words of the page, in their order, to
// the lanes that have fewer than 32 bits left. vpcompressb packs the literals of the round.
#include "gpu_engine/codec/gdeflate/fast_round.h"

#if defined(__x86_64__)

// g++ 12 warns of the registers that its own header leaves undefined on purpose (bug 105593).
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#pragma GCC diagnostic pop

#include <bit>

#define NACRE_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi2,popcnt")))

namespace nacre::engine::gdeflate {
namespace {

// 16 lanes: the low and the high half of each lane's bits, and their count.
struct Half {
  __m512i low;
  __m512i high;
  __m512i count;
};

NACRE_AVX512 inline Half load_half(const LaneBits& lanes, unsigned first_lane) {
  const __m512i evens = _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
  const __m512i odds = _mm512_set_epi32(31, 29, 27, 25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1);
  const __m512i first = _mm512_load_si512(lanes.bits.data() + first_lane);
  const __m512i second = _mm512_load_si512(lanes.bits.data() + first_lane + 8);
  return {_mm512_permutex2var_epi32(first, evens, second),
          _mm512_permutex2var_epi32(first, odds, second),
          _mm512_load_si512(lanes.count.data() + first_lane)};
}

NACRE_AVX512 inline void store_half(const Half& half, unsigned first_lane, LaneBits& lanes) {
  const __m512i front = _mm512_set_epi32(23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  const __m512i back =
      _mm512_set_epi32(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8);
  _mm512_store_si512(lanes.bits.data() + first_lane,
                     _mm512_permutex2var_epi32(half.low, front, half.high));
  _mm512_store_si512(lanes.bits.data() + first_lane + 8,
                     _mm512_permutex2var_epi32(half.low, back, half.high));
  _mm512_store_si512(lanes.count.data() + first_lane, half.count);
}

NACRE_AVX512 inline __m512i look_up_half(const BlockTables& tables, __m512i bits,
                                         __mmask16 distances) {
  constexpr int distance_table = static_cast<int>(table_size_max);
  const int* const table = reinterpret_cast<const int*>(tables.codes.data());
  const __m512i start = _mm512_maskz_set1_epi32(distances, distance_table);
  const __m512i index = _mm512_and_si512(bits, _mm512_set1_epi32(direct_count - 1));
  const __m512i entries = _mm512_i32gather_epi32(_mm512_add_epi32(index, start), table, 4);
  const __mmask16 longer = _mm512_test_epi32_mask(entries, _mm512_set1_epi32(entry_is_subtable));
  if (longer == 0) [[likely]]
    return entries;
  const __m512i more = _mm512_and_si512(_mm512_srli_epi32(bits, direct_bits),
                                        _mm512_set1_epi32((1 << subtable_bits) - 1));
  const __m512i subtable = _mm512_add_epi32(_mm512_srli_epi32(entries, 16), start);
  return _mm512_mask_i32gather_epi32(entries, longer, _mm512_add_epi32(subtable, more), table, 4);
}

NACRE_AVX512 inline const Byte* refill_half(Half& half, const Byte* next) {
  const __m512i word_size = _mm512_set1_epi32(word_bits);
  const __mmask16 lacking = _mm512_cmplt_epu32_mask(half.count, word_size);
  const __m512i words = _mm512_maskz_expand_epi32(lacking, _mm512_loadu_si512(next));
  half.low = _mm512_or_si512(half.low, _mm512_sllv_epi32(words, half.count));
  half.high =
      _mm512_or_si512(half.high, _mm512_srlv_epi32(words, _mm512_sub_epi32(word_size, half.count)));
  half.count = _mm512_mask_add_epi32(half.count, lacking, half.count, word_size);
  return next + word_size_bytes * static_cast<unsigned>(std::popcount(unsigned{lacking}));
}

NACRE_AVX512 TableEntry read_round(const BlockTables& tables, const LaneBits& from,
                                   std::uint32_t begun, const Byte*& next, LaneBits& to,
                                   Round& round) {
  const Byte* word = next;
  std::uint32_t matches = 0;
  std::uint32_t item = 0;
  __m512i flags = _mm512_setzero_si512();
  __m512i sizes = _mm512_setzero_si512();
  for (unsigned lane = 0; lane < lane_count; lane += lane_count / 2) {
    const auto distances = static_cast<__mmask16>(begun >> lane);
    const auto items = static_cast<__mmask16>(~distances);
    Half half = load_half(from, lane);
    const __m512i entries = look_up_half(tables, half.low, distances);
    flags = _mm512_or_si512(flags, entries);

    const __m512i one = _mm512_set1_epi32(1);
    const __m512i all_bits = _mm512_and_si512(entries, _mm512_set1_epi32(31));
    const __m512i code_bits =
        _mm512_and_si512(_mm512_srli_epi32(entries, 8), _mm512_set1_epi32(15));
    const __m512i read =
        _mm512_and_si512(half.low, _mm512_sub_epi32(_mm512_sllv_epi32(one, all_bits), one));
    const __m512i values =
        _mm512_add_epi32(_mm512_srli_epi32(entries, 16), _mm512_srlv_epi32(read, code_bits));
    half.low = _mm512_shrdv_epi32(half.low, half.high, all_bits);
    half.high = _mm512_srlv_epi32(half.high, all_bits);
    half.count = _mm512_sub_epi32(half.count, all_bits);
    word = refill_half(half, word);
    store_half(half, lane, to);

    const __mmask16 is_match = _mm512_test_epi32_mask(entries, _mm512_set1_epi32(entry_is_match));
    matches |= std::uint32_t{is_match} << lane;
    sizes =
        _mm512_mask_add_epi32(sizes, items, sizes, _mm512_mask_mov_epi32(one, is_match, values));
    _mm512_store_si512(round.values.data() + lane, values);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(round.literals.data() + item),
                     _mm_maskz_compress_epi8(items, _mm512_cvtepi32_epi8(values)));
    item += static_cast<std::uint32_t>(std::popcount(unsigned{items}));
  }
  const __m256i numbers =
      _mm256_set_epi8(31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16, 15, 14, 13,
                      12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  _mm256_store_si256(reinterpret_cast<__m256i*>(round.items.data()),
                     _mm256_maskz_expand_epi8(~begun, numbers));
  next = word;
  round.matches = matches;
  round.item_count = item;
  round.size = static_cast<std::uint32_t>(_mm512_reduce_add_epi32(sizes));
  return static_cast<TableEntry>(
      _mm512_test_epi32_mask(flags, _mm512_set1_epi32(unusual_flags)) != 0 ? unusual_flags : 0);
}

}  // namespace

ReadRound find_read_round_avx512() {
  const bool has_all = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                       __builtin_cpu_supports("avx512vl") &&
                       __builtin_cpu_supports("avx512vbmi2") && __builtin_cpu_supports("popcnt");
  return has_all ? read_round : nullptr;
}

}  // namespace nacre::engine::gdeflate

#else

namespace nacre::engine::gdeflate {

ReadRound find_read_round_avx512() {
  return nullptr;
}

}  // namespace nacre::engine::gdeflate

#endif
