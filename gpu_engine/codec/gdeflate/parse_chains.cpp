// SPDX-License-Identifier: Apache-2.0
// Greedy and lazy parsing over chains of candidates. A lazy parser does not write a match before it
// has looked for a better one at the next positions.
#include <algorithm>
#include <bit>

#include "gpu_engine/codec/gdeflate/match_finder.h"
#include "gpu_engine/codec/gdeflate/parse.h"
#include "gpu_engine/codec/workspace.h"

namespace nacre::engine::gdeflate {
namespace {

// Whether a match is cheaper than literals: one of three bytes is not if its distance is long.
bool is_worth(const Match& match) {
  return match.size > match_size_min || match.distance <= 2048;
}

// By how many bits b is better than a: each byte of a match saves about four bits, and each
// doubling of its distance costs one.
int gain(const Match& a, const Match& b) {
  return 4 * (static_cast<int>(b.size) - static_cast<int>(a.size)) + std::bit_width(a.distance) -
         std::bit_width(b.distance);
}

}  // namespace

void parse_chains(const ChainEffort& effort, ByteView plain, ItemList& items) {
  auto& finder = thread_workspace<MatchFinder>();
  finder.begin(plain);
  items.clear();
  items.add_literal(plain[0]);
  std::size_t at = 1;  // all positions before it are inserted
  while (at < plain.size()) {
    Match match = finder.find_longest(at, match_size_min - 1, effort.depth, effort.nice_size);
    if (match.size == 0 || !is_worth(match)) {
      items.add_literal(plain[at++]);
      continue;
    }
    std::size_t inserted = at + 1;
    unsigned depth = effort.depth;
    for (unsigned step = 1; step <= effort.lazy_steps && match.size < effort.nice_size;) {
      depth /= 2;
      if (inserted >= plain.size()) break;
      const Match next = finder.find_longest(inserted, match.size - 1, depth, effort.nice_size);
      ++inserted;
      if (next.size != 0 && gain(match, next) > (step == 1 ? 2 : 6)) {
        for (; at + 1 < inserted; ++at)
          items.add_literal(plain[at]);
        match = next;
        step = 1;
        depth = effort.depth;
      } else {
        ++step;
      }
    }
    items.add_match(match.size, match.distance);
    const std::size_t end = at + match.size;
    for (at = inserted; at < end; ++at)
      finder.insert(at);
    at = end;
  }
}

}  // namespace nacre::engine::gdeflate
