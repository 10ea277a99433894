// SPDX-License-Identifier: Apache-2.0
// Derived from the plain rounds of decoder.cpp in three steps. A plain round takes each lane in
// turn:
//
//   if lane began a match in the round before: read its distance, copy the match;
//   else: read a symbol; a literal is written, a length begins a match;
//   if lane has fewer than 32 bits left: give it the next word of the page;
//
// 1. A round is read as a whole, without a branch on what it holds. A mask of the matches begun in
//    the round before selects each lane's table (of literals and lengths, or of distances), and
//    arithmetic on "fewer than 32 bits left" selects whether the lane gets a word. The lanes from
//    before the round are kept: if the round holds anything unusual, it is dropped and the plain
//    decoder reads it again.
// 2. The plain bytes of a round are written after the next round is read, for only then are its
//    distances known. They are written in their order, so a copy may write too many bytes: what
//    follows overwrites the surplus. Hence a usual match costs one copy of 32 bytes, and all
//    literals before it, which the round has collected in a row, cost another.
// 3. No byte is checked by itself. A round is read only if the page has a word left for every lane,
//    and written only if the plain bytes have room for the whole round and the surplus of a copy.
//
// A round costs about 25 operations for each lane and 20 for each match. The plain loop has three
// branches for every symbol (its kind, the refill, the room), and each is sometimes mispredicted.
#include "gpu_engine/codec/gdeflate/fast_rounds.h"

#include "gpu_engine/codec/copy_step.h"
#include "gpu_engine/codec/gdeflate/fast_round.h"

#include <algorithm>
#include <bit>

namespace nacre::engine::gdeflate {
namespace {

// The last copies of a round may write this many bytes past the end of the round.
constexpr std::size_t slack_bytes = 2 * copy_size_bytes;
constexpr std::size_t round_words_size_bytes = lane_count * word_size_bytes;

// Copies a match that is long or overlaps itself. Writes fewer than copy_size_bytes surplus bytes.
void copy_any_match(Byte* to, std::size_t distance, std::size_t size) {
  constexpr std::size_t step_bytes = 16;
  Byte* const end = to + size;
  if (distance < step_bytes) {
    // Copies byte by byte until a multiple of the distance is at least a step.
    const std::size_t wide = step_bytes + distance - 1 - (step_bytes - 1) % distance;
    for (std::size_t i = 0; i < wide; ++i)
      to[i] = (to - distance)[i];
    to += wide;
    distance = wide;
  }
  for (; to < end; to += step_bytes)
    copy_step<step_bytes>(to, to - distance);
}

// Writes the plain bytes of a round at to. next: the round after it, which holds the distances of
// its matches. False when a distance reaches before the first plain byte.
bool write_round(const Round& round, const Round& next, const Byte* plain_begin, Byte* to) {
  std::uint32_t item = 0;
  for (std::uint32_t left = round.matches; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    copy_step<copy_size_bytes>(to, round.literals.data() + item);
    to += round.items[lane] - item;
    item = round.items[lane] + 1u;

    const std::size_t size = round.values[lane];
    const std::size_t distance = next.values[lane];
    if (distance > static_cast<std::size_t>(to - plain_begin)) return false;
    if (size <= copy_size_bytes && distance >= size)
      copy_step<copy_size_bytes>(to, to - distance);
    else
      copy_any_match(to, distance, size);
    to += size;
  }
  copy_step<copy_size_bytes>(to, round.literals.data() + item);
  return true;
}

// Prepares a round whose distances are not read yet for the plain decoder: writes its literals at
// their places, and enters its matches.
void begin_round(const Round& round, Byte* plain, std::size_t at, BegunMatches& matches) {
  std::uint32_t item = 0;
  const auto write_literals = [&](std::uint32_t end) {
    std::copy(round.literals.data() + item, round.literals.data() + end, plain + at);
    at += end - item;
    item = end + 1;
  };
  for (std::uint32_t left = round.matches; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    write_literals(round.items[lane]);
    matches[lane] = {.at = static_cast<std::uint32_t>(at), .size = round.values[lane]};
    at += round.values[lane];
  }
  write_literals(round.item_count);
}

}  // namespace

TableEntry read_round_portable(const BlockTables& tables, const LaneBits& from, std::uint32_t begun,
                               const Byte*& next, LaneBits& to, Round& round) {
  const TableEntry* const table_of[] = {tables.codes[0].data(), tables.codes[1].data()};
  TableEntry flags = 0;
  const Byte* word = next;
  std::uint32_t item = 0;
  std::uint32_t size = 0;
  std::uint32_t matches = 0;
  for (unsigned lane = 0; lane < lane_count; ++lane) {
    std::uint64_t bits = from.bits[lane];
    std::uint32_t count = from.count[lane];
    const std::uint32_t is_distance = begun >> lane & 1;
    const TableEntry entry = look_up(table_of[is_distance], bits);
    const unsigned value = entry_value(entry, bits);
    flags |= entry;

    bits >>= entry_all_bits(entry);
    count -= entry_all_bits(entry);
    const std::uint32_t lacks_word = 1 - count / word_bits;  // count is 1 to 63
    bits |=
        (std::uint64_t{load_le<std::uint32_t>(word)} << count) & (0 - std::uint64_t{lacks_word});
    word += word_size_bytes * lacks_word;
    to.bits[lane] = bits;
    to.count[lane] = count + word_bits * lacks_word;

    const std::uint32_t is_match = (entry & entry_is_match) / entry_is_match;
    const std::uint32_t is_item = 1 - is_distance;
    round.literals[item] = static_cast<Byte>(value);
    round.items[lane] = static_cast<std::uint8_t>(item);
    round.values[lane] = value;
    matches |= is_match << lane;
    item += is_item;
    size += is_item + ((value - 1) & (0 - is_match));
  }
  next = word;
  round.matches = matches;
  round.item_count = item;
  round.size = size;
  return flags;
}

bool run_fast_rounds(const BlockTables& tables, Lanes& lanes, MutableByteView plain,
                     std::size_t& at, std::uint32_t& begun, BegunMatches& matches) {
  static const ReadRound fastest = find_read_round_avx512();
  const ReadRound read_round = fastest != nullptr ? fastest : read_round_portable;
  std::array<LaneBits, 2> lane_bits;
  lane_bits[0] = {lanes.bits, lanes.count};
  std::array<Round, 2> rounds;
  unsigned now = 0;  // index of the round whose distances come next, and of the lanes after it
  std::size_t begin = at;  // where the plain bytes of that round begin
  const Byte* next = lanes.next;
  while (static_cast<std::size_t>(lanes.end - next) >= round_words_size_bytes) {
    Round& round = rounds[now];
    Round& following = rounds[1 - now];
    const Byte* next_after = next;
    const TableEntry flags = read_round(tables, lane_bits[now], round.matches, next_after,
                                        lane_bits[1 - now], following);
    const std::size_t end = begin + round.size;
    if ((flags & unusual_flags) != 0 || end + following.size + slack_bytes > plain.size()) break;
    if (!write_round(round, following, plain.data(), plain.data() + begin)) return false;
    begin = end;
    next = next_after;
    now = 1 - now;
  }
  const Round& round = rounds[now];
  lanes.bits = lane_bits[now].bits;
  lanes.count = lane_bits[now].count;
  lanes.next = next;
  begin_round(round, plain.data(), begin, matches);
  at = begin + round.size;
  begun = round.matches;
  return true;
}

}  // namespace nacre::engine::gdeflate
