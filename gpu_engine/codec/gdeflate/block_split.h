// SPDX-License-Identifier: Apache-2.0
// Chooses where a new block begins: where the next symbols differ so much from those before that a
// block with codes of its own saves bits.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "gpu_engine/base/bytes.h"
#include "gpu_engine/codec/gdeflate/items.h"

namespace nacre::engine::gdeflate {

inline constexpr std::size_t block_count_max = 16;

struct BlockSplit {
  std::array<std::size_t, block_count_max> ends;     // item counts from the front
  std::array<SymbolCounts, block_count_max> counts;  // the end of the block included
  std::size_t block_count = 0;
};

// Cuts into blocks of about equal numbers of items, and joins them while that saves bits.
void split_blocks(std::span<const Item> items, BlockSplit& split);

// The same for bytes that are all literals: blocks end where the frequencies of the bytes change.
void split_literals(ByteView plain, BlockSplit& split);

}  // namespace nacre::engine::gdeflate
