// SPDX-License-Identifier: Apache-2.0
// CRC-32 (polynomial of IEEE 802.3, reflected) byte by byte with one table of 256 words: Sarwate's
// algorithm, which the paper on parallel CRC compares itself with (its figure 2).
#pragma once

#include <cstdint>

#include "gpu_engine/base/bytes.h"

namespace nacre::engine::seeds {

inline constexpr std::uint32_t crc32_polynomial = 0xedb88320;
struct CrcTable {
  std::uint32_t words[256];
};

constexpr CrcTable make_crc_table() {
  CrcTable table = {};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t remainder = byte;
    for (int bit = 0; bit < 8; ++bit)
      remainder = remainder >> 1 ^ ((remainder & 1) != 0 ? crc32_polynomial : 0);
    table.words[byte] = remainder;
  }
  return table;
}

std::uint32_t crc32_sarwate(ByteView message);

}  // namespace nacre::engine::seeds
