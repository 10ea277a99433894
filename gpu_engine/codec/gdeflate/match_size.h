// SPDX-License-Identifier: Apache-2.0
// Counts how many bytes of two stretches are equal.
#pragma once

#include <bit>
#include <cstdint>

#include "gpu_engine/base/bytes.h"

namespace nacre::engine::gdeflate {

// How many bytes from later on, up to end, equal those from earlier on: 0 to end - later. Requires
// earlier < later <= end in one array. The two stretches may overlap. Reads nothing past end.
//
// The plain loop compares byte by byte, as the last one here does. This one compares eight bytes at
// a time: in the XOR of two little-endian words, the lowest bit that is set lies in the first byte
// that differs, so its index divided by eight is the number of equal bytes before it.
inline std::size_t count_equal(const Byte* earlier, const Byte* later, const Byte* end) {
  const Byte* const begin = later;
  while (end - later >= 8) {
    const std::uint64_t difference =
        load_le<std::uint64_t>(earlier) ^ load_le<std::uint64_t>(later);
    if (difference != 0)
      return static_cast<std::size_t>(later - begin) +
             static_cast<std::size_t>(std::countr_zero(difference)) / 8;
    earlier += 8;
    later += 8;
  }
  while (later < end && *earlier == *later) {
    ++earlier;
    ++later;
  }
  return static_cast<std::size_t>(later - begin);
}

}  // namespace nacre::engine::gdeflate
