// SPDX-License-Identifier: Apache-2.0
// Deals bits out to the lanes of a page.
//
// A decoder takes a lane's next word when fewer than 32 of its bits are left: with T bits of the
// lane read it has taken T / 32 words, rounded up, and one more. So while a word of a lane is being
// written, the place of the lane's following word is known already. When that word gets its first
// bit, the lane takes another place: the next of the page that no lane has.
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

// What each lane gets in a round. No bits where it gets nothing.
struct alignas(64) RoundCodes {
  std::array<LaneCode, lane_count> lanes;
};

struct OpenLanes {
  // The bits of the open words, 1 to 32. A lane begins as if a full word lay before its first.
  alignas(64) std::array<std::uint32_t, lane_count> bits;
  alignas(64) std::array<std::uint32_t, lane_count> counts;
  // Places of the open words and of the words that follow them, counted in words.
  alignas(64) std::array<std::uint32_t, lane_count> open;
  alignas(64) std::array<std::uint32_t, lane_count> following;
  std::uint32_t next;  // words that have a place
  Byte* to;

  // The open word of a lane is full and the next one has its first bits.
  void close_word(unsigned lane, std::uint32_t word) {
    store_le(to + open[lane] * word_size_bytes, word);
    open[lane] = following[lane];
    following[lane] = next++;
  }
};

// Puts a round into the lanes, in their order.
using PutRound = void (*)(OpenLanes& lanes, const RoundCodes& codes);
void put_round_portable(OpenLanes& lanes, const RoundCodes& codes);
// A function with AVX-512; nullptr where this processor lacks what it needs.
PutRound find_put_round_avx512();

class PageWriter {
 public:
  // to holds page_size_bound() bytes for everything that will be written.
  explicit PageWriter(Byte* to);

  // The most bytes of a page whose lanes get bit_count bits together.
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

  // Writes the open words and returns the size of the page.
  std::size_t finish();

 private:
  OpenLanes lanes_;
  PutRound put_round_;
};

}  // namespace nacre::engine::gdeflate
