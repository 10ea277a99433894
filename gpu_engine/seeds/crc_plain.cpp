// SPDX-License-Identifier: Apache-2.0
#include "gpu_engine/seeds/crc_plain.h"

namespace nacre::engine::seeds {

namespace {
constexpr CrcTable table = make_crc_table();
}

std::uint32_t crc32_sarwate(ByteView message) {
  std::uint32_t crc = ~0u;
  for (const Byte byte : message)
    crc = crc >> 8 ^ table.words[(crc ^ byte) & 0xff];
  return ~crc;
}

}  // namespace nacre::engine::seeds
