// SPDX-License-Identifier: Apache-2.0
// The codes of a block, and how many bits the block has under them. The codes are the fixed ones,
// or dynamic ones that are made for the block's own counts.
//
// A block begins with its head, three bits. Dynamic codes are described after the head, in what is
// called the header here: HLIT, HDIST, HCLEN and the code lengths (format.h).
#pragma once

#include <array>
#include <cstdint>

#include "gpu_engine/codec/gdeflate/items.h"
#include "gpu_engine/codec/gdeflate/page_writer.h"

namespace nacre::engine::gdeflate {

// The head of every block: one bit for the last block, two for the kind.
inline constexpr unsigned block_head_bits = 3;
inline constexpr unsigned stored_size_bits = 16;

struct BlockCodes {
  BlockKind kind;
  std::array<std::uint8_t, litlen_symbol_count> litlen_sizes;
  std::array<std::uint8_t, distance_symbol_count> distance_sizes;
  std::array<std::uint16_t, litlen_symbol_count> litlen_codes;
  std::array<std::uint16_t, distance_symbol_count> distance_codes;
};

// How many bits the symbols and their extra bits have, without head and header.
std::size_t count_body_bits(const SymbolCounts& counts, const BlockCodes& codes);

// The codes of RFC 1951, 3.2.6. Thread-safe.
const BlockCodes& fixed_codes();

// The best dynamic codes for these counts, and their header.
class DynamicCodes {
 public:
  explicit DynamicCodes(const SymbolCounts& counts);

  const BlockCodes& codes() const { return codes_; }
  std::size_t header_bits() const { return header_bits_; }
  // Call it right after the block's head is written.
  void write_header(PageWriter& page) const;

 private:
  // A code length, or a repeat with its extra bits.
  struct LengthItem {
    std::uint8_t symbol;
    std::uint8_t extra;
  };

  void make_length_items();
  void add_lengths(unsigned length, unsigned count);

  BlockCodes codes_;
  unsigned litlen_count_;
  unsigned distance_count_;
  unsigned length_code_count_;  // how many sizes are written, in the order of code_length_order
  std::array<std::uint8_t, code_length_symbol_count> length_code_sizes_;
  std::array<std::uint16_t, code_length_symbol_count> length_codes_;
  std::array<LengthItem, litlen_symbol_count + distance_symbol_count> length_items_;
  unsigned length_item_count_ = 0;
  std::size_t header_bits_;
};

}  // namespace nacre::engine::gdeflate
