// SPDX-License-Identifier: Apache-2.0
// Decodes a GDeflate page with a warp, whose lane i reads lane i of the page: block by block, as
// codec/gdeflate/format.h describes. Accepts the pages that codec/gdeflate/decoder.h accepts.
//
// The plain loop of a block, without its checks; match[lane].size is 0 if lane has begun no match:
//
//   for (is_ended = false; !is_ended || any match has a size;) {     // a round
//     for (lane = 0; lane < 32; ++lane) {
//       if (match[lane].size != 0) {
//         distance = read a distance from lane;
//         copy match[lane].size bytes from distance back to match[lane].to, match[lane].size = 0;
//       } else if (!is_ended) {
//         symbol = read a symbol from lane;
//         if it is a literal: out[at++] = symbol;
//         if it is a length:  match[lane] = {at, size}, at += size;
//         if it ends the block: is_ended = true;
//       }
//       if lane holds fewer than 32 bits: give it the page's next word;
//     }
//   }
//
// What a lane reads depends on the round before, but on no other lane of the same round. The steps:
//
// 1. All lanes read at once. A mask that all lanes know says which of them have a distance to read.
//    A lane that needs a word counts the lanes before it that need one too; so it knows which word
//    of the page it gets. The next 64 words wait in registers (LaneReader).
// 2. Counts and sums give the places. A literal's place is the count of literals before it in the
//    round; if a match begins in the round, an inclusive sum of the matches' sizes is added.
// 3. Matches are copied a round later, when their distances are read and every literal of their
//    round is stored. The matches of a round may copy from each other and from themselves, so they
//    are not copied one by one. Instead all bytes from the first match's begin to the last one's
//    end, literals between them included, are written 32 at a time, one byte per lane. A lane
//    counts the matches that begin at or before its byte, to know which one has the byte. The
//    byte's source is already written, or is one of the same 32 bytes; then pointer doubling finds
//    the lane that has the value (MatchCopier). So no match is a special case.
// 4. The last rounds are separate. All rounds but those around the end of the block run in a loop
//    that stops before them. There the next look-up begins before this round's bytes are placed,
//    which hides its latency. In a block without lengths lane k writes byte at + k, so its rounds
//    need no sums.
//
// gdeflate_decode.cu has the counts and what was measured. Another way was tried: copy all matches
// whose sources are written, and repeat until all are copied (Gompresso's rounds, Sitaridis et al.,
// ICPP 2016). It took up to three times as long, since repetitive pieces need many passes.
#pragma once

#include "gpu_engine/cuda/kernels/gdeflate_tables.cuh"

namespace nacre::engine::cuda::gdeflate {

// The match that a lane has begun. Places are offsets in the plain bytes.
struct Match {
  std::uint32_t to;
  std::uint32_t size;      // more than 0
  std::uint32_t distance;  // 1 … to
};

template <typename Warp>
class MatchCopier {
 public:
  // out: a piece's plain bytes.
  NACRE_LANE_CODE MatchCopier(Warp warp, PageMemory& memory, Byte* out)
      : warp_(warp), memory_(memory), out_(out) {}

  // Copies the matches of one round. which: the mask of lanes that have one, not 0. The literals
  // between the matches are stored already. Loads after this call see the copied bytes.
  NACRE_LANE_CODE void copy(std::uint32_t which, const Match& match) {
    const bool has_match = (which >> warp_.lane() & 1) != 0;
    const std::uint32_t begin = warp_.shuffle(match.to, warp_.lowest(which));
    end_ = warp_.shuffle(match.to + match.size, warp_.highest(which));
    if (has_match)
      memory_.matches[warp_.popcount(which & lanes_before(warp_))] = {
          match.to | match.distance << 16, match.size};
    warp_.sync();
    const std::uint32_t to = has_match ? match.to : all_lanes;
    std::uint32_t owners = all_lanes;  // how many matches begin before this tile, minus one
    std::uint32_t tile = begin;
    for (; tile + lane_count < end_; tile += 2 * lane_count) {
      const Source one = find_source(to, tile, owners);
      const Source two = find_source(to, tile + lane_count, owners);
      if (warp_.ballot((one.is_match && one.distance <= warp_.lane()) ||
                       (two.is_match && two.distance <= lane_count + warp_.lane())) == 0) {
        move_both(tile, one, two);
      } else {
        move(tile, one);
        warp_.sync();
        move(tile + lane_count, two);
      }
      warp_.sync();
    }
    if (tile < end_) {
      move(tile, find_source(to, tile, owners));
      warp_.sync();
    }
  }

 private:
  struct Source {
    bool is_match;  // otherwise a literal, or no byte
    std::uint32_t distance;
  };

  NACRE_LANE_CODE Source find_source(std::uint32_t to, std::uint32_t tile,
                                     std::uint32_t& owners) const {
    const std::uint32_t place = to - tile;
    const std::uint32_t begins = warp_.or_of_lanes(place < lane_count ? 1u << place : 0);
    const std::uint32_t owner = owners + warp_.popcount(begins & lanes_up_to_here(warp_));
    owners += warp_.popcount(begins);
    const PlacedMatch match = memory_.matches[owner];
    const std::uint32_t index = tile + warp_.lane() - (match.to_and_distance & 0xffff);
    return {index < match.size, match.to_and_distance >> 16};
  }

  // For two neighbouring tiles in which no byte's source is in either of them.
  NACRE_LANE_CODE void move_both(std::uint32_t tile, Source one, Source two) const {
    Byte* const to = out_ + tile + warp_.lane();
    Byte byte_one{};
    Byte byte_two{};
    if (one.is_match) byte_one = warp_.load(to - one.distance);
    if (two.is_match) byte_two = warp_.load(to + lane_count - two.distance);
    if (one.is_match) warp_.store(to, byte_one);
    if (two.is_match) warp_.store(to + lane_count, byte_two);
  }

  NACRE_LANE_CODE void move(std::uint32_t tile, Source source) const {
    const std::uint32_t lane = warp_.lane();
    const bool waits = source.is_match && source.distance <= lane;
    const bool exists = tile + lane < end_;
    Byte* const to = out_ + tile + lane;
    std::uint32_t value = 0;
    if (exists && !waits) value = warp_.load(to - (source.is_match ? source.distance : 0));
    if (warp_.ballot(waits) != 0)
      value = take_from_lanes(value, waits ? lane - source.distance : lane);
    if (source.is_match) warp_.store(to, static_cast<Byte>(value));
  }

  // giver: the lane from which a lane gets its value, or the lane itself if it has the value.
  // Follows givers to the lane that has the value, and returns that value.
  NACRE_LANE_CODE std::uint32_t take_from_lanes(std::uint32_t value, std::uint32_t giver) const {
    for (;;) {
      const std::uint32_t next = warp_.shuffle(giver, giver);
      if (warp_.ballot(next != giver) == 0) return warp_.shuffle(value, giver);
      giver = next;
    }
  }

  Warp warp_;
  PageMemory& memory_;
  Byte* const out_;
  std::uint32_t end_ = 0;  // of the matches
};

// A page that is being decoded.
template <typename Warp>
struct PageState {
  Warp warp;
  PageMemory& memory;
  LaneReader<Warp> reader;
  Byte* const out;
  const std::uint32_t out_size;
  std::uint32_t at;  // plain bytes so far, those of begun matches included
};

// Decodes the rounds of one block. Copier: MatchCopier, or something with its copy().
template <typename Warp, typename Copier>
class RoundDecoder {
 public:
  NACRE_LANE_CODE RoundDecoder(PageState<Warp>& page, Copier& copier)
      : warp_(page.warp), page_(page), copier_(copier) {}

  // Returns false if the page is not valid.
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

  // What a lane reads in a round: a literal, a length, a distance or a stop.
  struct Item {
    EntryKind kind;
    std::uint32_t payload;
    std::uint32_t bits;   // size of the code and its extra bits
    std::uint32_t value;  // the length or distance
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

  // Where the bytes of the literals and matches that begin in this round go.
  struct Placement {
    std::uint32_t place;  // of this lane's literal or match
    std::uint32_t size;   // plain bytes of the whole round
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

  // Runs the rounds in which every lane reads something valid and no lane reads the end of the
  // block. Stops before the first other round. Called once for each block.
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
      entry = look_up((begins >> warp_.lane() & 1) != 0);  // early, to hide its latency
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

  // Runs the rounds up to the end of the block, and the one after it, which has the last distances.
  NACRE_LANE_CODE bool decode_last_rounds() {
    bool is_ended = false;
    do {
      const bool finishes = (begun_ >> warp_.lane() & 1) != 0;
      bool reads = finishes || !is_ended;
      const Item item = read_item(look_up(finishes), finishes);
      const std::uint32_t stops = warp_.ballot(reads && item.kind == EntryKind::stop);
      if (stops != 0) {
        // The only valid stop is the end of the block, in a lane that does not read a distance.
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

  // Runs the rounds of 32 literals. After a literal a lane still holds at least 17 bits: enough to
  // look up the next code before the lane has got its next word.
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

  // Runs the round with the end of the block.
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
  std::uint32_t begun_ = 0;  // mask of lanes whose match lacks its distance
  Match match_{};
};

// Decodes one page. Copier: as for RoundDecoder.
template <typename Warp, typename Copier>
class PageDecoder {
 public:
  // task: as can_be_page() requires.
  NACRE_LANE_CODE PageDecoder(Warp warp, PageMemory& memory, const CodecTask& task, Copier& copier)
      : warp_(warp),
        memory_(memory),
        page_{warp, memory, {warp, task.in, task.in_size}, task.out, task.out_size, 0},
        copier_(copier) {}

  // Decodes the page. False, in all lanes: the page is not valid; task.out is then undefined.
  NACRE_LANE_CODE bool run() {
    bool is_last = false;
    while (!is_last) {
      const std::uint32_t head = page_.reader.take_from_first(3);
      is_last = (head & 1) != 0;
      if (page_.reader.torn() || !decode_block(static_cast<BlockKind>(head >> 1))) return false;
      warp_.sync();
    }
    return page_.at == page_.out_size && page_.reader.at_end();
  }

 private:
  using LitlenBuilder = TableBuilder<Warp, litlen_shape.direct_bits, LitlenMeanings>;
  using DistanceBuilder = TableBuilder<Warp, distance_shape.direct_bits, DistanceMeanings>;
  using CodeLengthBuilder = TableBuilder<Warp, code_length_shape.direct_bits, CodeLengthMeanings>;

  NACRE_LANE_CODE bool decode_block(BlockKind kind) {
    if (kind == BlockKind::stored) return copy_stored();
    if (kind == BlockKind::fixed_codes) {
      // The tables are kept for later blocks, because such a block may be as short as ten bits.
      if (!has_fixed_codes_) put_fixed_sizes();
      if (!has_fixed_codes_ && !build_tables(litlen_symbol_count_max, distance_symbol_count))
        return false;
      has_fixed_codes_ = true;
      return RoundDecoder<Warp, Copier>(page_, copier_).decode();
    }
    has_fixed_codes_ = false;
    if (kind != BlockKind::dynamic_codes || !read_codes()) return false;
    RoundDecoder<Warp, Copier> rounds(page_, copier_);
    return has_lengths_ ? rounds.decode() : rounds.decode_literals();
  }

  NACRE_LANE_CODE bool copy_stored() {
    const std::uint32_t size = page_.reader.take_from_first(16);
    if (size > page_.out_size - page_.at) return false;
    for (std::uint32_t first = 0; first < size && !page_.reader.torn(); first += lane_count) {
      const std::uint32_t index = first + warp_.lane();
      if (index < size) {
        warp_.store(page_.out + page_.at + index, static_cast<Byte>(page_.reader.bits()));
        page_.reader.skip(8);
      }
      page_.reader.refill();
    }
    page_.at += size;
    return !page_.reader.torn();
  }

  NACRE_LANE_CODE void put_fixed_sizes() {
    // RFC 1951, 3.2.6.
    for (std::uint32_t symbol = warp_.lane(); symbol < litlen_symbol_count_max;
         symbol += lane_count) {
      std::uint8_t size = 8;
      if (symbol >= 144 && symbol < 256) size = 9;
      if (symbol >= 256 && symbol < 280) size = 7;
      memory_.code_sizes[symbol] = size;
    }
    memory_.code_sizes[litlen_symbol_count_max + warp_.lane()] = fixed_distance_code_size;
  }

  NACRE_LANE_CODE bool read_codes() {
    const std::uint32_t counts = page_.reader.take_from_first(14);
    const std::uint32_t litlen_count = first_length_symbol + counts % 32;
    const std::uint32_t distance_count = 1 + (counts >> 5) % 32;
    const std::uint32_t size_count = 4 + (counts >> 10);

    if (warp_.lane() < code_length_symbol_count) {
      std::uint32_t size = 0;
      if (warp_.lane() < size_count) {
        size = page_.reader.bits() % 8;
        page_.reader.skip(3);
      }
      memory_.code_sizes[code_length_symbol_at(warp_.lane())] = static_cast<std::uint8_t>(size);
    }
    page_.reader.refill();
    return CodeLengthBuilder(warp_, memory_, distance_table_at)
               .build(memory_.code_sizes, code_length_symbol_count,
                      code_length_shape.entry_count) &&
           read_code_sizes(litlen_count + distance_count) && !page_.reader.torn() &&
           build_tables(litlen_count, distance_count);
  }

  // Reads the items 32 at a time. A repeat may run from one alphabet into the other, not past both.
  NACRE_LANE_CODE bool read_code_sizes(std::uint32_t size_count) {
    std::uint32_t known = 0;
    std::uint32_t last_size = 0;
    while (known < size_count) {
      const std::uint32_t bits = page_.reader.bits();
      const std::uint32_t entry =
          memory_.tables[distance_table_at + bits % (1u << code_length_shape.direct_bits)];
      const std::uint32_t symbol = entry_payload(entry);
      const std::uint32_t behind = bits >> code_bits_of(entry);
      std::uint32_t count = 1;
      std::uint32_t extra_bits = 0;
      if (symbol == code_length_repeat) {
        extra_bits = 2;
        count = 3 + behind % 4;
      } else if (symbol == code_length_zeros) {
        extra_bits = 3;
        count = 3 + behind % 8;
      } else if (symbol == code_length_many_zeros) {
        extra_bits = 7;
        count = 11 + behind % 128;
      }
      const std::uint32_t count_sum = sum_up_to_here(warp_, count);
      const std::uint32_t place = known + count_sum - count;
      const bool reads = place < size_count;
      // A repeat has the size of the last item before it that is not a repeat.
      const std::uint32_t givers =
          warp_.ballot(symbol != code_length_repeat) & lanes_up_to_here(warp_);
      const std::uint32_t own_size = symbol < code_length_repeat ? symbol : 0;
      const std::uint32_t given =
          warp_.shuffle(own_size, givers != 0 ? warp_.highest(givers) : warp_.lane());
      const std::uint32_t size = givers != 0 ? given : last_size;
      const bool is_bad = entry_kind(entry) == EntryKind::stop ||
                          (symbol == code_length_repeat && place == 0) ||
                          count > size_count - place;
      if (warp_.ballot(reads && is_bad) != 0) return false;
      if (reads) {
        for (std::uint32_t i = 0; i < count; ++i)
          memory_.code_sizes[place + i] = static_cast<std::uint8_t>(size);
        page_.reader.skip(code_bits_of(entry) + extra_bits);
      }
      page_.reader.refill();
      const std::uint32_t last_reader = warp_.highest(warp_.ballot(reads));
      known = warp_.shuffle(place + count, last_reader);
      last_size = warp_.shuffle(size, last_reader);
      if (page_.reader.torn()) return false;
    }
    warp_.sync();
    return true;
  }

  NACRE_LANE_CODE bool build_tables(std::uint32_t litlen_count, std::uint32_t distance_count) {
    warp_.sync();
    const std::uint32_t length_symbol = first_length_symbol + warp_.lane();
    has_lengths_ =
        warp_.ballot(length_symbol < litlen_count && memory_.code_sizes[length_symbol] != 0) != 0;
    return LitlenBuilder(warp_, memory_, 0)
               .build(memory_.code_sizes, litlen_count, litlen_shape.entry_count) &&
           DistanceBuilder(warp_, memory_, distance_table_at)
               .build(memory_.code_sizes + litlen_count, distance_count,
                      distance_shape.entry_count);
  }

  const Warp warp_;
  PageMemory& memory_;
  PageState<Warp> page_;
  Copier& copier_;
  bool has_fixed_codes_ = false;
  bool has_lengths_ = false;
};

// Whether the sizes of a task are possible for a page. Per lane.
NACRE_LANE_CODE bool can_be_page(const CodecTask& task) {
  return task.out_size <= page_plain_size_max && task.in_size >= page_size_bytes_min &&
         task.in_size % word_size_bytes == 0;
}
template <typename Warp>
NACRE_LANE_CODE bool decode_page(Warp warp, PageMemory& memory, const CodecTask& task) {
  if (!can_be_page(task)) return false;
  MatchCopier<Warp> copier(warp, memory, task.out);
  return PageDecoder<Warp, MatchCopier<Warp>>(warp, memory, task, copier).run();
}

}  // namespace nacre::engine::cuda::gdeflate
