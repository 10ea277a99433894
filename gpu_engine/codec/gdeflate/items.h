// SPDX-License-Identifier: Apache-2.0
// The items into which the plain bytes of a page are cut: literals and matches, in their order, and
// how often each symbol occurs among them.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <span>

#include "gpu_engine/codec/gdeflate/format.h"

namespace nacre::engine::gdeflate {

// A literal: its byte. A match: its distance above 16 bits of its size.
using Item = std::uint32_t;

// size: 3 to 65,535 bytes. distance: 1 to 65,535 bytes back.
constexpr Item make_match(unsigned size, unsigned distance) {
  return distance << 16 | size;
}
constexpr bool is_match(Item item) {
  return item >> 16 != 0;
}
// 0 for a literal.
constexpr unsigned match_distance(Item item) {
  return item >> 16;
}
// The byte of a literal, or the size of a match.
constexpr unsigned item_value(Item item) {
  return item & 0xffff;
}
// How many plain bytes the item stands for.
constexpr unsigned item_size(Item item) {
  return is_match(item) ? item_value(item) : 1;
}

// Each size from 3 to 257 belongs to a symbol; all larger sizes share the last symbol.
inline constexpr unsigned match_size_long = 258;
inline constexpr auto length_symbol_of_size = [] {
  std::array<std::uint8_t, match_size_long + 1> symbols{};
  for (unsigned symbol = 0; symbol + 1 < length_symbol_count; ++symbol)
    for (unsigned extra = 0; extra < 1u << length_symbols[symbol].bits; ++extra)
      symbols[length_symbols[symbol].base + extra] = static_cast<std::uint8_t>(symbol);
  symbols[match_size_long] = length_symbol_count - 1;
  return symbols;
}();

// The index of a match size's symbol, counted from the first length symbol. size: at least 3.
constexpr unsigned length_symbol(unsigned size) {
  return length_symbol_of_size[size < match_size_long ? size : match_size_long];
}

// distance >= 1. There are two symbols for each power of two of distance - 1, but one each for 0
// and 1.
constexpr unsigned distance_symbol(unsigned distance) {
  const unsigned reach = distance - 1;
  const auto top = static_cast<unsigned>(std::bit_width(reach | 1)) - 1;
  return 2 * top + (reach >> (top - (top != 0)) & 1);
}

// How often each symbol of the two alphabets occurs. Not thread-safe.
struct SymbolCounts {
  std::array<std::uint32_t, litlen_symbol_count> litlen{};
  std::array<std::uint32_t, distance_symbol_count> distance{};

  void add(Item item) {
    if (is_match(item)) {
      ++litlen[first_length_symbol + length_symbol(item_value(item))];
      ++distance[distance_symbol(match_distance(item))];
    } else {
      ++litlen[item];
    }
  }
  SymbolCounts& operator+=(const SymbolCounts& other) {
    for (std::size_t i = 0; i < litlen.size(); ++i)
      litlen[i] += other.litlen[i];
    for (std::size_t i = 0; i < distance.size(); ++i)
      distance[i] += other.distance[i];
    return *this;
  }
};

// The items of a page and their counts. Callers add at most page_plain_size_max items after
// clear(), which comes first: neither count nor items have an initial value. Not thread-safe.
struct ItemList {
  // Literals are added in steps of this many, and the last step may write past the last literal.
  static constexpr std::size_t step = 8;

  std::array<Item, page_plain_size_max + step> items;
  std::size_t count;
  SymbolCounts counts;  // with one end of block

  void clear() {
    count = 0;
    counts = {};
    counts.litlen[end_of_block] = 1;
  }
  void add_literal(std::uint8_t byte) {
    items[count++] = byte;
    ++counts.litlen[byte];
  }
  // Reads bytes in whole steps: up to step - 1 bytes more than size.
  void add_literals(const std::uint8_t* bytes, std::size_t size) {
    for (std::size_t i = 0; i < size; i += step)
      for (std::size_t j = 0; j < step; ++j)
        items[count + i + j] = bytes[i + j];
    for (std::size_t i = 0; i < size; ++i)
      ++counts.litlen[bytes[i]];
    count += size;
  }
  void add_match(unsigned size, unsigned distance) {
    items[count++] = make_match(size, distance);
    ++counts.litlen[first_length_symbol + length_symbol(size)];
    ++counts.distance[distance_symbol(distance)];
  }
  void add(Item item) {
    items[count++] = item;
    counts.add(item);
  }
  std::span<const Item> view() const { return {items.data(), count}; }
};

}  // namespace nacre::engine::gdeflate
