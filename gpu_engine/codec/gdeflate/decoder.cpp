// SPDX-License-Identifier: Apache-2.0
// The plain decoder: block by block, round by round, lane by lane, as format.h describes it. It
// checks every read and every write. The fast rounds (fast_rounds.h) decode the middle of a block,
// where they can tell in advance that nothing will go wrong; the plain decoder does the rest.
#include "gpu_engine/codec/gdeflate/decoder.h"

#include <algorithm>

#include "gpu_engine/codec/gdeflate/decode_table.h"
#include "gpu_engine/codec/gdeflate/fast_rounds.h"
#include "gpu_engine/codec/gdeflate/lanes.h"
#include "gpu_engine/codec/workspace.h"

namespace nacre::engine::gdeflate {
namespace {

// The tables of RFC 1951, 3.2.6. They are built once, not for each block, because a block of fixed
// codes may be as short as ten bits.
const BlockTables& fixed_tables() {
  static const BlockTables tables = [] {
    BlockTables made;
    std::array<std::uint8_t, litlen_symbol_count_max> litlen;
    for (unsigned symbol = 0; symbol < litlen.size(); ++symbol)
      litlen[symbol] = fixed_litlen_code_size(symbol);
    std::array<std::uint8_t, distance_symbol_count> distance;
    distance.fill(fixed_distance_code_size);
    build_table(litlen, litlen_meanings(), direct_bits, made.litlen());
    build_table(distance, distance_meanings(), direct_bits, made.distance());
    return made;
  }();
  return tables;
}

class PageDecoder {
 public:
  PageDecoder(ByteView page, MutableByteView plain, BlockTables& tables, bool is_fast)
      : lanes_(page), plain_(plain), tables_(tables), is_fast_(is_fast) {}

  bool run() {
    bool is_last = false;
    while (!is_last) {
      is_last = lanes_.take(0, 1) != 0;
      const unsigned kind = lanes_.take(0, 2);
      lanes_.refill(0);
      if (lanes_.torn || !decode_block(static_cast<BlockKind>(kind))) return false;
    }
    return at_ == plain_.size() && lanes_.at_end();
  }

 private:
  bool decode_block(BlockKind kind) {
    switch (kind) {
      case BlockKind::stored:
        return copy_stored();
      case BlockKind::fixed_codes:
        return decode_rounds(fixed_tables());
      case BlockKind::dynamic_codes:
        return read_codes() && decode_rounds(tables_);
    }
    return false;
  }

  bool copy_stored() {
    const unsigned size = lanes_.take(0, 16);
    lanes_.refill(0);
    if (size > plain_.size() - at_) return false;
    for (unsigned i = 0; i < size; ++i) {
      plain_[at_++] = static_cast<Byte>(lanes_.take(i % lane_count, 8));
      lanes_.refill(i % lane_count);
    }
    return !lanes_.torn;
  }

  bool read_codes() {
    const unsigned litlen_count = first_length_symbol + lanes_.take(0, 5);
    const unsigned distance_count = 1 + lanes_.take(0, 5);
    const unsigned size_count = 4 + lanes_.take(0, 4);
    lanes_.refill(0);

    std::array<std::uint8_t, code_length_symbol_count> sizes{};
    for (unsigned i = 0; i < size_count; ++i) {
      sizes[code_length_order[i]] = static_cast<std::uint8_t>(lanes_.take(i, 3));
      lanes_.refill(i);
    }
    if (!build_table(sizes, code_length_meanings(), code_length_code_size_bits_max,
                     tables_.code_lengths))
      return false;

    // A repeat may run from the one alphabet into the other, but not past both.
    std::array<std::uint8_t, litlen_symbol_count_max + distance_symbol_count> lengths;
    const unsigned length_count = litlen_count + distance_count;
    unsigned known = 0;
    for (unsigned lane = 0; known < length_count; lane = (lane + 1) % lane_count) {
      const TableEntry entry =
          tables_.code_lengths[lanes_.bits[lane] % (1u << code_length_code_size_bits_max)];
      if (entry & entry_is_unusable) return false;
      lanes_.skip(lane, entry_code_bits(entry));
      unsigned length = entry_value(entry);
      unsigned count = 1;
      if (length == code_length_repeat) {
        if (known == 0) return false;
        length = lengths[known - 1];
        count = 3 + lanes_.take(lane, 2);
      } else if (length == code_length_zeros) {
        length = 0;
        count = 3 + lanes_.take(lane, 3);
      } else if (length == code_length_many_zeros) {
        length = 0;
        count = 11 + lanes_.take(lane, 7);
      }
      lanes_.refill(lane);
      if (count > length_count - known) return false;
      std::fill_n(lengths.begin() + known, count, static_cast<std::uint8_t>(length));
      known += count;
    }
    const std::span all(lengths);
    return !lanes_.torn &&
           build_table(all.first(litlen_count), litlen_meanings(), direct_bits, tables_.litlen()) &&
           build_table(all.subspan(litlen_count, distance_count), distance_meanings(), direct_bits,
                       tables_.distance());
  }

  bool decode_rounds(const BlockTables& tables) {
    begun_ = 0;
    if (is_fast_ && !run_fast_rounds(tables, lanes_, plain_, at_, begun_, matches_)) return false;
    bool is_ended = false;
    while (!is_ended || begun_ != 0) {
      for (unsigned lane = 0; lane < lane_count; ++lane) {
        const std::uint32_t lane_bit = 1u << lane;
        if (begun_ & lane_bit) {
          begun_ &= ~lane_bit;
          if (!finish_match(tables.distance(), lane)) return false;
        } else if (!is_ended) {
          if (!decode_litlen(tables.litlen(), lane, is_ended)) return false;
        } else {
          continue;
        }
        lanes_.refill(lane);
      }
      if (lanes_.torn) return false;
    }
    return true;
  }

  bool decode_litlen(const DecodeTable& table, unsigned lane, bool& is_ended) {
    const TableEntry entry = look_up(table.data(), lanes_.bits[lane]);
    if (entry & entry_is_unusable) return false;
    const unsigned value = entry_value(entry, lanes_.bits[lane]);
    lanes_.skip(lane, entry_all_bits(entry));
    if (entry & entry_is_end) {
      is_ended = true;
    } else if (entry & entry_is_match) {
      if (value > plain_.size() - at_) return false;
      begun_ |= 1u << lane;
      matches_[lane] = {.at = static_cast<std::uint32_t>(at_), .size = value};
      at_ += value;
    } else {
      if (at_ == plain_.size()) return false;
      plain_[at_++] = static_cast<Byte>(value);
    }
    return true;
  }

  bool finish_match(const DecodeTable& table, unsigned lane) {
    const TableEntry entry = look_up(table.data(), lanes_.bits[lane]);
    if (entry & entry_is_unusable) return false;
    const unsigned distance = entry_value(entry, lanes_.bits[lane]);
    lanes_.skip(lane, entry_all_bits(entry));
    const BegunMatch match = matches_[lane];
    if (distance > match.at) return false;
    Byte* const to = plain_.data() + match.at;
    for (unsigned i = 0; i < match.size; ++i)
      to[i] = (to - distance)[i];
    return true;
  }

  Lanes lanes_;
  MutableByteView plain_;
  std::size_t at_ = 0;   // plain bytes so far, those of begun matches included
  BlockTables& tables_;  // of the last block with dynamic codes
  bool is_fast_;
  std::uint32_t begun_ = 0;  // lanes whose match lacks its distance
  BegunMatches matches_;
};

bool decode(ByteView page, MutableByteView plain, bool is_fast) {
  if (page.size() < page_size_bytes_min || page.size() % word_size_bytes != 0 ||
      plain.size() > page_plain_size_max)
    return false;
  return PageDecoder(page, plain, thread_workspace<BlockTables>(), is_fast).run();
}

}  // namespace

bool decode_page(ByteView page, MutableByteView plain) {
  return decode(page, plain, true);
}

bool decode_page_plainly(ByteView page, MutableByteView plain) {
  return decode(page, plain, false);
}

}  // namespace nacre::engine::gdeflate
