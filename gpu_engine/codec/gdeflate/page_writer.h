// SPDX-License-Identifier: Apache-2.0
// Deals bits out to the lanes of a page.
//
// A decoder gives a lane its next word when fewer than 32 bits of the lane are left: after T bits
// of the lane are read it has got T / 32 words, rounded up, and one more. So while one word of a
// lane is being written (the open word), the place of the lane's following word is known already.
// When the following word gets its first bit, it becomes the open one, and the next free word of
// the page becomes the lane's following word.
#pragma once

#include <array>
#include <cstdint>

#include "gpu_engine/base/bytes.h"
#include "gpu_engine/codec/gdeflate/format.h"

namespace nacre::engine::gdeflate {

// The bits that a lane gets at once: at most 31, lowest first, with zeros above them.
struct LaneCode {
  std::uint32_t bits;
  std::uint32_t count;
};

// By lane: the bits that it gets in a round; a count of 0 if it gets none.
struct alignas(64) RoundCodes {
  std::array<LaneCode, lane_count> lanes;
};

struct OpenLanes {
  // The bits of the open words, and their counts: 1 to 32. At first each lane has a full open word
  // of zeros at the place of its first word, which is written over.
  alignas(64) std::array<std::uint32_t, lane_count> bits;
  alignas(64) std::array<std::uint32_t, lane_count> counts;
  // By lane: the index in the page of its open word and of its following word.
  alignas(64) std::array<std::uint32_t, lane_count> open;
  alignas(64) std::array<std::uint32_t, lane_count> following;
  std::uint32_t next;  // index of the page's next free word
  Byte* to;

  // The open word of a lane is full and the next one has its first bits.
  void close_word(unsigned lane, std::uint32_t word) {
    store_le(to + open[lane] * word_size_bytes, word);
    open[lane] = following[lane];
    following[lane] = next++;
  }
};

// Appends a round's bits to the lanes, in the order of the lanes.
using PutRound = void (*)(OpenLanes& lanes, const RoundCodes& codes);
void put_round_portable(OpenLanes& lanes, const RoundCodes& codes);
// The variant for AVX-512; nullptr if this processor lacks AVX-512 F.
PutRound find_put_round_avx512();

// Writes one page. Not thread-safe.
class PageWriter {
 public:
  // to has room for page_size_bound() of all bits that will be written, and outlives the writer.
  explicit PageWriter(Byte* to);

  // The most bytes that a page can have whose lanes get bit_count bits in total.
  static constexpr std::size_t page_size_bound(std::size_t bit_count) {
    return (2 * lane_count + bit_count / word_bits) * word_size_bytes;
  }

  void put(unsigned lane, LaneCode code) {
    const std::uint64_t bits = lanes_.bits[lane] | std::uint64_t{code.bits} << lanes_.counts[lane];
    const std::uint32_t count = lanes_.counts[lane] + code.count;
    lanes_.bits[lane] = static_cast<std::uint32_t>(bits);
    lanes_.counts[lane] = count;
    if (count <= word_bits) return;
    lanes_.close_word(lane, static_cast<std::uint32_t>(bits));
    lanes_.bits[lane] = static_cast<std::uint32_t>(bits >> word_bits);
    lanes_.counts[lane] = count - word_bits;
  }
  void put_round(const RoundCodes& codes) { put_round_(lanes_, codes); }

  // Writes the open words, and returns the size of the page in bytes. Nothing may be put after it.
  std::size_t finish();

 private:
  OpenLanes lanes_;
  PutRound put_round_;
};

}  // namespace nacre::engine::gdeflate
