// SPDX-License-Identifier: Apache-2.0
// Writes the rounds of a block. A match occupies its lane in two rounds: its length in one, its
// distance in the next. So a round is laid out first: distances of matches that the round before
// began, and new items in the other lanes. Then its 32 codes go to the lanes in their order.
#include "gpu_engine/codec/gdeflate/block_writer.h"

#include <algorithm>
#include <bit>

namespace nacre::engine::gdeflate {
namespace {

// The bits of each item. The table has an entry for each literal and then one for each size of a
// match, extra bits included. The last entry stands for all sizes from match_size_long on, and
// lacks their extra bits.
class ItemCodes {
 public:
  explicit ItemCodes(const BlockCodes& codes) : codes_(codes) {
    for (unsigned byte = 0; byte < literal_symbol_count; ++byte)
      table_[byte] = {codes.litlen_codes[byte], codes.litlen_sizes[byte]};
    for (unsigned size = match_size_min; size <= match_size_long; ++size) {
      const unsigned symbol = length_symbol(size);
      const unsigned code_size = codes.litlen_sizes[first_length_symbol + symbol];
      const unsigned code = codes.litlen_codes[first_length_symbol + symbol];
      const unsigned extra = size - length_symbols[symbol].base;
      table_[first_size + size] =
          size < match_size_long
              ? LaneCode{code | extra << code_size, code_size + length_symbols[symbol].bits}
              : LaneCode{code, code_size};
    }
    for (unsigned symbol = 0; symbol < distance_symbol_count; ++symbol)
      distances_[symbol] = {codes.distance_codes[symbol], codes.distance_sizes[symbol],
                            distance_symbols[symbol].bits, distance_symbols[symbol].base};
  }

  // The code of a literal, or of a match's length.
  LaneCode litlen(Item item) const {
    const unsigned value = item_value(item);
    if (value < match_size_long) [[likely]]
      return table_[value + (is_match(item) ? first_size : 0)];
    const LaneCode code = table_[first_size + match_size_long];
    constexpr ExtraBits extra = length_symbols[length_symbol_count - 1];
    return {code.bits | (value - extra.base) << code.count, code.count + extra.bits};
  }
  // The code of a match's distance; for a literal the result has no meaning.
  LaneCode distance(Item item) const {
    const unsigned distance = match_distance(item) + !is_match(item);
    const DistanceCode& code = distances_[distance_symbol(distance)];
    return {code.bits | (distance - code.base) << code.count, code.count + unsigned{code.extra}};
  }
  LaneCode end() const {
    return {codes_.litlen_codes[end_of_block], codes_.litlen_sizes[end_of_block]};
  }

 private:
  static constexpr unsigned first_size = literal_symbol_count;
  struct DistanceCode {
    std::uint16_t bits;
    std::uint8_t count;
    std::uint8_t extra;
    std::uint32_t base;
  };

  const BlockCodes& codes_;
  std::array<LaneCode, first_size + match_size_long + 1> table_;
  std::array<DistanceCode, distance_symbol_count> distances_;
};

}  // namespace

void write_block_head(PageWriter& page, bool is_last, BlockKind kind) {
  page.put(0, {static_cast<unsigned>(is_last) | static_cast<unsigned>(kind) << 1, block_head_bits});
}

void write_stored(PageWriter& page, ByteView plain) {
  page.put(0, {static_cast<std::uint32_t>(plain.size()), stored_size_bits});
  for (std::size_t i = 0; i < plain.size(); ++i)
    page.put(i % lane_count, {plain[i], 8});
}

void write_items(PageWriter& page, const BlockCodes& codes, std::span<const Item> items) {
  const ItemCodes item_codes(codes);
  std::array<RoundCodes, 2> rounds{};
  std::uint32_t begun = 0;  // mask of lanes that get a distance in this round
  unsigned now = 0;
  const Item* next = items.data();
  const Item* const end = next + items.size();
  bool is_ended = false;
  while (!is_ended || begun != 0) {
    RoundCodes& round = rounds[now];
    RoundCodes& following = rounds[1 - now];
    std::uint32_t begins = 0;
    for (std::uint32_t free = ~begun; free != 0; free &= free - 1) {
      const auto lane = static_cast<unsigned>(std::countr_zero(free));
      if (next == end) {
        round.lanes[lane] = is_ended ? LaneCode{} : item_codes.end();
        is_ended = true;
        continue;
      }
      const Item item = *next++;
      round.lanes[lane] = item_codes.litlen(item);
      following.lanes[lane] = item_codes.distance(item);
      begins |= std::uint32_t{is_match(item)} << lane;
    }
    page.put_round(round);
    begun = begins;
    now = 1 - now;
  }
}

void write_literals(PageWriter& page, const BlockCodes& codes, ByteView plain) {
  std::array<LaneCode, literal_symbol_count> table;
  for (unsigned byte = 0; byte < literal_symbol_count; ++byte)
    table[byte] = {codes.litlen_codes[byte], codes.litlen_sizes[byte]};
  RoundCodes round;
  for (; plain.size() >= lane_count; plain = plain.subspan(lane_count)) {
    for (unsigned lane = 0; lane < lane_count; ++lane)
      round.lanes[lane] = table[plain[lane]];
    page.put_round(round);
  }
  for (unsigned lane = 0; lane < plain.size(); ++lane)
    page.put(lane, table[plain[lane]]);
  page.put(static_cast<unsigned>(plain.size()),
           {codes.litlen_codes[end_of_block], codes.litlen_sizes[end_of_block]});
}

}  // namespace nacre::engine::gdeflate
