// SPDX-License-Identifier: Apache-2.0
// Puts a round with 16 lanes a register (AVX-512 F). Only words that become full are stored, one by
// one; that happens in about one lane in six.
#include "gpu_engine/codec/gdeflate/page_writer.h"

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

namespace nacre::engine::gdeflate {
namespace {

__attribute__((target("avx512f"))) void put_round(OpenLanes& lanes, const RoundCodes& codes) {
  const __m512i evens = _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
  const __m512i odds = _mm512_set_epi32(31, 29, 27, 25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1);
  const __m512i word_size = _mm512_set1_epi32(word_bits);
  alignas(64) std::array<std::uint32_t, lane_count> words;
  std::uint32_t full = 0;
  for (unsigned lane = 0; lane < lane_count; lane += 16) {
    const __m512i first = _mm512_load_si512(codes.lanes.data() + lane);
    const __m512i second = _mm512_load_si512(codes.lanes.data() + lane + 8);
    const __m512i code = _mm512_permutex2var_epi32(first, evens, second);
    const __m512i code_size = _mm512_permutex2var_epi32(first, odds, second);
    const __m512i count = _mm512_load_si512(lanes.counts.data() + lane);
    // Shifts by 32 give zero.
    const __m512i low = _mm512_or_si512(_mm512_load_si512(lanes.bits.data() + lane),
                                        _mm512_sllv_epi32(code, count));
    const __m512i high = _mm512_srlv_epi32(code, _mm512_sub_epi32(word_size, count));
    const __m512i sum = _mm512_add_epi32(count, code_size);
    const __mmask16 over = _mm512_cmpgt_epu32_mask(sum, word_size);
    _mm512_store_si512(words.data() + lane, low);
    _mm512_store_si512(lanes.bits.data() + lane, _mm512_mask_mov_epi32(low, over, high));
    _mm512_store_si512(lanes.counts.data() + lane,
                       _mm512_mask_sub_epi32(sum, over, sum, word_size));
    full |= std::uint32_t{over} << lane;
  }
  for (; full != 0; full &= full - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(full));
    lanes.close_word(lane, words[lane]);
  }
}

}  // namespace

PutRound find_put_round_avx512() {
  return __builtin_cpu_supports("avx512f") ? put_round : nullptr;
}

}  // namespace nacre::engine::gdeflate

#else

namespace nacre::engine::gdeflate {

PutRound find_put_round_avx512() {
  return nullptr;
}

}  // namespace nacre::engine::gdeflate

#endif
