// SPDX-License-Identifier: Apache-2.0
// Makes Huffman codes out of counts.
#pragma once

#include <cstdint>
#include <span>

namespace nacre::engine::gdeflate {

// The sizes of the codes of least total size, none longer than size_max bits (where that limit
// applies, close to the least). Symbols that do not occur have size 0. When fewer than two symbols
// occur, the first others are given a code, so that every code is complete. Counts are below 2^22,
// and there are at most 512 symbols.
void make_code_sizes(std::span<const std::uint32_t> counts, unsigned size_max,
                     std::span<std::uint8_t> sizes);

// The canonical code of these sizes, each with its first bit lowest, as GDeflate writes them.
void assign_codes(std::span<const std::uint8_t> sizes, std::span<std::uint16_t> codes);

}  // namespace nacre::engine::gdeflate
