// SPDX-License-Identifier: Apache-2.0
// Cuts plain bytes into literals and matches. Thread-safe: tables are per thread. May throw
// std::bad_alloc.
#pragma once

#include "gpu_engine/base/bytes.h"
#include "gpu_engine/codec/gdeflate/items.h"

namespace nacre::engine::gdeflate {

// Overwrites items. level: 1 … 9. plain: 1 … page_plain_size_max bytes. The parsers below have the
// same contract.
void parse(int level, ByteView plain, ItemList& items);

// Level 1. A position has two candidates, the last positions with the same hash of four bytes. The
// longer match is taken at once.
void parse_fast(ByteView plain, ItemList& items);

// How hard the parsers of levels 2 to 7 search.
struct ChainEffort {
  unsigned depth;       // how many candidates are compared for a position
  unsigned nice_size;   // a match of this many bytes ends the search
  unsigned lazy_steps;  // at how many further positions a better match is searched for
};

// Levels 2 to 7.
void parse_chains(const ChainEffort& effort, ByteView plain, ItemList& items);

struct OptimalEffort {
  unsigned depth;
  unsigned nice_size;
  unsigned passes;  // each takes its costs from the items that the pass before has chosen
};

// Levels 8 and 9: the cheapest of all ways to cut, as far as the costs are known.
void parse_optimal(const OptimalEffort& effort, ByteView plain, ItemList& items);

}  // namespace nacre::engine::gdeflate
