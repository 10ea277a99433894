// SPDX-License-Identifier: Apache-2.0
// Near-optimal parsing. When the cost of every literal, length and distance is known, the cheapest
// way from a position to the end of the page follows from the cheapest ways from the positions
// after it. So one pass from the back to the front finds all of them. The costs are the entropies
// of the items that the pass before has chosen, separately for each block; the first pass takes
// them from the items of a lazy parser.
#include <algorithm>
#include <array>
#include <vector>

#include "gpu_engine/codec/gdeflate/block_split.h"
#include "gpu_engine/codec/gdeflate/entropy.h"
#include "gpu_engine/codec/gdeflate/match_finder.h"
#include "gpu_engine/codec/gdeflate/parse.h"
#include "gpu_engine/codec/workspace.h"

namespace nacre::engine::gdeflate {
namespace {

constexpr std::size_t matches_of_position_max = 24;

// All matches of a page, in the order of their positions.
struct PageMatches {
  std::vector<Match> matches;
  std::array<std::uint32_t, page_plain_size_max + 1> starts;

  std::span<const Match> at(std::size_t position) const {
    return std::span(matches).subspan(starts[position], starts[position + 1] - starts[position]);
  }
};

void find_matches(const OptimalEffort& effort, ByteView plain, MatchFinder& finder,
                  PageMatches& found) {
  finder.begin(plain);
  found.matches.clear();
  found.starts[0] = found.starts[1] = 0;
  std::array<Match, matches_of_position_max> matches;
  for (std::size_t at = 1; at < plain.size();) {
    const std::size_t count = finder.find_all(at, effort.depth, effort.nice_size, matches);
    found.matches.insert(found.matches.end(), matches.begin(),
                         matches.begin() + static_cast<std::ptrdiff_t>(count));
    found.starts[++at] = static_cast<std::uint32_t>(found.matches.size());
    if (count == 0 || matches[count - 1].size < effort.nice_size) continue;
    // A match this long will be chosen, so no matches are needed at the positions inside it.
    for (std::size_t end = at - 1 + matches[count - 1].size; at < end; ++at) {
      finder.insert(at);
      found.starts[at + 1] = static_cast<std::uint32_t>(found.matches.size());
    }
  }
}

// The cost of every symbol, extra bits included, in units of 1 / cost_unit bits.
constexpr float cost_unit = 64;

struct Costs {
  std::array<std::uint32_t, literal_symbol_count> literals;
  std::array<std::uint32_t, match_size_long> sizes;  // up to 257
  std::uint32_t long_size;
  std::array<std::uint32_t, distance_symbol_count> distances;

  std::uint32_t of_size(unsigned size) const {
    return size < match_size_long ? sizes[size] : long_size;
  }
};

std::uint32_t cost_of(float share_log, unsigned extra_bits) {
  return static_cast<std::uint32_t>(cost_unit * (share_log + static_cast<float>(extra_bits)));
}

float bits_of_logarithm(std::uint32_t value) {
  return static_cast<float>(logarithm(value)) / cost_of_a_bit;
}

void set_costs(const SymbolCounts& counts, Costs& costs) {
  // A symbol that has not occurred costs as if it had occurred half a time.
  const auto share_log = [](std::uint32_t count, float sum_log) {
    return count == 0 ? sum_log + 1 : sum_log - bits_of_logarithm(count);
  };
  std::uint32_t litlen_sum = 0;
  for (const std::uint32_t count : counts.litlen)
    litlen_sum += count;
  const float litlen_log = bits_of_logarithm(litlen_sum);
  for (unsigned byte = 0; byte < literal_symbol_count; ++byte)
    costs.literals[byte] = cost_of(share_log(counts.litlen[byte], litlen_log), 0);
  std::array<std::uint32_t, length_symbol_count> lengths;
  for (unsigned symbol = 0; symbol < length_symbol_count; ++symbol)
    lengths[symbol] = cost_of(share_log(counts.litlen[first_length_symbol + symbol], litlen_log),
                              length_symbols[symbol].bits);
  for (unsigned size = match_size_min; size < match_size_long; ++size)
    costs.sizes[size] = lengths[length_symbol(size)];
  costs.long_size = lengths[length_symbol_count - 1];

  std::uint32_t distance_sum = 1;
  for (const std::uint32_t count : counts.distance)
    distance_sum += count;
  const float distance_log = bits_of_logarithm(distance_sum);
  for (unsigned symbol = 0; symbol < distance_symbol_count; ++symbol)
    costs.distances[symbol] =
        cost_of(share_log(counts.distance[symbol], distance_log), distance_symbols[symbol].bits);
}

// The cheapest way from each position to the end.
struct Ways {
  std::array<std::uint32_t, page_plain_size_max + 1> costs;
  std::array<Item, page_plain_size_max> items;  // the first step of each way
};

// Finds the ways from end - 1 down to begin. The ways from end on must be known.
void find_ways(ByteView plain, std::size_t begin, std::size_t end, const PageMatches& found,
               const Costs& costs, Ways& ways) {
  for (std::size_t at = end; at-- > begin;) {
    std::uint32_t best = costs.literals[plain[at]] + ways.costs[at + 1];
    Item item = plain[at];
    unsigned size = match_size_min;
    for (const Match& match : found.at(at)) {
      const std::uint32_t distance_cost = costs.distances[distance_symbol(match.distance)];
      // Sizes from match_size_long on share one symbol. So of a longer match the sizes below
      // match_size_long are tried, and its whole size.
      const unsigned last = std::min(match.size, match_size_long - 1);
      for (; size <= last; ++size) {
        const std::uint32_t cost = distance_cost + costs.sizes[size] + ways.costs[at + size];
        if (cost < best) {
          best = cost;
          item = make_match(size, match.distance);
        }
      }
      if (match.size < match_size_long) continue;
      const std::uint32_t cost = distance_cost + costs.long_size + ways.costs[at + match.size];
      if (cost < best) {
        best = cost;
        item = make_match(match.size, match.distance);
      }
    }
    ways.costs[at] = best;
    ways.items[at] = item;
  }
}

}  // namespace

void parse_optimal(const OptimalEffort& effort, ByteView plain, ItemList& items) {
  auto& finder = thread_workspace<MatchFinder>();
  auto& found = thread_workspace<PageMatches>();
  auto& ways = thread_workspace<Ways>();
  auto& split = thread_workspace<BlockSplit>();
  parse_chains({.depth = 32, .nice_size = 64, .lazy_steps = 1}, plain, items);
  find_matches(effort, plain, finder, found);
  for (unsigned pass = 0; pass < effort.passes; ++pass) {
    split_blocks(items.view(), split);
    std::array<std::size_t, block_count_max + 1> starts{};
    std::size_t item = 0;
    for (std::size_t block = 0; block < split.block_count; ++block) {
      starts[block + 1] = starts[block];
      for (; item < split.ends[block]; ++item)
        starts[block + 1] += item_size(items.items[item]);
    }
    ways.costs[plain.size()] = 0;
    for (std::size_t block = split.block_count; block-- > 0;) {
      Costs costs;
      set_costs(split.counts[block], costs);
      find_ways(plain, starts[block], starts[block + 1], found, costs, ways);
    }
    items.clear();
    for (std::size_t at = 0; at < plain.size(); at += item_size(ways.items[at]))
      items.add(ways.items[at]);
  }
}

}  // namespace nacre::engine::gdeflate
