// SPDX-License-Identifier: Apache-2.0
// Fast decoding of the rounds in the middle of a block. It stops before the first round that holds
// the end of the block or anything that a page may not hold, or that is too near the end of the
// page or of the plain bytes. The plain decoder continues with that round.
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

// Decodes from the first round of a block on, and leaves lanes, at, begun and matches for the plain
// decoder. at: the count of plain bytes so far, those of begun matches included. begun: on return,
// the mask of lanes whose match lacks its distance; matches holds these matches, by lane. Returns
// false when a distance reaches before the first plain byte. Thread-safe.
bool run_fast_rounds(const BlockTables& tables, Lanes& lanes, MutableByteView plain,
                     std::size_t& at, std::uint32_t& begun, BegunMatches& matches);

}  // namespace nacre::engine::gdeflate
