// SPDX-License-Identifier: Apache-2.0
// Fast decoding of the rounds in the middle of a block. It stops before the first round that it
// does not take: one with the end of the block, with anything that a page may not hold, or too near
// the end of the page or of the plain bytes. The plain decoder continues from there and finds out
// which it was.
#pragma once

#include "gpu_engine/codec/gdeflate/decode_table.h"
#include "gpu_engine/codec/gdeflate/lanes.h"

namespace nacre::engine::gdeflate {

struct BlockTables {
  std::array<DecodeTable, 2> codes;  // of literals and lengths, and of distances
  DecodeTable code_lengths;

  DecodeTable& litlen() { return codes[0]; }
  DecodeTable& distance() { return codes[1]; }
  const DecodeTable& litlen() const { return codes[0]; }
  const DecodeTable& distance() const { return codes[1]; }
};

// A match whose length is read and whose distance is not.
struct BegunMatch {
  std::uint32_t at;
  std::uint32_t size;
};
using BegunMatches = std::array<BegunMatch, lane_count>;

// Starts at the first round of a block. at: plain bytes so far, both literals and begun matches.
// begun: the lanes whose match lacks its distance; none at first. False when a distance reaches
// before the first plain byte.
bool run_fast_rounds(const BlockTables& tables, Lanes& lanes, MutableByteView plain,
                     std::size_t& at, std::uint32_t& begun, BegunMatches& matches);

}  // namespace nacre::engine::gdeflate
