// SPDX-License-Identifier: Apache-2.0
// Chooses where new blocks begin: where the symbols after a place differ so much from those before
// that a block with codes of its own saves bits. Thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "gpu_engine/base/bytes.h"
#include "gpu_engine/codec/gdeflate/items.h"

namespace nacre::engine::gdeflate {

inline constexpr std::size_t block_count_max = 16;

struct BlockSplit {
  std::array<std::size_t, block_count_max> ends;     // in items, counted from the page's first
  std::array<SymbolCounts, block_count_max> counts;  // each with one end of block
  std::size_t block_count = 0;
};

// Cuts the items into up to 16 blocks of about equal numbers, and joins neighbours while that saves
// bits. Overwrites split.
void split_blocks(std::span<const Item> items, BlockSplit& split);

// The same for bytes that are all literals, starting with four blocks. Each byte is an item.
void split_literals(ByteView plain, BlockSplit& split);

}  // namespace nacre::engine::gdeflate
