// SPDX-License-Identifier: Apache-2.0
// Makes Huffman codes out of counts.
#pragma once

#include <cstdint>
#include <span>

namespace nacre::engine::gdeflate {

// Computes the sizes in bits of codes whose total size is least. No code is longer than size_max
// bits; where that limit matters, the total is close to the least. Symbols that do not occur get
// size 0. If fewer than two occur, the lowest of the other symbols get a code too, so that every
// code is complete. counts and sizes are equally long: 2 to 512 symbols. Each count is below 2^22.
void make_code_sizes(std::span<const std::uint32_t> counts, unsigned size_max,
                     std::span<std::uint8_t> sizes);

// Computes the canonical code with these sizes (at most 15 bits). The first bit of each code is its
// lowest, as GDeflate writes them. A symbol of size 0 gets an undefined code.
void assign_codes(std::span<const std::uint8_t> sizes, std::span<std::uint16_t> codes);

}  // namespace nacre::engine::gdeflate
