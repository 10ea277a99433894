// SPDX-License-Identifier: Apache-2.0
// The rounds of a block whose codes are known. The lanes of a round read at once; sums over the
// lanes say where their bytes go. The matches of a round are copied in the next one, when their
// distances are known.
#pragma once

#include "gpu_engine/cuda/kernels/gdeflate_matches.cuh"

namespace nacre::engine::cuda::gdeflate {

// A page that is being decoded.
template <typename Warp>
struct PageState {
  Warp warp;
  PageMemory& memory;
  LaneReader<Warp> reader;
  Byte* const out;
  const std::uint32_t out_size;
  std::uint32_t at;  // bytes of the literals and matches so far
};

// Copier: what copies matches (MatchCopier).
template <typename Warp, typename Copier>
class RoundDecoder {
 public:
  NACRE_LANE_CODE RoundDecoder(PageState<Warp>& page, Copier& copier)
      : warp_(page.warp), page_(page), copier_(copier) {}

  // False: the page is not valid.
  NACRE_LANE_CODE bool decode() { return decode_whole_rounds() && decode_last_rounds(); }

  // The same for a block whose code has no lengths.
  NACRE_LANE_CODE bool decode_literals() {
    return decode_whole_literals() && decode_last_literals();
  }

 private:
  NACRE_LANE_CODE std::uint32_t look_up_litlen() const {
    return look_up_code(page_.memory.tables, page_.reader.bits(), 0, litlen_shape.direct_bits);
  }
  NACRE_LANE_CODE std::uint32_t look_up(bool finishes) const {
    return look_up_code(page_.memory.tables, page_.reader.bits(), finishes ? distance_table_at : 0,
                        finishes ? distance_shape.direct_bits : litlen_shape.direct_bits);
  }

  // What a lane reads.
  struct Item {
    EntryKind kind;
    std::uint32_t payload;
    std::uint32_t bits;   // of code and extra bits
    std::uint32_t value;  // of a length or distance
  };
  NACRE_LANE_CODE Item read_item(std::uint32_t entry, bool finishes) const {
    const std::uint32_t payload = entry_payload(entry);
    const EntryKind kind = entry_kind(entry);
    const SymbolValue symbol = {payload / 32, kind == EntryKind::value ? payload % 32 : 0};
    const std::uint32_t extra =
        page_.reader.bits() >> code_bits_of(entry) & ((1u << symbol.extra_bits) - 1);
    return {kind, payload, code_bits_of(entry) + symbol.extra_bits,
            symbol.base(finishes ? first_distance : match_size_min) + extra};
  }

  // Where the bytes of literals and matches that begin in this round go. False: not into out.
  struct Placement {
    std::uint32_t place;  // this lane's
    std::uint32_t size;   // of all
  };
  NACRE_LANE_CODE Placement place(std::uint32_t literals, std::uint32_t begins,
                                  std::uint32_t match_size) const {
    Placement placed = {page_.at + warp_.popcount(literals & lanes_before(warp_)),
                        warp_.popcount(literals)};
    if (begins != 0) {
      const std::uint32_t size = (begins >> warp_.lane() & 1) != 0 ? match_size : 0;
      const std::uint32_t sum = sum_up_to_here(warp_, size);
      placed.place += sum - size;
      placed.size += warp_.shuffle(sum, lane_count - 1);
    }
    return placed;
  }

  // Rounds in which every lane reads what is valid, and none the end of the block. Stops before the
  // first other one. Once for each block.
  NACRE_LANE_CODE bool decode_whole_rounds() {
    std::uint32_t entry = look_up(false);
    for (;;) {
      const bool finishes = (begun_ >> warp_.lane() & 1) != 0;
      const Item item = read_item(entry, finishes);
      if (warp_.ballot(item.kind == EntryKind::stop || (finishes && item.value > match_.to)) != 0)
        return true;
      page_.reader.skip(item.bits);
      page_.reader.refill();
      const std::uint32_t literals = warp_.ballot(item.kind == EntryKind::literal);
      const std::uint32_t begins = ~(literals | begun_);
      entry = look_up((begins >> warp_.lane() & 1) != 0);  // early: it takes its time
      const Placement placed = place(literals, begins, item.value);
      if (placed.size > page_.out_size - page_.at || page_.reader.torn()) return false;
      page_.at += placed.size;
      if (item.kind == EntryKind::literal)
        warp_.store(page_.out + placed.place, static_cast<Byte>(item.payload));
      if (begun_ != 0) {
        match_.distance = item.value;
        copier_.copy(begun_, match_);
      }
      begun_ = begins;
      match_ = {placed.place, item.value, 0};
    }
  }

  // The round with the end of the block, and the one behind it that gives the last distances.
  NACRE_LANE_CODE bool decode_last_rounds() {
    bool is_ended = false;
    do {
      const bool finishes = (begun_ >> warp_.lane() & 1) != 0;
      bool reads = finishes || !is_ended;
      const Item item = read_item(look_up(finishes), finishes);
      const std::uint32_t stops = warp_.ballot(reads && item.kind == EntryKind::stop);
      if (stops != 0) {
        // Only the end of a block, in a lane that is not to give a distance, is no error there.
        const std::uint32_t first = warp_.lowest(stops & ~begun_);
        if ((stops & begun_) != 0 || warp_.shuffle(item.payload, first) != 0) return false;
        reads = finishes || warp_.lane() <= first;
        is_ended = true;
      }
      if (warp_.ballot(finishes && item.value > match_.to) != 0) return false;
      if (reads) page_.reader.skip(item.bits);
      page_.reader.refill();
      const std::uint32_t literals = warp_.ballot(reads && item.kind == EntryKind::literal);
      const std::uint32_t begins =
          warp_.ballot(reads && !finishes && item.kind == EntryKind::value);
      const Placement placed = place(literals, begins, item.value);
      if (placed.size > page_.out_size - page_.at || page_.reader.torn()) return false;
      page_.at += placed.size;
      if ((literals >> warp_.lane() & 1) != 0)
        warp_.store(page_.out + placed.place, static_cast<Byte>(item.payload));
      if (begun_ != 0) {
        match_.distance = item.value;
        copier_.copy(begun_, match_);
      }
      begun_ = begins;
      match_ = {placed.place, item.value, 0};
    } while (!is_ended || begun_ != 0);
    return true;
  }

  // A lane holds 17 bits and more behind a literal: enough to look up the next code before the
  // lane's next word is there.
  NACRE_LANE_CODE bool decode_whole_literals() {
    std::uint32_t entry = look_up_litlen();
    while (page_.out_size - page_.at >= lane_count &&
           warp_.ballot(entry_kind(entry) == EntryKind::stop) == 0) {
      page_.reader.skip(code_bits_of(entry));
      const std::uint32_t next = look_up_litlen();
      warp_.store(page_.out + page_.at + warp_.lane(), static_cast<Byte>(entry_payload(entry)));
      page_.at += lane_count;
      page_.reader.refill();
      if (page_.reader.torn()) return false;
      entry = next;
    }
    return true;
  }

  // The round with the end of the block.
  NACRE_LANE_CODE bool decode_last_literals() {
    const std::uint32_t entry = look_up_litlen();
    const std::uint32_t stops = warp_.ballot(entry_kind(entry) == EntryKind::stop);
    const std::uint32_t count = stops == 0 ? lane_count : warp_.lowest(stops);
    if (count > page_.out_size - page_.at) return false;
    if (warp_.lane() <= count) page_.reader.skip(code_bits_of(entry));
    if (warp_.lane() < count)
      warp_.store(page_.out + page_.at + warp_.lane(), static_cast<Byte>(entry_payload(entry)));
    page_.at += count;
    page_.reader.refill();
    return !page_.reader.torn() && warp_.shuffle(entry_payload(entry), count) == 0;
  }

  const Warp warp_;
  PageState<Warp>& page_;
  Copier& copier_;
  std::uint32_t begun_ = 0;  // lanes whose match lacks its distance
  Match match_{};
};

}  // namespace nacre::engine::cuda::gdeflate
