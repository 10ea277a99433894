// SPDX-License-Identifier: Apache-2.0
// Cuts plain bytes into literals and matches.
#pragma once

#include "gpu_engine/base/bytes.h"
#include "gpu_engine/codec/gdeflate/items.h"

namespace nacre::engine::gdeflate {

// level 1 … 9; plain: at most page_plain_size_max bytes.
void parse(int level, ByteView plain, ItemList& items);

// Level 1: the better of the two last positions with the same four bytes, taken at once.
void parse_fast(ByteView plain, ItemList& items);

// How hard the parsers of levels 2 to 7 search.
struct ChainEffort {
  unsigned depth;       // candidates for a match
  unsigned nice_size;   // a match of this size ends the search
  unsigned lazy_steps;  // positions for which a match is held back
};

// Levels 2 to 7.
void parse_chains(const ChainEffort& effort, ByteView plain, ItemList& items);

struct OptimalEffort {
  unsigned depth;
  unsigned nice_size;
  unsigned passes;  // each uses the costs of the items of the one before
};

// Levels 8 and 9: the cheapest of all ways to cut, as far as the costs are known.
void parse_optimal(const OptimalEffort& effort, ByteView plain, ItemList& items);

}  // namespace nacre::engine::gdeflate
