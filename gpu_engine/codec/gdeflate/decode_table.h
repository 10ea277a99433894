// SPDX-License-Identifier: Apache-2.0
// Huffman codes as look-up tables for a decoder that sees the next bits of a lane, lowest first.
//
// The table is indexed with the next direct_bits bits. An entry tells all about a symbol: a base
// value, the size of the code in bits, and that size with the extra bits, which are to be added to
// the value. The entry of a code longer than direct_bits names a subtable, which is indexed with
// the bits that follow.
#pragma once

#include <cstdint>
#include <span>

#include "gpu_engine/codec/gdeflate/format.h"

namespace nacre::engine::gdeflate {

// From the top: value:16 | is_subtable | is_unusable | 0:2 | code bits:4 | is_end | is_match | 0:1
// | all bits:5. The zeros above both counts of bits make six-bit fields of them, so that a 64-bit
// shift can use them without a further mask.
using TableEntry = std::uint32_t;

inline constexpr TableEntry entry_is_subtable = 1u << 15;  // value = index of the subtable
inline constexpr TableEntry entry_is_unusable = 1u << 14;  // no code, or a symbol of no meaning
inline constexpr TableEntry entry_is_end = 1u << 7;
inline constexpr TableEntry entry_is_match = 1u << 6;

constexpr unsigned entry_value(TableEntry entry) {
  return entry >> 16;
}
constexpr unsigned entry_code_bits(TableEntry entry) {
  return entry >> 8 & 63;
}
constexpr unsigned entry_all_bits(TableEntry entry) {
  return entry & 63;
}
// The value with its extra bits.
constexpr unsigned entry_value(TableEntry entry, std::uint64_t bits) {
  const std::uint64_t code_and_extra = bits & ((std::uint64_t{1} << entry_all_bits(entry)) - 1);
  return entry_value(entry) + static_cast<unsigned>(code_and_extra >> entry_code_bits(entry));
}

inline constexpr unsigned direct_bits = 11;
inline constexpr unsigned direct_count = 1u << direct_bits;
inline constexpr unsigned subtable_bits = code_size_bits_max - direct_bits;
// Each subtable of a complete code holds at least two symbols.
inline constexpr unsigned table_size_max =
    direct_count + (litlen_symbol_count_max / 2 << subtable_bits);

using DecodeTable = std::array<TableEntry, table_size_max>;

constexpr TableEntry look_up(const TableEntry* table, std::uint64_t bits) {
  const TableEntry entry = table[bits % direct_count];
  if (!(entry & entry_is_subtable)) return entry;
  return table[entry_value(entry) + (bits >> direct_bits) % (1u << subtable_bits)];
}

// By symbol: the table entry without the bits of its code (add_code() in the .cpp adds these).
std::span<const TableEntry> litlen_meanings();
std::span<const TableEntry> distance_meanings();
std::span<const TableEntry> code_length_meanings();

// Builds the table of the canonical code with these sizes by symbol (0 = no code; there are at most
// as many sizes as meanings). False when the sizes are not those of a complete prefix code. Two
// incomplete codes are allowed: no symbol at all, and a single symbol with a code of one bit; what
// they leave free is entry_is_unusable. index_bits: direct_bits, or less if no code is longer.
// Thread-safe.
bool build_table(std::span<const std::uint8_t> code_sizes, std::span<const TableEntry> meanings,
                 unsigned index_bits, DecodeTable& table);

// How many tables the calling thread has built. A page's decoding cost is bounded by its bits and
// by this count; tests check that bound.
std::uint64_t built_table_count();

}  // namespace nacre::engine::gdeflate
