// SPDX-License-Identifier: Apache-2.0
// Codec lzw: TIFF LZW (TIFF 6.0, section 13: codes of 9 to 12 bits, most significant bit first, the
// width growing one code early), begun anew every 8 KiB so that the pieces of a sub-block can be
// decoded in parallel. The stream is framed as codec/sub_blocks.h says; a coded sub-block of n
// plain bytes is
//
//   0                  2 * pieces
//   +------------------+---------+---------+---
//   | sizes, u16 each  | piece 0 | piece 1 | …        pieces = ceil(n / 8192), at most 8
//   +------------------+---------+---------+---
//
// A size counts the coded bytes of its piece; together with the table they are the whole sub-block.
// A piece gives 8192 plain bytes (the last one the rest) and is what TIFF calls a strip: a clear
// code, codes, an end code, zero bits up to the end of the byte.
//
//   code 0 … 255   that byte
//   256            clear: forget all strings; the next code is 9 bits wide
//   257            end
//   258 …          the strings, in the order in which they were made
//
// The first code after a clear code makes no string. Each code after it makes one: the string of
// the code before, and one more byte, the first byte of its own string. A code may name the very
// string that it makes. After j codes since the clear code the next code, be it clear or end, has
// bit_width(258 + j) bits: 9 for the first 254, 10 for the next 512, 11 for the next 1024, then 12.
// At j = 3838 it would have 13 bits, so a clear code or the end comes before. Encoders clear at
// j = 3836, as libtiff does; the level is not used.
//
// The plain loop of an encoder:
//
//   string = the first byte;
//   for each further byte:
//     if the table has (string, byte): string = that entry's;
//     else: put string's code, add (string, byte) to the table, string = byte;
//   put string's code;
//
// Here the table is a hash table that forgets: a bucket holds two strings, and a third one replaces
// the older. Each step waits for the look-up of the step before it, so several pieces of a
// sub-block take turns, a byte of each.
//
// The plain loop of a decoder, without its checks:
//
//   for (j = 0;; ++j) {
//     code = the next width(j) bits;  if it is the end: break;  if it is clear: j = -1, continue;
//     if (j > 0) string[258 + j - 1] = string of the code before + first byte of code's string;
//     write code's string;
//   }
//
// The usual table has a parent and a last byte for each string, so a string is spelled out byte by
// byte, from its end. The steps from there:
//
// 1. No spelling. String 258 + k is what code k wrote, and the byte after it. So it is a stretch of
//    the plain bytes: an entry is (position, size), and each code costs one copy.
// 2. Entries in advance. When code k is written, both fields of entry 258 + k are known, although
//    the last byte of its string is not written yet. Only if the next code names this very string
//    must the last byte be put right after the copy (take()).
// 3. Groups of four codes. While the width stays the same, one load gives four codes. Each string
//    of at most 16 bytes (32 where strings are long) costs one copy of that size, and the next
//    string overwrites the surplus. All other codes, and the end of a piece, go through take().
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "gpu_engine/codec/codec_parts.h"
#include "gpu_engine/codec/copy_step.h"
#include "gpu_engine/codec/sub_blocks.h"
#include "gpu_engine/codec/workspace.h"

namespace nacre::engine {
namespace {

constexpr std::size_t lzw_piece_size_bytes = 8192;
constexpr unsigned clear_code = 256;
constexpr unsigned end_code = 257;
constexpr unsigned first_string = 258;
constexpr unsigned width_min_bits = 9;
constexpr unsigned width_max_bits = 12;
constexpr std::uint32_t string_mask = (1u << width_max_bits) - 1;
// After this many codes since the clear code the encoder clears; after code_count_max of them the
// next code must be clear or end.
constexpr unsigned clear_after_codes = 3836;
constexpr unsigned code_count_max = 3837;
static_assert(first_string + code_count_max < (1u << width_max_bits));

// No code is wider than 12 bits and there are no more codes than bytes, except for the clear code
// in front, the ones in the middle, and the end code.
constexpr std::size_t lzw_piece_bound_bytes =
    (lzw_piece_size_bytes + 1 + lzw_piece_size_bytes / clear_after_codes + 1) * width_max_bits / 8 +
    1;

std::size_t count_lzw_pieces(std::size_t plain_size) {
  return (plain_size + lzw_piece_size_bytes - 1) / lzw_piece_size_bytes;
}

unsigned code_width(unsigned codes_since_clear) {
  return static_cast<unsigned>(std::bit_width(first_string + codes_since_clear));
}

// Writes codes as bytes, most significant bit first. It stores 8 bytes at a time: to has room for 8
// bytes more than the codes need.
class CodeWriter {
 public:
  explicit CodeWriter(Byte* to) : to_(to) {}

  void put(unsigned code, unsigned width) {
    bits_ = bits_ << width | code;
    count_ += width;
    // An incomplete byte is stored again by the next code.
    store_le(to_, __builtin_bswap64(bits_ << (64 - count_)));
    to_ += count_ / 8;
    count_ %= 8;
  }

  // Returns the end of the bytes. Zeros fill the last byte.
  Byte* finish() { return to_ + (count_ != 0); }

 private:
  Byte* to_;
  std::uint64_t bits_ = 0;
  unsigned count_ = 0;
};

// (string, byte) -> string, in buckets of two slots; a third string replaces the older of the two.
// A slot is the 20-bit key above the 12-bit string.
struct StringTable {
  static constexpr unsigned bucket_count_log = 13;
  static constexpr std::uint64_t empty = ~std::uint64_t{0};  // string 4095 is never made

  std::array<std::uint64_t, 1u << bucket_count_log> buckets;

  static std::size_t bucket_of(std::uint32_t key) {
    return (key * 0x9e3779b1u) >> (32 - bucket_count_log);
  }
};

// The codes of one piece, without the clear codes and the end code.
struct PieceCodes {
  StringTable table;
  std::array<std::uint16_t, lzw_piece_size_bytes + 1> codes;
  std::size_t before_clear;   // count of codes before the last clear code
  std::uint32_t since_clear;  // count of codes after the last clear code
  std::uint32_t string;       // the string of the bytes since the last code

  std::size_t count() const { return before_clear + since_clear; }
  void clear() {
    table.buckets.fill(StringTable::empty);
    before_clear += since_clear;
    since_clear = 0;
  }
};

// Finds the codes of several pieces of the same size, a byte of each in turn. Each byte needs the
// result of the look-up for the byte before it, so one piece alone would wait most of the time. No
// branch in the innermost loop depends on the data.
template <std::size_t pieces>
void find_codes(std::array<PieceCodes, pieces>& state, const Byte* plain, std::size_t size) {
  for (std::size_t p = 0; p < pieces; ++p) {
    state[p].before_clear = state[p].since_clear = 0;
    state[p].string = plain[p * lzw_piece_size_bytes];
    state[p].clear();
  }
  std::size_t at = 1;
  while (at < size) {
    std::array<std::uint32_t, pieces> string;
    std::array<std::uint32_t, pieces> since_clear;
    std::array<std::uint16_t*, pieces> codes;
    // No piece makes more codes than it reads bytes, so before `end` no piece is due to be cleared.
    std::size_t end = size;
    for (std::size_t p = 0; p < pieces; ++p) {
      if (state[p].since_clear == clear_after_codes) state[p].clear();
      string[p] = state[p].string;
      since_clear[p] = state[p].since_clear;
      codes[p] = state[p].codes.data() + state[p].before_clear;
      end = std::min(end, at + clear_after_codes - since_clear[p]);
    }
    for (; at < end; ++at) {
#pragma GCC unroll 8
      for (std::size_t p = 0; p < pieces; ++p) {
        const std::uint32_t byte = plain[p * lzw_piece_size_bytes + at];
        const std::uint32_t key = string[p] << 8 | byte;
        std::uint64_t& bucket = state[p].table.buckets[StringTable::bucket_of(key)];
        const std::uint64_t slots = bucket;
        // If a slot has the key, its half of the difference is the string; otherwise that half is
        // larger than any string.
        const std::uint64_t keys =
            std::uint64_t{key} << (32 + width_max_bits) | key << width_max_bits;
        const std::uint64_t difference = slots ^ keys;
        const std::uint32_t found = std::min(static_cast<std::uint32_t>(difference),
                                             static_cast<std::uint32_t>(difference >> 32));
        // All ones where the string was not found.
        const auto missed = static_cast<std::uint64_t>((std::int64_t{string_mask} - found) >> 63);
        const auto missed_32 = static_cast<std::uint32_t>(missed);
        const std::uint64_t added =
            slots << 32 | (static_cast<std::uint32_t>(keys) + first_string + since_clear[p]);
        codes[p][since_clear[p]] = static_cast<std::uint16_t>(string[p]);
        bucket = slots ^ ((slots ^ added) & missed);
        string[p] = found ^ ((found ^ byte) & missed_32);
        since_clear[p] -= missed_32;
      }
    }
    for (std::size_t p = 0; p < pieces; ++p) {
      state[p].string = string[p];
      state[p].since_clear = since_clear[p];
    }
  }
  for (PieceCodes& piece : state) {
    piece.codes[piece.count()] = static_cast<std::uint16_t>(piece.string);
    ++piece.since_clear;
  }
}

// out: lzw_piece_bound_bytes + 8 bytes.
std::size_t write_codes(const PieceCodes& piece, Byte* out) {
  CodeWriter writer(out);
  writer.put(clear_code, width_min_bits);
  unsigned since_clear = 0;
  for (std::size_t i = 0; i < piece.count(); ++i) {
    writer.put(piece.codes[i], code_width(since_clear));
    if (++since_clear != clear_after_codes) continue;
    writer.put(clear_code, width_max_bits);
    since_clear = 0;
  }
  writer.put(end_code, code_width(since_clear));
  return static_cast<std::size_t>(writer.finish() - out);
}

std::size_t encode_lzw(int /*level*/, ByteView plain, MutableByteView out) {
  constexpr std::size_t together = 4;
  auto& several = thread_workspace<std::array<PieceCodes, together>>();
  auto& single = thread_workspace<std::array<PieceCodes, 1>>();
  const std::size_t table_size = 2 * count_lzw_pieces(plain.size());
  std::array<Byte, lzw_piece_bound_bytes + 8> scratch;
  std::size_t written = table_size;
  if (written > out.size()) return 0;
  Byte* entry = out.data();
  const auto write = [&](const PieceCodes& piece) {
    const std::size_t size = write_codes(piece, scratch.data());
    if (size > out.size() - written) return false;
    std::memcpy(out.data() + written, scratch.data(), size);
    written += size;
    store_le(entry, static_cast<std::uint16_t>(size));
    entry += 2;
    return true;
  };
  while (!plain.empty()) {
    if (plain.size() >= together * lzw_piece_size_bytes) {
      find_codes(several, plain.data(), lzw_piece_size_bytes);
      for (const PieceCodes& piece : several)
        if (!write(piece)) return 0;
      plain = plain.subspan(together * lzw_piece_size_bytes);
    } else {
      const std::size_t size = std::min(lzw_piece_size_bytes, plain.size());
      find_codes(single, plain.data(), size);
      if (!write(single[0])) return 0;
      plain = plain.subspan(size);
    }
  }
  return written;
}

// The 256 single bytes, then the plain bytes of a piece, then room for a copy's last step. Each
// string is a stretch of these bytes.
struct PieceMemory {
  static constexpr std::size_t start = 256;
  static constexpr std::size_t step_bytes_min = 16;
  static constexpr std::size_t step_bytes_max = 32;
  static constexpr std::uint32_t size_one = 1u << 16;
  static constexpr std::uint32_t size_mask = 0xffff0000;

  std::array<Byte, start + lzw_piece_size_bytes + step_bytes_max> bytes;
  std::array<std::uint32_t, 1u << width_max_bits> strings;  // size above 16 bits of position

  PieceMemory() {
    for (unsigned i = 0; i < start; ++i) {
      bytes[i] = static_cast<Byte>(i);
      strings[i] = size_one | i;
    }
    // Larger than any string's size, so that the check for long strings catches these two codes.
    strings[clear_code] = strings[end_code] = size_mask;
  }
};

// Reads codes. Past the end all bits are zero.
class CodeReader {
 public:
  explicit CodeReader(ByteView bytes) : bytes_(bytes) {}

  bool is_far_from_end() const { return at_bit_ + 64 <= 8 * bytes_.size(); }
  // The next 57 bits or more, at the top. Only far from the end.
  std::uint64_t next_bits() const {
    return __builtin_bswap64(load_le<std::uint64_t>(bytes_.data() + at_bit_ / 8)) << (at_bit_ % 8);
  }
  void skip(std::size_t bits) { at_bit_ += bits; }

  unsigned get(unsigned width) {
    if (!is_far_from_end()) return get_near_end(width);
    const auto code = static_cast<unsigned>(next_bits() >> (64 - width));
    skip(width);
    return code;
  }

  // Whether everything is read except the rest of a byte, and that rest is zeros.
  bool at_end() const {
    if ((at_bit_ + 7) / 8 != bytes_.size()) return false;
    return at_bit_ % 8 == 0 || (bytes_.back() & (0xffu >> (at_bit_ % 8))) == 0;
  }

 private:
  unsigned get_near_end(unsigned width) {
    unsigned code = 0;
    for (unsigned i = 0; i < width; ++i, ++at_bit_) {
      const unsigned byte = at_bit_ / 8 < bytes_.size() ? bytes_[at_bit_ / 8] : 0;
      code = code << 1 | (byte >> (7 - at_bit_ % 8) & 1);
    }
    return code;
  }

  ByteView bytes_;
  std::size_t at_bit_ = 0;
};

class PieceDecoder {
 public:
  PieceDecoder(PieceMemory& memory, ByteView coded, std::size_t plain_size)
      : memory_(memory), reader_(coded), end_(PieceMemory::start + plain_size) {}

  // Whether the codes decode to exactly the plain bytes, which are then in the memory.
  bool run() {
    if (reader_.get(width_min_bits) != clear_code) return false;
    Stop stop = Stop::clear;
    while (stop == Stop::none || stop == Stop::clear) {
      if (stop == Stop::clear) {
        // The first code makes no string: it must be a byte or special.
        making_ = end_code;
        at_clear_ = at_;
      } else {
        stop = take_groups();
        if (stop != Stop::none) continue;
      }
      const unsigned codes = making_ - end_code;
      if (codes > code_count_max) return false;
      stop = take(reader_.get(code_width(codes)), making_, at_);
      ++making_;
    }
    return stop == Stop::end && at_ == end_ && reader_.at_end();
  }

 private:
  enum class Stop { none, clear, end, refused };

  // How many codes are fetched at once: 4 of 12 bits fit into the 57 bits that a load gives.
  static constexpr unsigned group_size = 4;

  // Decodes one code, with all checks. making: the string that this code makes.
  Stop take(unsigned code, unsigned making, std::size_t& at) {
    if ((code | 1) == end_code) return code == end_code ? Stop::end : Stop::clear;
    if (code > making) return Stop::refused;
    const std::uint32_t string = memory_.strings[code];
    const std::size_t size = string >> 16;
    if (size > end_ - at) return Stop::refused;
    Byte* const to = memory_.bytes.data() + at;
    const Byte* const from = memory_.bytes.data() + (string & 0xffff);
    constexpr std::size_t step = PieceMemory::step_bytes_min;
    for (std::size_t i = 0; i < size; i += step)
      copy_step<step>(to + i, from + i);
    // The string being made ends with its own first byte, which was not yet written when the copy
    // read it.
    if (code == making) to[size - 1] = *from;
    make_string(making + 1, string, at);
    at += size;
    return Stop::none;
  }

  // Enters the string that the next code makes: the one written at `at`, and one more byte.
  void make_string(unsigned making, std::uint32_t string, std::size_t at) {
    memory_.strings[making] =
        (string & PieceMemory::size_mask) + PieceMemory::size_one + static_cast<std::uint32_t>(at);
  }

  // Decodes groups of codes while the width stays the same; copies in longer steps where strings
  // are long.
  Stop take_groups() {
    const unsigned codes = making_ - end_code;
    const bool long_steps = at_ - at_clear_ >= std::size_t{4} * codes;
    switch (code_width(codes)) {
      case 9:
        return long_steps ? take_groups<9, 32>() : take_groups<9, 16>();
      case 10:
        return long_steps ? take_groups<10, 32>() : take_groups<10, 16>();
      case 11:
        return long_steps ? take_groups<11, 32>() : take_groups<11, 16>();
      default:
        return long_steps ? take_groups<12, 32>() : take_groups<12, 16>();
    }
  }

  // The string of a code that is neither special nor just being made, if it has at most step bytes,
  // costs one copy and no check of the room that is left. All other codes go through take(). Ends
  // when take() stops, or when the remaining coded bytes, codes of this width or room might be too
  // few for a group.
  template <unsigned width, std::size_t step>
  Stop take_groups() {
    static_assert(step <= PieceMemory::step_bytes_max && group_size * width <= 57);
    constexpr unsigned making_end = (1u << width) - 1;  // that code would be one bit wider
    constexpr std::size_t room = group_size * step;
    Byte* const bytes = memory_.bytes.data();
    CodeReader reader = reader_;
    std::size_t at = at_;
    unsigned making = making_;
    Stop stop = Stop::none;
    bool fits = true;
    while (fits && making + group_size <= making_end && reader.is_far_from_end() &&
           end_ - at >= room) {
      std::uint64_t bits = reader.next_bits();
      unsigned taken = group_size;
#pragma GCC unroll 4
      for (unsigned i = 0; i < group_size; ++i) {
        const auto code = static_cast<unsigned>(bits >> (64 - width));
        bits <<= width;
        const std::uint32_t string = memory_.strings[code];
        const std::size_t size = string >> 16;
        if (code >= making + i || size > step) [[unlikely]] {
          stop = take(code, making + i, at);
          if (stop == Stop::none && end_ - at >= room) continue;
          taken = i + 1;
          fits = false;
          break;
        }
        copy_step<step>(bytes + at, bytes + (string & 0xffff));
        make_string(making + i + 1, string, at);
        at += size;
      }
      making += taken;
      reader.skip(std::size_t{taken} * width);
    }
    reader_ = reader;
    at_ = at;
    making_ = making;
    return stop;
  }

  PieceMemory& memory_;
  CodeReader reader_;
  std::size_t end_;
  std::size_t at_ = PieceMemory::start;
  std::size_t at_clear_ = PieceMemory::start;  // at_ at the last clear code
  unsigned making_ = end_code;                 // the string that the next code makes
};

bool decode_lzw(ByteView coded, MutableByteView plain) {
  auto& memory = thread_workspace<PieceMemory>();
  const std::size_t table_size = 2 * count_lzw_pieces(plain.size());
  if (coded.size() < table_size) return false;
  ByteView rest = coded.subspan(table_size);
  for (std::size_t start = 0; start < plain.size(); start += lzw_piece_size_bytes) {
    const std::size_t size =
        load_le<std::uint16_t>(coded.data() + 2 * (start / lzw_piece_size_bytes));
    if (size > rest.size()) return false;
    const MutableByteView piece =
        plain.subspan(start, std::min(lzw_piece_size_bytes, plain.size() - start));
    if (!PieceDecoder(memory, rest.first(size), piece.size()).run()) return false;
    std::memcpy(piece.data(), memory.bytes.data() + PieceMemory::start, piece.size());
    rest = rest.subspan(size);
  }
  return rest.empty();
}

std::optional<std::size_t> compress_lzw(int level, ByteView plain, MutableByteView out,
                                        std::size_t size_max) {
  return encode_sub_blocks(encode_lzw, level, plain, out, size_max);
}

bool decompress_lzw(ByteView stream, MutableByteView plain) {
  return decode_sub_blocks(decode_lzw, stream, plain);
}

}  // namespace

const CodecParts lzw_codec = {sub_blocks_size_bound, compress_lzw, decompress_lzw};

}  // namespace nacre::engine
