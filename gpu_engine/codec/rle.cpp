// SPDX-License-Identifier: Apache-2.0
// Codec rle: PackBits (TIFF 6.0, section 9), begun anew every 4 KiB so that the pieces of a
// sub-block can be decoded at once. The stream is framed as codec/sub_blocks.h says; a coded
// sub-block of n plain bytes is
//
//   0                  2 * pieces
//   +------------------+---------+---------+---
//   | sizes, u16 each  | piece 0 | piece 1 | …        pieces = ceil(n / 4096), at most 16
//   +------------------+---------+---------+---
//
// A size counts the coded bytes of its piece; together with the table they are the whole sub-block.
// A piece gives 4096 plain bytes (the last one the rest) and is a sequence of
//
//   h = 0 … 127     then h + 1 bytes: those bytes
//   h = 129 … 255   then 1 byte: that byte 257 - h times
//   h = 128         nothing
//
// None crosses the end of its piece. Encoders never write 128; the level is not used.
//
// The encoder marks in one bit per byte where a byte equals its successor (a compare of 16 bytes at
// a time), so that stretches without runs are skipped 64 bytes a step and a run's end is a count of
// trailing zeros.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "gpu_engine/codec/codec_parts.h"
#include "gpu_engine/codec/copy_step.h"
#include "gpu_engine/codec/sub_blocks.h"

namespace nacre::engine {
namespace {

constexpr std::size_t piece_size_bytes = 4096;
constexpr std::size_t group_size_max = 128;  // plain bytes under one header
constexpr std::size_t piece_bound_bytes = piece_size_bytes + piece_size_bytes / group_size_max;
constexpr std::size_t encode_step_bytes = 16;
constexpr std::size_t piece_room_bytes = piece_bound_bytes + encode_step_bytes;
// Groups are copied in steps of this many bytes where there is room behind them.
constexpr std::size_t step_bytes = 32;
static_assert(group_size_max % step_bytes == 0);

std::size_t count_pieces(std::size_t plain_size) {
  return (plain_size + piece_size_bytes - 1) / piece_size_bytes;
}

// Bit i of word i / 64: byte i equals byte i + 1. Two clear words behind the end.
class EqualNeighbours {
 public:
  explicit EqualNeighbours(ByteView plain) {
    const std::size_t pair_count = plain.size() - 1;
    std::size_t word = 0;
    for (; 64 * (word + 1) <= pair_count; ++word)
      words_[word] = compare_64(plain.data() + 64 * word);
    words_[word] = 0;
    for (std::size_t i = 64 * word; i < pair_count; ++i)
      words_[word] |= std::uint64_t{plain[i] == plain[i + 1]} << (i % 64);
    words_[word + 1] = words_[word + 2] = 0;
    end_ = 64 * (word + 1);
  }

  // The first i >= from where bytes i … i + 3 are equal; past the plain bytes when there is none.
  std::size_t find_run(std::size_t from) const {
    std::size_t word = from / 64;
    std::uint64_t found = runs_in(word) & (~std::uint64_t{0} << (from % 64));
    while (found == 0 && 64 * ++word < end_)
      found = runs_in(word);
    return 64 * word + static_cast<std::size_t>(std::countr_zero(found));
  }

  // The first i >= from where byte i does not equal byte i + 1.
  std::size_t find_end(std::size_t from) const {
    std::size_t word = from / 64;
    std::uint64_t found = ~words_[word] & (~std::uint64_t{0} << (from % 64));
    while (found == 0)
      found = ~words_[++word];
    return 64 * word + static_cast<std::size_t>(std::countr_zero(found));
  }

 private:
  std::uint64_t runs_in(std::size_t word) const {
    const std::uint64_t here = words_[word];
    const std::uint64_t next = words_[word + 1];
    return here & (here >> 1 | next << 63) & (here >> 2 | next << 62);
  }

  static std::uint64_t compare_64(const Byte* bytes) {
#if defined(__SSE2__)
    std::uint64_t equal = 0;
    for (unsigned i = 0; i < 64; i += 16) {
      const auto here = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes + i));
      const auto next = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes + i + 1));
      const auto mask = static_cast<unsigned>(_mm_movemask_epi8(_mm_cmpeq_epi8(here, next)));
      equal |= std::uint64_t{mask} << i;
    }
    return equal;
#else
    std::uint64_t equal = 0;
    for (unsigned i = 0; i < 64; ++i)
      equal |= std::uint64_t{bytes[i] == bytes[i + 1]} << i;
    return equal;
#endif
  }

  std::array<std::uint64_t, piece_size_bytes / 64 + 2> words_;
  std::size_t end_;
};

// Most groups are short: steps cost less than a call of memcpy(). They may go past the group's end,
// in both places, where from_end is far enough.
Byte* write_bytes(Byte* to, const Byte* from, std::size_t size, const Byte* from_end) {
  while (size > 0) {
    const std::size_t group = std::min(size, group_size_max);
    *to++ = static_cast<Byte>(group - 1);
    if (static_cast<std::size_t>(from_end - from) >= group + encode_step_bytes) {
      for (std::size_t i = 0; i < group; i += encode_step_bytes)
        copy_step<encode_step_bytes>(to + i, from + i);
    } else {
      std::memcpy(to, from, group);
    }
    to += group;
    from += group;
    size -= group;
  }
  return to;
}

// Of a run all groups but the last are full, and a last group of one byte is left to what follows.
Byte* write_run(Byte* to, Byte value, std::size_t& size) {
  std::size_t left = size;
  while (left >= 2) {
    const std::size_t group = std::min(left, group_size_max);
    *to++ = static_cast<Byte>(257 - group);
    *to++ = value;
    left -= group;
  }
  size -= left;
  return to;
}

// out: piece_room_bytes. Among other bytes a run of three saves nothing, for it ends their group;
// between two runs even a pair is worth its two bytes.
Byte* encode_piece(ByteView plain, Byte* out) {
  const EqualNeighbours equal(plain);
  std::size_t at = 0;
  while (at < plain.size()) {
    const std::size_t run = std::min(equal.find_run(at), plain.size());
    if (run - at >= 2 && equal.find_end(at) + 1 >= run) {
      std::size_t size = run - at;
      out = write_run(out, plain[at], size);
    } else {
      out = write_bytes(out, plain.data() + at, run - at, plain.data() + plain.size());
    }
    if (run == plain.size()) break;
    std::size_t size = equal.find_end(run) + 1 - run;
    out = write_run(out, plain[run], size);
    at = run + size;
  }
  return out;
}

std::size_t encode(int /*level*/, ByteView plain, MutableByteView out) {
  const std::size_t table_size = 2 * count_pieces(plain.size());
  std::array<Byte, piece_room_bytes> scratch;
  std::size_t written = table_size;
  if (written > out.size()) return 0;
  for (std::size_t start = 0; start < plain.size(); start += piece_size_bytes) {
    const ByteView piece = plain.subspan(start, std::min(piece_size_bytes, plain.size() - start));
    const bool has_room = out.size() - written >= piece_room_bytes;
    Byte* const to = has_room ? out.data() + written : scratch.data();
    const auto size = static_cast<std::size_t>(encode_piece(piece, to) - to);
    if (!has_room) {
      if (size > out.size() - written) return 0;
      std::memcpy(out.data() + written, scratch.data(), size);
    }
    store_le(out.data() + 2 * (start / piece_size_bytes), static_cast<std::uint16_t>(size));
    written += size;
  }
  return written;
}

// Where both pieces have room for the longest group, a group is copied in whole steps: what is too
// much is overwritten by the next group.
bool decode_piece(ByteView coded, MutableByteView plain) {
  const Byte* from = coded.data();
  const Byte* const from_end = from + coded.size();
  Byte* to = plain.data();
  Byte* const to_end = to + plain.size();
  while (from != from_end) {
    const std::size_t header = *from++;
    if (header < 128) {
      const std::size_t size = header + 1;
      const auto from_room = static_cast<std::size_t>(from_end - from);
      const auto to_room = static_cast<std::size_t>(to_end - to);
      if (size > from_room || size > to_room) return false;
      if (std::min(from_room, to_room) >= group_size_max) {
        for (std::size_t i = 0; i < size; i += step_bytes)
          std::memcpy(to + i, from + i, step_bytes);
      } else {
        std::memcpy(to, from, size);
      }
      from += size;
      to += size;
    } else if (header > 128) {
      const std::size_t size = 257 - header;
      const auto to_room = static_cast<std::size_t>(to_end - to);
      if (from == from_end || size > to_room) return false;
      const Byte value = *from++;
      if (to_room >= group_size_max) {
        for (std::size_t i = 0; i < size; i += step_bytes)
          std::memset(to + i, value, step_bytes);
      } else {
        std::memset(to, value, size);
      }
      to += size;
    }
  }
  return to == to_end;
}

bool decode(ByteView coded, MutableByteView plain) {
  const std::size_t table_size = 2 * count_pieces(plain.size());
  if (coded.size() < table_size) return false;
  ByteView rest = coded.subspan(table_size);
  for (std::size_t start = 0; start < plain.size(); start += piece_size_bytes) {
    const std::size_t size = load_le<std::uint16_t>(coded.data() + 2 * (start / piece_size_bytes));
    if (size > rest.size()) return false;
    const MutableByteView piece =
        plain.subspan(start, std::min(piece_size_bytes, plain.size() - start));
    if (!decode_piece(rest.first(size), piece)) return false;
    rest = rest.subspan(size);
  }
  return rest.empty();
}

std::optional<std::size_t> compress(int level, ByteView plain, MutableByteView out,
                                    std::size_t size_max) {
  return encode_sub_blocks(encode, level, plain, out, size_max);
}

bool decompress(ByteView stream, MutableByteView plain) {
  return decode_sub_blocks(decode, stream, plain);
}

}  // namespace

const CodecParts rle_codec = {sub_blocks_size_bound, compress, decompress};

}  // namespace nacre::engine
