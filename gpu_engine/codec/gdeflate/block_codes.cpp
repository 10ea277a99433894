// SPDX-License-Identifier: Apache-2.0
// Makes dynamic codes and their header, as RFC 1951, 3.2.7, defines it.
#include "gpu_engine/codec/gdeflate/block_codes.h"

#include <algorithm>

#include "gpu_engine/codec/gdeflate/huffman_code.h"

namespace nacre::engine::gdeflate {
namespace {

constexpr unsigned length_count_bits = 5;
constexpr unsigned length_code_count_bits = 4;
constexpr unsigned length_code_count_min = 4;
constexpr unsigned length_code_size_bits = 3;

constexpr unsigned extra_bits_of(unsigned length_item) {
  return length_item == code_length_repeat       ? 2
         : length_item == code_length_zeros      ? 3
         : length_item == code_length_many_zeros ? 7
                                                 : 0;
}

}  // namespace

std::size_t count_body_bits(const SymbolCounts& counts, const BlockCodes& codes) {
  std::size_t bits = 0;
  for (unsigned i = 0; i < litlen_symbol_count; ++i)
    bits += std::size_t{counts.litlen[i]} * codes.litlen_sizes[i];
  for (unsigned i = 0; i < length_symbol_count; ++i)
    bits += std::size_t{counts.litlen[first_length_symbol + i]} * length_symbols[i].bits;
  for (unsigned i = 0; i < distance_symbol_count; ++i)
    bits += std::size_t{counts.distance[i]} * (codes.distance_sizes[i] + distance_symbols[i].bits);
  return bits;
}

const BlockCodes& fixed_codes() {
  static const BlockCodes fixed = [] {
    BlockCodes codes;
    codes.kind = BlockKind::fixed_codes;
    std::array<std::uint8_t, litlen_symbol_count_max> sizes;
    std::array<std::uint16_t, litlen_symbol_count_max> all_codes;
    for (unsigned symbol = 0; symbol < sizes.size(); ++symbol)
      sizes[symbol] = fixed_litlen_code_size(symbol);
    assign_codes(sizes, all_codes);
    std::copy_n(sizes.begin(), codes.litlen_sizes.size(), codes.litlen_sizes.begin());
    std::copy_n(all_codes.begin(), codes.litlen_codes.size(), codes.litlen_codes.begin());
    codes.distance_sizes.fill(fixed_distance_code_size);
    assign_codes(codes.distance_sizes, codes.distance_codes);
    return codes;
  }();
  return fixed;
}

DynamicCodes::DynamicCodes(const SymbolCounts& counts) {
  codes_.kind = BlockKind::dynamic_codes;
  make_code_sizes(counts.litlen, code_size_bits_max, codes_.litlen_sizes);
  make_code_sizes(counts.distance, code_size_bits_max, codes_.distance_sizes);
  assign_codes(codes_.litlen_sizes, codes_.litlen_codes);
  assign_codes(codes_.distance_sizes, codes_.distance_codes);

  litlen_count_ = litlen_symbol_count;
  while (litlen_count_ > first_length_symbol && codes_.litlen_sizes[litlen_count_ - 1] == 0)
    --litlen_count_;
  distance_count_ = distance_symbol_count;
  while (distance_count_ > 1 && codes_.distance_sizes[distance_count_ - 1] == 0)
    --distance_count_;
  make_length_items();

  std::array<std::uint32_t, code_length_symbol_count> length_counts{};
  for (unsigned i = 0; i < length_item_count_; ++i)
    ++length_counts[length_items_[i].symbol];
  make_code_sizes(length_counts, code_length_code_size_bits_max, length_code_sizes_);
  assign_codes(length_code_sizes_, length_codes_);
  length_code_count_ = code_length_symbol_count;
  while (length_code_count_ > length_code_count_min &&
         length_code_sizes_[code_length_order[length_code_count_ - 1]] == 0)
    --length_code_count_;

  header_bits_ =
      2 * length_count_bits + length_code_count_bits + length_code_count_ * length_code_size_bits;
  for (unsigned i = 0; i < code_length_symbol_count; ++i)
    header_bits_ += std::size_t{length_counts[i]} * (length_code_sizes_[i] + extra_bits_of(i));
}

// The code lengths of both alphabets make one sequence, which is cut into runs of equal lengths.
void DynamicCodes::make_length_items() {
  std::array<std::uint8_t, litlen_symbol_count + distance_symbol_count> lengths;
  std::copy_n(codes_.litlen_sizes.begin(), litlen_count_, lengths.begin());
  std::copy_n(codes_.distance_sizes.begin(), distance_count_, lengths.begin() + litlen_count_);
  const unsigned count = litlen_count_ + distance_count_;
  for (unsigned start = 0, end = 0; start < count; start = end) {
    while (end < count && lengths[end] == lengths[start])
      ++end;
    add_lengths(lengths[start], end - start);
  }
}

void DynamicCodes::add_lengths(unsigned length, unsigned count) {
  const auto add = [this](unsigned symbol, unsigned extra) {
    length_items_[length_item_count_++] = {static_cast<std::uint8_t>(symbol),
                                           static_cast<std::uint8_t>(extra)};
  };
  if (length == 0) {
    for (; count >= 11; count -= std::min(count, 138u))
      add(code_length_many_zeros, std::min(count, 138u) - 11);
    if (count >= 3) {
      add(code_length_zeros, count - 3);
      count = 0;
    }
  } else if (count >= 4) {
    add(length, 0);
    --count;
    for (; count >= 3; count -= std::min(count, 6u))
      add(code_length_repeat, std::min(count, 6u) - 3);
  }
  for (; count > 0; --count)
    add(length, 0);
}

void DynamicCodes::write_header(PageWriter& page) const {
  page.put(0, {litlen_count_ - first_length_symbol, length_count_bits});
  page.put(0, {distance_count_ - 1, length_count_bits});
  page.put(0, {length_code_count_ - length_code_count_min, length_code_count_bits});
  for (unsigned i = 0; i < length_code_count_; ++i)
    page.put(i, {length_code_sizes_[code_length_order[i]], length_code_size_bits});
  for (unsigned i = 0; i < length_item_count_; ++i) {
    const LengthItem item = length_items_[i];
    const unsigned size = length_code_sizes_[item.symbol];
    page.put(i % lane_count,
             {length_codes_[item.symbol] | static_cast<unsigned>(item.extra) << size,
              size + extra_bits_of(item.symbol)});
  }
}

}  // namespace nacre::engine::gdeflate
