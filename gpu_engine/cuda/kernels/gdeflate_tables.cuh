// SPDX-License-Identifier: Apache-2.0
// What the GDeflate decoder reads with: the lanes of a page (LaneReader), and canonical codes as
// look-up tables in shared memory (TableBuilder).
//
// Lane i of the warp reads lane i of the page; codec/gdeflate/format.h says how the page's words
// are dealt out. Nothing outside the page is read, except the other bytes of the aligned words in
// which an unaligned page begins and ends.
//
// A table is indexed with the next bits of a lane; how many these are, is the table's count of
// direct bits. A longer code has its entry in a subtable, which is indexed with as many further
// bits as the longest code with the same direct bits needs.
//
//   15 14 13  12 11        4 3         0
//   kind  0   0  payload     code bits     what the code means
//   3     bits:3     index of the subtable, from the first entry of all tables on: 11
//
// The plain loop that fills a table takes the symbols in the order of their codes, and stores the
// entry of each at every index that begins with its code. Here each entry is found independently,
// so that the lanes can share the work. If codes are extended to 15 bits, those of one size are
// below those of all longer sizes. So a lane extends its index to 15 bits and counts the sizes
// whose codes are all below it: this gives the size of the code with which the index begins. The
// place of that code among the codes of its size gives the symbol.
//
// Warp gives the operations of a warp: DeviceWarp (gdeflate_decode.cu) on a device, a simulated
// warp in tests on the host. All lanes must call a function here together, unless its comment says
// "Per lane".
#pragma once

#include "gpu_engine/cuda/kernels/gdeflate_format.cuh"
#include "gpu_engine/cuda/kernels/tasks.h"

namespace nacre::engine::cuda::gdeflate {

// The sum of the values of this lane and of all lanes before it.
template <typename Warp>
NACRE_LANE_CODE std::uint32_t sum_up_to_here(Warp warp, std::uint32_t value) {
  NACRE_UNROLL
  for (std::uint32_t step = 1; step < lane_count; step *= 2) {
    const std::uint32_t before = warp.shuffle_up(value, step);
    if (warp.lane() >= step) value += before;
  }
  return value;
}

// Masks of the lanes before this one, without and with this lane itself. Per lane.
template <typename Warp>
NACRE_LANE_CODE std::uint32_t lanes_before(Warp warp) {
  return (1u << warp.lane()) - 1;
}
template <typename Warp>
NACRE_LANE_CODE std::uint32_t lanes_up_to_here(Warp warp) {
  return all_lanes >> (lane_count - 1 - warp.lane());
}

// Reads the lanes of a page. Between reads a lane holds 32 to 63 bits. A lane may skip at most 31
// bits; then all lanes call refill(). Words past the page's end read as zeros.
//
// The next 64 words of the page are kept in registers, two a lane, so that no read waits for
// memory.
template <typename Warp>
class LaneReader {
 public:
  // size: whole words, at least page_size_bytes_min.
  NACRE_LANE_CODE LaneReader(Warp warp, const Byte* page, std::uint32_t size)
      : warp_(warp),
        words_(reinterpret_cast<const std::uint32_t*>(reinterpret_cast<std::uintptr_t>(page) &
                                                      ~std::uintptr_t{3})),
        shift_(static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(page) & 3) * 8),
        word_count_(size / word_size),
        ahead_(3 * lane_count) {
    bits_ = word(warp.lane());
    near_ = word(lane_count + warp.lane());
    far_ = word(2 * lane_count + warp.lane());
  }

  // Per lane: its next 32 bits, and how to skip some of them.
  NACRE_LANE_CODE std::uint32_t bits() const { return static_cast<std::uint32_t>(bits_); }
  NACRE_LANE_CODE void skip(std::uint32_t count) {
    bits_ >>= count;
    count_ -= count;
  }

  // Each lane that holds fewer than 32 bits gets a word, in the order of the lanes. These are at
  // most 32 consecutive words, so at most one of the two words that a lane keeps is among them, and
  // the lane knows which one.
  NACRE_LANE_CODE void refill() {
    const bool needs = count_ < word_bits;
    const std::uint32_t needing = warp_.ballot(needs);
    const std::uint32_t place = taken_ + warp_.popcount(needing & lanes_before(warp_));
    const std::uint32_t kept = warp_.lane() >= taken_ ? near_ : far_;
    const std::uint32_t word = warp_.shuffle(kept, place % lane_count);
    if (needs) {
      bits_ |= std::uint64_t{word} << count_;
      count_ += word_bits;
    }
    taken_ += warp_.popcount(needing);
    if (taken_ >= lane_count) advance();
  }

  // Reads count bits of lane 0, and returns them in all lanes. count: at most 16.
  NACRE_LANE_CODE std::uint32_t take_from_first(std::uint32_t count) {
    const std::uint32_t value = warp_.shuffle(bits(), 0) & ((1u << count) - 1);
    if (warp_.lane() == 0) skip(count);
    refill();
    return value;
  }

  // torn(): more words were read than the page has. at_end(): exactly all words were read.
  NACRE_LANE_CODE bool torn() const { return word_end() > word_count_; }
  NACRE_LANE_CODE bool at_end() const { return word_end() == word_count_; }

 private:
  static constexpr std::uint32_t word_size = word_size_bytes;

  // How many words the lanes have got since the page began.
  NACRE_LANE_CODE std::uint32_t word_end() const { return ahead_ - 2 * lane_count + taken_; }

  NACRE_LANE_CODE void advance() {
    taken_ -= lane_count;
    near_ = far_;
    far_ = word(ahead_ + warp_.lane());
    ahead_ += lane_count;
  }

  NACRE_LANE_CODE std::uint32_t word(std::uint32_t index) const {
    if (index >= word_count_) return 0;
    const std::uint32_t low = warp_.load(words_ + index);
    if (shift_ == 0) return low;
    return low >> shift_ | warp_.load(words_ + index + 1) << (word_bits - shift_);
  }

  Warp warp_;
  const std::uint32_t* const words_;
  const std::uint32_t shift_;  // in bits: where the page's first byte lies in words_[0]
  const std::uint32_t word_count_;
  std::uint64_t bits_;
  std::uint32_t count_ = word_bits;
  std::uint32_t near_;       // words ahead_ - 64 … ahead_ - 33
  std::uint32_t far_;        // words ahead_ - 32 … ahead_ - 1
  std::uint32_t taken_ = 0;  // how many of the 32 words in near_ the lanes have got
  std::uint32_t ahead_;      // index of the first word that no lane keeps
};

using CodeEntry = std::uint16_t;

enum class EntryKind : std::uint32_t {
  literal = 0,   // payload: the byte
  value = 1,     // a length or distance; payload: extra bits:5, below mantissa:3
  stop = 2,      // payload 0: end of block; 1: no code, or a symbol of no meaning
  subtable = 3,  // as drawn above
};

constexpr std::uint32_t kind_shift = 14;
constexpr std::uint32_t payload_shift = 4;
constexpr std::uint32_t subtable_bits_shift = 11;

constexpr std::uint32_t make_meaning(EntryKind kind, std::uint32_t payload) {
  return static_cast<std::uint32_t>(kind) << kind_shift | payload << payload_shift;
}
constexpr std::uint32_t end_meaning = make_meaning(EntryKind::stop, 0);
constexpr std::uint32_t unusable_meaning = make_meaning(EntryKind::stop, 1);

NACRE_LANE_CODE EntryKind entry_kind(std::uint32_t entry) {
  return static_cast<EntryKind>(entry >> kind_shift);
}
NACRE_LANE_CODE std::uint32_t entry_payload(std::uint32_t entry) {
  return entry >> payload_shift & 255;
}
NACRE_LANE_CODE std::uint32_t code_bits_of(std::uint32_t entry) {
  return entry & 15;
}

NACRE_LANE_CODE std::uint32_t subtable_index(std::uint32_t entry) {
  return entry % (1u << subtable_bits_shift);
}
NACRE_LANE_CODE std::uint32_t subtable_bits(std::uint32_t entry) {
  return entry >> subtable_bits_shift & 7;
}

// The entry of the code with which bits begin. Per lane.
NACRE_LANE_CODE std::uint32_t look_up_code(const CodeEntry* tables, std::uint32_t bits,
                                           std::uint32_t table_at, std::uint32_t direct_bits) {
  const std::uint32_t entry = tables[table_at + (bits & ((1u << direct_bits) - 1))];
  if (entry_kind(entry) != EntryKind::subtable) return entry;
  return tables[subtable_index(entry) + (bits >> direct_bits & ((1u << subtable_bits(entry)) - 1))];
}

NACRE_LANE_CODE std::uint32_t value_meaning(SymbolValue value) {
  return static_cast<std::uint32_t>(EntryKind::value) << kind_shift |
         (value.mantissa << 5 | value.extra_bits) << payload_shift;
}

struct LitlenMeanings {
  NACRE_LANE_CODE std::uint32_t operator()(std::uint32_t symbol) const {
    if (symbol < literal_symbol_count) return symbol << payload_shift;
    if (symbol == end_of_block) return end_meaning;
    if (symbol >= litlen_symbol_count) return unusable_meaning;
    return value_meaning(length_value(symbol - first_length_symbol));
  }
};
struct DistanceMeanings {
  NACRE_LANE_CODE std::uint32_t operator()(std::uint32_t symbol) const {
    return value_meaning(distance_value(symbol));
  }
};
struct CodeLengthMeanings {
  NACRE_LANE_CODE std::uint32_t operator()(std::uint32_t symbol) const {
    return symbol << payload_shift;
  }
};

// entry_count: the most entries, subtables included, that a table with direct_bits needs for a
// complete code of symbol_count symbols and at most 15 bits (computed by zlib's examples/enough.c).
struct TableShape {
  std::uint32_t symbol_count;
  std::uint32_t direct_bits;
  std::uint32_t entry_count;
};
constexpr TableShape litlen_shape = {litlen_symbol_count_max, 10, 1334};
constexpr TableShape distance_shape = {distance_symbol_count, 8, 402};
constexpr TableShape code_length_shape = {code_length_symbol_count, code_length_code_size_bits_max,
                                          128};
constexpr std::uint32_t distance_table_at = litlen_shape.entry_count;
constexpr std::uint32_t table_entry_count = litlen_shape.entry_count + distance_shape.entry_count;
static_assert(table_entry_count <= 1u << subtable_bits_shift);
static_assert(code_length_shape.entry_count <= distance_shape.entry_count);

// A match in shared memory, where all lanes can read it.
struct alignas(8) PlacedMatch {
  std::uint32_t to_and_distance;  // the distance in the upper half
  std::uint32_t size;
};

// The memory that the lanes of a warp share while they decode a page.
struct PageMemory {
  CodeEntry tables[table_entry_count];
  // Used while codes are read.
  CodeEntry by_code[litlen_symbol_count_max];  // meanings in the order of their codes
  std::uint32_t places[code_size_bits_max + 1];
  std::uint8_t code_sizes[litlen_symbol_count_max + distance_symbol_count];
  // Used while matches are copied: the matches of a round, in their order.
  PlacedMatch matches[lane_count];
};

// What a lane knows about the codes of one size: lane s about those of s bits. Each code stands for
// all codes of 15 bits that begin with it.
template <typename Warp>
struct CodeSizes {
  std::uint32_t count;      // how many codes have this size
  std::uint32_t limit;      // 15-bit codes below it begin with a code of at most this size
  std::uint32_t place_end;  // how many codes have at most this size
  std::uint32_t to_place;   // a code of this size plus this is its place in the order of codes

  NACRE_LANE_CODE CodeSizes(Warp warp, const std::uint32_t* counts) {
    const std::uint32_t size = warp.lane();
    count = size - 1 < code_size_bits_max ? counts[size] : 0;
    const std::uint32_t unused_bits = code_size_bits_max - (size < 16 ? size : 15);
    const std::uint32_t share = count << unused_bits;
    limit = sum_up_to_here(warp, share);
    place_end = sum_up_to_here(warp, count);
    to_place = place_end - count - ((limit - share) >> unused_bits);
  }
};

// Builds the table of a canonical code at index table_at of memory.tables. build() takes the sizes
// of the codes by symbol (0: no code; at most 15), and returns false under the same conditions as
// build_table() of codec/gdeflate/decode_table.h. It synchronises the warp at its begin and end:
// it sees sizes that any lane stored before, and any lane sees the table after it.
template <typename Warp, std::uint32_t direct_bits, typename Meanings>
class TableBuilder {
 public:
  NACRE_LANE_CODE TableBuilder(Warp warp, PageMemory& memory, std::uint32_t table_at)
      : warp_(warp), memory_(memory), table_at_(table_at) {}

  NACRE_LANE_CODE bool build(const std::uint8_t* code_sizes, std::uint32_t symbol_count,
                             std::uint32_t entry_count) {
    count_sizes(code_sizes, symbol_count);
    const CodeSizes<Warp> sizes(warp_, memory_.places);
    const std::uint32_t used = warp_.shuffle(sizes.limit, code_size_bits_max);
    const std::uint32_t code_count = warp_.shuffle(sizes.place_end, code_size_bits_max);
    const bool is_complete = used == 1u << code_size_bits_max;
    if (!is_complete && (code_count > 1 || code_count != warp_.shuffle(sizes.count, 1)))
      return false;
    order_by_code(code_sizes, symbol_count, sizes);
    NACRE_UNROLL
    for (std::uint32_t size = 1; size < code_size_bits_max; ++size)
      limits_[size] = warp_.shuffle(sizes.limit, size);
    fill_direct(sizes);
    if (!is_complete || code_count == warp_.shuffle(sizes.place_end, direct_bits)) {
      warp_.sync();
      return true;
    }
    if (!place_subtables(entry_count)) return false;
    fill_subtables(sizes, code_count);
    return true;
  }

 private:
  NACRE_LANE_CODE void count_sizes(const std::uint8_t* code_sizes, std::uint32_t symbol_count) {
    warp_.sync();
    if (warp_.lane() <= code_size_bits_max) memory_.places[warp_.lane()] = 0;
    warp_.sync();
    for (std::uint32_t first = 0; first < symbol_count; first += lane_count) {
      const std::uint32_t symbol = first + warp_.lane();
      const std::uint32_t size = symbol < symbol_count ? code_sizes[symbol] : 0;
      const std::uint32_t alike = warp_.lanes_alike(size);
      if (warp_.lowest(alike) == warp_.lane()) memory_.places[size] += warp_.popcount(alike);
      warp_.sync();
    }
  }

  NACRE_LANE_CODE void order_by_code(const std::uint8_t* code_sizes, std::uint32_t symbol_count,
                                     const CodeSizes<Warp>& sizes) {
    warp_.sync();
    if (warp_.lane() <= code_size_bits_max)
      memory_.places[warp_.lane()] = sizes.place_end - sizes.count;
    warp_.sync();
    for (std::uint32_t first = 0; first < symbol_count; first += lane_count) {
      const std::uint32_t symbol = first + warp_.lane();
      const std::uint32_t size = symbol < symbol_count ? code_sizes[symbol] : 0;
      const std::uint32_t alike = warp_.lanes_alike(size);
      const std::uint32_t place = memory_.places[size];
      if (size != 0)
        memory_.by_code[place + warp_.popcount(alike & lanes_before(warp_))] =
            static_cast<CodeEntry>(Meanings()(symbol) | size);
      warp_.sync();
      if (size != 0 && warp_.lowest(alike) == warp_.lane())
        memory_.places[size] = place + warp_.popcount(alike);
      warp_.sync();
    }
  }

  // The size of the code with which the 15 bits of `code` begin. That size must be at least `from`;
  // for a size above `to` the result is `to`.
  template <std::uint32_t from, std::uint32_t to>
  NACRE_LANE_CODE std::uint32_t size_of(std::uint32_t code) const {
    std::uint32_t size = from;
    NACRE_UNROLL
    for (std::uint32_t shorter = from; shorter < to; ++shorter)
      size += code >= limits_[shorter];
    return size;
  }

  // Makes the entries that are indexed directly, one per lane. Those of codes longer than
  // direct_bits are made by place_subtables().
  NACRE_LANE_CODE void fill_direct(const CodeSizes<Warp>& sizes) {
    for (std::uint32_t first = 0; first < direct_count; first += lane_count) {
      const std::uint32_t index = first + warp_.lane();
      const std::uint32_t code = warp_.reverse(index) >> (32 - code_size_bits_max);
      const std::uint32_t size = size_of<1, direct_bits + 1>(code);
      const std::uint32_t to_place = warp_.shuffle(sizes.to_place, size);
      std::uint32_t entry = unusable_meaning;
      if (size <= direct_bits)
        entry = memory_.by_code[to_place + (code >> (code_size_bits_max - size))];
      table()[index] = static_cast<CodeEntry>(entry);
    }
  }

  // Makes the entries that name subtables, one per lane. A subtable is as large as the longest of
  // its codes needs, which is the last one in the order of codes.
  NACRE_LANE_CODE bool place_subtables(std::uint32_t entry_count) {
    warp_.sync();
    std::uint32_t end = direct_count;
    for (std::uint32_t first = limits_[direct_bits] >> unused_bits; first < direct_count;
         first += lane_count) {
      const std::uint32_t prefix = first + warp_.lane();
      const bool exists = prefix < direct_count;
      const std::uint32_t last_code = prefix << unused_bits | ((1u << unused_bits) - 1);
      const std::uint32_t bits =
          size_of<direct_bits + 1, code_size_bits_max>(last_code) - direct_bits;
      const std::uint32_t size = exists ? 1u << bits : 0;
      const std::uint32_t size_sum = sum_up_to_here(warp_, size);
      if (exists)
        table()[warp_.reverse(prefix) >> (32 - direct_bits)] = static_cast<CodeEntry>(
            static_cast<std::uint32_t>(EntryKind::subtable) << kind_shift |
            bits << subtable_bits_shift | (table_at_ + end + size_sum - size));
      end += warp_.shuffle(size_sum, lane_count - 1);
    }
    warp_.sync();
    return end <= entry_count;
  }

  // Makes the entries of the codes longer than direct_bits, one code per lane.
  NACRE_LANE_CODE void fill_subtables(const CodeSizes<Warp>& sizes, std::uint32_t code_count) {
    for (std::uint32_t first = warp_.shuffle(sizes.place_end, direct_bits); first < code_count;
         first += lane_count) {
      const std::uint32_t place = first + warp_.lane();
      const bool exists = place < code_count;
      const std::uint32_t entry = memory_.by_code[exists ? place : first];
      const std::uint32_t size = code_bits_of(entry);
      const std::uint32_t code = place - warp_.shuffle(sizes.to_place, size);
      if (!exists) continue;
      const std::uint32_t reversed = warp_.reverse(code) >> (32 - size);
      const std::uint32_t lead = table()[reversed % direct_count];
      CodeEntry* const subtable = memory_.tables + subtable_index(lead);
      const std::uint32_t stride = 1u << (size - direct_bits);
      for (std::uint32_t i = reversed >> direct_bits; i < 1u << subtable_bits(lead); i += stride)
        subtable[i] = static_cast<CodeEntry>(entry);
    }
    warp_.sync();
  }

  NACRE_LANE_CODE CodeEntry* table() const { return memory_.tables + table_at_; }

  static constexpr std::uint32_t direct_count = 1u << direct_bits;
  static constexpr std::uint32_t unused_bits = code_size_bits_max - direct_bits;

  Warp warp_;
  PageMemory& memory_;
  const std::uint32_t table_at_;
  std::uint32_t limits_[code_size_bits_max];  // by size, from 1 on: the limit of CodeSizes
};

}  // namespace nacre::engine::cuda::gdeflate
