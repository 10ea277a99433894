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

// How hard the other parsers look.
struct ChainEffort {
  unsigned depth;       // candidates for a match
  unsigned nice_size;   // that ends the search
  unsigned lazy_steps;  // positions that a match is held back for
};

// Levels 2 to 7.
void parse_chains(const ChainEffort& effort, ByteView plain, ItemList& items);

struct OptimalEffort {
  unsigned depth;
  unsigned nice_size;
  unsigned passes;  // each with what the items of the one before cost
};

// Levels 8 and 9: the cheapest of all ways to cut, as far as the costs are known.
void parse_optimal(const OptimalEffort& effort, ByteView plain, ItemList& items);

}  // namespace nacre::engine::gdeflate
