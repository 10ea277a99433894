// SPDX-License-Identifier: Apache-2.0
// Canonical codes (RFC 1951, 3.2.2), bit-reversed, as tables.
#include "gpu_engine/codec/gdeflate/decode_table.h"

#include <algorithm>

namespace nacre::engine::gdeflate {
namespace {

constexpr TableEntry make_meaning(unsigned value, unsigned extra_bits, TableEntry flags) {
  return value << 16 | flags | extra_bits;
}

constexpr auto litlen_table = [] {
  std::array<TableEntry, litlen_symbol_count_max> meanings{};
  for (unsigned i = 0; i < literal_symbol_count; ++i)
    meanings[i] = make_meaning(i, 0, 0);
  meanings[end_of_block] = make_meaning(0, 0, entry_is_end);
  for (unsigned i = 0; i < length_symbol_count; ++i)
    meanings[first_length_symbol + i] =
        make_meaning(length_symbols[i].base, length_symbols[i].bits, entry_is_match);
  for (unsigned i = litlen_symbol_count; i < litlen_symbol_count_max; ++i)
    meanings[i] = make_meaning(0, 0, entry_is_unusable);
  return meanings;
}();

constexpr auto distance_table = [] {
  std::array<TableEntry, distance_symbol_count> meanings{};
  for (unsigned i = 0; i < distance_symbol_count; ++i)
    meanings[i] = make_meaning(distance_symbols[i].base, distance_symbols[i].bits, 0);
  return meanings;
}();

constexpr auto code_length_table = [] {
  std::array<TableEntry, code_length_symbol_count> meanings{};
  for (unsigned i = 0; i < code_length_symbol_count; ++i)
    meanings[i] = make_meaning(i, 0, 0);
  return meanings;
}();

thread_local std::uint64_t tables_built = 0;

TableEntry add_code(TableEntry meaning, unsigned size) {
  return meaning + (size << 8 | size);
}

// Enters the codes longer than direct_bits, which come in the order of the canonical code. Codes
// that begin with the same direct_bits bits come one after the other and share a subtable.
class SubtableBuilder {
 public:
  explicit SubtableBuilder(DecodeTable& table) : table_(table) {}

  void add(unsigned code, unsigned size, TableEntry meaning) {
    const unsigned reversed = reverse_code(code, size);
    if (reversed % direct_count != prefix_) {
      prefix_ = reversed % direct_count;
      start_ += 1u << subtable_bits;
      table_[prefix_] = start_ << 16 | entry_is_subtable;
    }
    const unsigned stride = 1u << (size - direct_bits);
    for (unsigned i = reversed >> direct_bits; i < 1u << subtable_bits; i += stride)
      table_[start_ + i] = add_code(meaning, size);
  }

 private:
  DecodeTable& table_;
  unsigned prefix_ = direct_count;
  unsigned start_ = direct_count - (1u << subtable_bits);
};

}  // namespace

std::span<const TableEntry> litlen_meanings() {
  return litlen_table;
}
std::span<const TableEntry> distance_meanings() {
  return distance_table;
}
std::span<const TableEntry> code_length_meanings() {
  return code_length_table;
}

std::uint64_t built_table_count() {
  return tables_built;
}

bool build_table(std::span<const std::uint8_t> code_sizes, std::span<const TableEntry> meanings,
                 unsigned index_bits, DecodeTable& table) {
  ++tables_built;
  std::array<unsigned, code_size_bits_max + 1> counts{};
  for (const std::uint8_t size : code_sizes)
    ++counts[size];
  counts[0] = 0;

  // The first code of each size, the place of its symbol in the order of codes, and how many of the
  // 2^15 codes of 15 bits are used up.
  std::array<unsigned, code_size_bits_max + 2> next_code{};
  std::array<unsigned, code_size_bits_max + 2> next_place{};
  unsigned used = 0;
  unsigned longest = 0;
  for (unsigned size = 1; size <= code_size_bits_max; ++size) {
    next_code[size + 1] = (next_code[size] + counts[size]) << 1;
    next_place[size + 1] = next_place[size] + counts[size];
    used += counts[size] << (code_size_bits_max - size);
    if (counts[size] != 0) longest = size;
  }
  // If all codes are shorter than the index, only 2^longest entries are computed. The rest of the
  // table repeats them.
  const unsigned filled_bits = std::min(index_bits, longest);
  const unsigned code_count = next_place[code_size_bits_max + 1];
  if (used != 1u << code_size_bits_max) {
    if (code_count > 1 || code_count != counts[1]) return false;
    std::fill_n(table.begin(), 1u << filled_bits, entry_is_unusable);
  }

  std::array<std::uint16_t, litlen_symbol_count_max> long_symbols;  // in the order of codes
  for (unsigned symbol = 0; symbol < code_sizes.size(); ++symbol) {
    const unsigned size = code_sizes[symbol];
    if (size == 0) continue;
    if (size > index_bits) {
      long_symbols[next_place[size]++] = static_cast<std::uint16_t>(symbol);
      continue;
    }
    const TableEntry entry = add_code(meanings[symbol], size);
    for (unsigned i = reverse_code(next_code[size]++, size); i < 1u << filled_bits; i += 1u << size)
      table[i] = entry;
  }
  for (unsigned bits = filled_bits; bits < index_bits; ++bits)
    std::copy_n(table.begin(), 1u << bits, table.begin() + (1u << bits));

  SubtableBuilder subtables(table);
  for (unsigned size = index_bits + 1; size <= code_size_bits_max; ++size) {
    for (unsigned place = next_place[size] - counts[size]; place < next_place[size]; ++place)
      subtables.add(next_code[size]++, size, meanings[long_symbols[place]]);
  }
  return true;
}

}  // namespace nacre::engine::gdeflate
