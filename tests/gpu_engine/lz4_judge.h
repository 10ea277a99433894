// SPDX-License-Identifier: Apache-2.0
// What docs/FORMAT.md says of an LZ4 block, taken byte by byte.
#pragma once

#include <optional>

#include "gpu_engine/base/bytes.h"

namespace nacre::engine {

// The block's bytes when it is valid and gives plain_size of them; plain_size is not 0.
inline std::optional<Bytes> decode_lz4_plainly(ByteView coded, std::size_t plain_size) {
  constexpr std::size_t last_literals = 5;
  constexpr std::size_t match_free_tail = 12;
  Bytes plain;
  std::size_t at = 0;
  const auto add_extra = [&](std::size_t& count) {
    for (;;) {
      if (at == coded.size()) return false;
      count += coded[at];
      if (coded[at++] != 255) return true;
    }
  };
  for (;;) {
    if (at == coded.size()) return std::nullopt;
    const unsigned token = coded[at++];
    std::size_t literals = token >> 4;
    if (literals == 15 && !add_extra(literals)) return std::nullopt;
    if (literals > coded.size() - at || literals > plain_size - plain.size()) return std::nullopt;
    const ByteView taken = coded.subspan(at, literals);
    plain.insert(plain.end(), taken.begin(), taken.end());
    at += literals;
    if (at == coded.size()) break;
    if (coded.size() - at < 2 || plain_size - plain.size() < match_free_tail) return std::nullopt;
    const std::size_t distance = coded[at] + 256u * coded[at + 1];
    at += 2;
    std::size_t match_size = token & 15;
    if (match_size == 15 && !add_extra(match_size)) return std::nullopt;
    match_size += 4;
    if (distance == 0 || distance > plain.size() ||
        match_size > plain_size - plain.size() - last_literals)
      return std::nullopt;
    for (; match_size > 0; --match_size)
      plain.push_back(plain[plain.size() - distance]);
  }
  if (plain.size() != plain_size) return std::nullopt;
  return plain;
}

// A match up to the last byte, then a sequence of nothing: the plain size is 32, and no decoder may
// take it.
inline constexpr Byte lz4_block_without_last_literals[] = {0x1f, 0x61, 0x01, 0x00, 0x0c, 0x00};

}  // namespace nacre::engine
