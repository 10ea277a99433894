// SPDX-License-Identifier: Apache-2.0
// Reads the 32 lanes of a page one at a time. The page must outlive the object. Not thread-safe.
#pragma once

#include <array>
#include <cstdint>

#include "gpu_engine/base/bytes.h"
#include "gpu_engine/codec/gdeflate/format.h"

namespace nacre::engine::gdeflate {

// Between reads each lane holds 32 to 63 bits. Reads of one lane may take at most 31 of them before
// its refill(), which must come before another lane is read. If the page has no more words,
// refill() sets `torn` and adds zeros.
struct Lanes {
  std::array<std::uint64_t, lane_count> bits;
  std::array<std::uint32_t, lane_count> count;
  const Byte* next;
  const Byte* end;
  bool torn = false;

  explicit Lanes(ByteView page) : next(page.data()), end(page.data() + page.size()) {
    bits.fill(0);
    count.fill(0);
    for (unsigned lane = 0; lane < lane_count; ++lane)
      refill(lane);
  }

  // The lane's next bit_count bits, the first one lowest. lane: below lane_count.
  unsigned take(unsigned lane, unsigned bit_count) {
    const auto taken = static_cast<unsigned>(bits[lane] & ((std::uint64_t{1} << bit_count) - 1));
    skip(lane, bit_count);
    return taken;
  }
  void skip(unsigned lane, unsigned bit_count) {
    bits[lane] >>= bit_count;
    count[lane] -= bit_count;
  }
  void refill(unsigned lane) {
    if (count[lane] >= word_bits) return;
    if (static_cast<std::size_t>(end - next) < word_size_bytes) {
      torn = true;
    } else {
      bits[lane] |= std::uint64_t{load_le<std::uint32_t>(next)} << count[lane];
      next += word_size_bytes;
    }
    count[lane] += word_bits;
  }
  // Whether all words of the page were used, and no more than those.
  bool at_end() const { return next == end && !torn; }
};

}  // namespace nacre::engine::gdeflate
