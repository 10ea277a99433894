// SPDX-License-Identifier: Apache-2.0
// Starts with many blocks and joins them: of all pairs of neighbours it joins the one that saves
// most, until no pair saves anything. Costs are estimated from entropies.
#include "gpu_engine/codec/gdeflate/block_split.h"

#include <algorithm>

#include "gpu_engine/codec/gdeflate/entropy.h"

namespace nacre::engine::gdeflate {
namespace {

constexpr std::size_t piece_item_count_min = 1024;
// Bytes that are all literals start with this many blocks.
constexpr std::size_t literal_block_count = 4;
// The estimated cost of a block's header: a fixed part, and a part for each symbol that occurs.
constexpr std::uint32_t header_cost = 60 * cost_of_a_bit;
constexpr std::uint32_t header_cost_per_symbol = 4 * cost_of_a_bit;

std::uint32_t count_block_cost(const SymbolCounts& counts) {
  const auto used = std::count_if(counts.litlen.begin(), counts.litlen.end(),
                                  [](std::uint32_t c) { return c != 0; }) +
                    std::count_if(counts.distance.begin(), counts.distance.end(),
                                  [](std::uint32_t c) { return c != 0; });
  return header_cost + header_cost_per_symbol * static_cast<std::uint32_t>(used) +
         entropy_cost(counts.litlen) + entropy_cost(counts.distance);
}

// Joins blocks of split, whose ends, counts and block_count are filled in.
void join_blocks(BlockSplit& split) {
  std::size_t count = split.block_count;
  std::array<std::uint32_t, block_count_max> costs;
  for (std::size_t i = 0; i < count; ++i)
    costs[i] = count_block_cost(split.counts[i]);
  const auto join = [&](std::size_t i) {
    SymbolCounts both = split.counts[i];
    both += split.counts[i + 1];
    both.litlen[end_of_block] = 1;
    return both;
  };
  std::array<std::uint32_t, block_count_max> joined_costs;  // of block i with the next one
  for (std::size_t i = 0; i + 1 < count; ++i)
    joined_costs[i] = count_block_cost(join(i));
  while (count > 1) {
    const auto saved = [&](std::size_t i) {
      return static_cast<std::int64_t>(costs[i]) + costs[i + 1] - joined_costs[i];
    };
    std::size_t best = 0;
    for (std::size_t i = 1; i + 1 < count; ++i)
      if (saved(i) > saved(best)) best = i;
    if (saved(best) <= 0) break;
    split.counts[best] = join(best);
    costs[best] = joined_costs[best];
    split.ends[best] = split.ends[best + 1];
    for (std::size_t i = best + 1; i + 1 < count; ++i) {
      split.counts[i] = split.counts[i + 1];
      split.ends[i] = split.ends[i + 1];
      costs[i] = costs[i + 1];
      joined_costs[i] = joined_costs[i + 1];
    }
    --count;
    if (best > 0) joined_costs[best - 1] = count_block_cost(join(best - 1));
    if (best + 1 < count) joined_costs[best] = count_block_cost(join(best));
  }
  split.block_count = count;
}

// Counts the bytes of blocks of `size` bytes each. All blocks are counted at once, so that equal
// bytes in a row do not wait for each other.
void count_bytes(ByteView plain, std::size_t size, BlockSplit& split) {
  const Byte* const bytes = plain.data();
  for (std::size_t i = 0; i < size; ++i)
    for (std::size_t j = 0; j < literal_block_count; ++j)
      ++split.counts[j].litlen[bytes[j * size + i]];
}

}  // namespace

void split_blocks(std::span<const Item> items, BlockSplit& split) {
  const std::size_t pieces =
      std::clamp<std::size_t>(items.size() / piece_item_count_min, 1, block_count_max);
  for (std::size_t i = 0, start = 0; i < pieces; ++i) {
    split.ends[i] = items.size() * (i + 1) / pieces;
    split.counts[i] = {};
    for (; start < split.ends[i]; ++start)
      split.counts[i].add(items[start]);
    split.counts[i].litlen[end_of_block] = 1;
  }
  split.block_count = pieces;
  join_blocks(split);
}

void split_literals(ByteView plain, BlockSplit& split) {
  const std::size_t size = plain.size() / literal_block_count;
  for (std::size_t i = 0; i < literal_block_count; ++i) {
    split.ends[i] = (i + 1) * size;
    split.counts[i] = {};
    split.counts[i].litlen[end_of_block] = 1;
  }
  count_bytes(plain, size, split);
  SymbolCounts& last = split.counts[literal_block_count - 1];
  for (const Byte byte : plain.subspan(literal_block_count * size))
    ++last.litlen[byte];
  split.ends[literal_block_count - 1] = plain.size();
  split.block_count = literal_block_count;
  join_blocks(split);
}

}  // namespace nacre::engine::gdeflate
