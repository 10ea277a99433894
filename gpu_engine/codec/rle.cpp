// SPDX-License-Identifier: Apache-2.0
// Codec rle: PackBits (TIFF 6.0, section 9), begun anew every 4 KiB so that the pieces of a
// sub-block can be decoded in parallel. The stream is framed as codec/sub_blocks.h says; a coded
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
// No group crosses the end of its piece. Encoders never write 128; the level is not used.
//
// The plain loop of an encoder looks at each byte: while a byte equals its successor, a run grows;
// otherwise the literals do. This encoder first compares 16 bytes at a time with their successors,
// and keeps the results as one bit a byte. So it skips 64 bytes without runs in one step, and finds
// a run's end by counting trailing zeros.
//
// The plain loop of the decoder (decode_piece()), without its checks:
//
//   while (from != from_end) {
//     h = *from++;
//     if (h < 128)       copy h + 1 bytes, from += h + 1;      // literals
//     else if (h > 128)  repeat *from++, 257 - h times;        // a run
//   }
//
// The steps from there (decode_groups()):
//
// 1. Sizes without loops. Most groups are short. So each is copied or filled in whole steps of
//    step_bytes, and the next group overwrites the surplus.
// 2. No check for each byte. This works as long as both places are so far from the ends of the
//    sub-block that a pair of the longest groups fits. The plain loop decodes what is left.
// 3. Literals and a run as a pair. A run usually follows literals, so the processor predicts that
//    branch, and the place of the next group does not wait for the run's header.
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

constexpr std::size_t rle_piece_size_bytes = 4096;
constexpr std::size_t group_size_max = 128;  // plain bytes under one header
constexpr std::size_t rle_piece_bound_bytes =
    rle_piece_size_bytes + rle_piece_size_bytes / group_size_max;
constexpr std::size_t encode_step_bytes = 16;
constexpr std::size_t piece_room_bytes = rle_piece_bound_bytes + encode_step_bytes;
// Groups are copied in steps of this many bytes where there is room after them.
constexpr std::size_t step_bytes = 32;
static_assert(group_size_max == 4 * step_bytes);

std::size_t count_rle_pieces(std::size_t plain_size) {
  return (plain_size + rle_piece_size_bytes - 1) / rle_piece_size_bytes;
}

// Bit i % 64 of word i / 64: byte i equals byte i + 1. Two clear words follow the end.
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

  std::array<std::uint64_t, rle_piece_size_bytes / 64 + 2> words_;
  std::size_t end_;
};

// Writes bytes as groups of literals. Most groups are short, so steps of a fixed size cost less
// than a call of memcpy(). They may read and write past the group's end where from_end is far
// enough.
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

// Writes a run of size equal bytes. All its groups except the last are full. When one byte is left
// over, it is not written: size is set to the count of bytes that were.
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

// out: piece_room_bytes. Three equal bytes among literals are not coded as a run: that would save
// nothing, because the literals would need a second header. Two or three equal bytes that stand
// alone between two runs are coded as a run.
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

std::size_t encode_rle(int /*level*/, ByteView plain, MutableByteView out) {
  const std::size_t table_size = 2 * count_rle_pieces(plain.size());
  std::array<Byte, piece_room_bytes> scratch;
  std::size_t written = table_size;
  if (written > out.size()) return 0;
  for (std::size_t start = 0; start < plain.size(); start += rle_piece_size_bytes) {
    const ByteView piece =
        plain.subspan(start, std::min(rle_piece_size_bytes, plain.size() - start));
    const bool has_room = out.size() - written >= piece_room_bytes;
    Byte* const to = has_room ? out.data() + written : scratch.data();
    const auto size = static_cast<std::size_t>(encode_piece(piece, to) - to);
    if (!has_room) {
      if (size > out.size() - written) return 0;
      std::memcpy(out.data() + written, scratch.data(), size);
    }
    store_le(out.data() + 2 * (start / rle_piece_size_bytes), static_cast<std::uint16_t>(size));
    written += size;
  }
  return written;
}

// Decodes to the end of the piece. Writes and reads nothing outside it.
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
      if (size > from_room || size > static_cast<std::size_t>(to_end - to)) return false;
      std::memcpy(to, from, size);
      from += size;
      to += size;
    } else if (header > 128) {
      const std::size_t size = 257 - header;
      if (from == from_end || size > static_cast<std::size_t>(to_end - to)) return false;
      std::memset(to, *from++, size);
      to += size;
    }
  }
  return to == to_end;
}

inline void copy_group(Byte* to, const Byte* from, std::size_t size) {
  copy_step<step_bytes>(to, from);
  if (size <= step_bytes) return;
  copy_step<step_bytes>(to + step_bytes, from + step_bytes);
  if (size <= 2 * step_bytes) return;
  copy_step<step_bytes>(to + 2 * step_bytes, from + 2 * step_bytes);
  copy_step<step_bytes>(to + 3 * step_bytes, from + 3 * step_bytes);
}

inline void fill_group(Byte* to, Byte value, std::size_t size) {
  std::memset(to, value, step_bytes);
  if (size <= step_bytes) return;
  std::memset(to + step_bytes, value, step_bytes);
  if (size <= 2 * step_bytes) return;
  std::memset(to + 2 * step_bytes, value, 2 * step_bytes);
}

struct Cursor {
  const Byte* from;
  Byte* to;
};

// Decodes groups of a piece while both the coded and the plain place are far from the ends of the
// sub-block. Groups are copied in whole steps: the bytes that follow overwrite the surplus, which
// may reach into the next piece. So a group that crosses its piece's end is noticed only
// afterwards: the cursor is then past the end.
//
// Usually a run follows literals, so the processor predicts the branch to it. Then the place of the
// next group does not depend on the run's header: a pair of groups costs a load and an addition,
// some eight cycles.
Cursor decode_groups(Cursor at, const Byte* from_end, const Byte* from_safe, const Byte* to_safe) {
  const Byte* from = at.from;
  Byte* to = at.to;
  from_safe = std::min(from_safe, from_end);
  while (from < from_safe && to < to_safe) {
    std::size_t header = *from;
    if (header < 128) {
      copy_group(to, from + 1, header + 1);
      from += header + 2;
      to += header + 1;
      if (from >= from_end) break;
      header = *from;
      if (header < 128) continue;
    }
    if (header == 128) {
      ++from;
      continue;
    }
    fill_group(to, from[1], 257 - header);
    from += 2;
    to += 257 - header;
  }
  return {from, to};
}

bool decode_rle(ByteView coded, MutableByteView plain) {
  const std::size_t table_size = 2 * count_rle_pieces(plain.size());
  if (coded.size() < table_size) return false;
  // Up to these places a pair of groups fits.
  const Byte* const coded_end = coded.data() + coded.size();
  const Byte* const from_safe = coded_end - std::min(coded.size(), 2 * (group_size_max + 1));
  Byte* const to_safe = plain.data() + plain.size() - std::min(plain.size(), 2 * group_size_max);
  const Byte* from = coded.data() + table_size;
  for (std::size_t start = 0; start < plain.size(); start += rle_piece_size_bytes) {
    const std::size_t size =
        load_le<std::uint16_t>(coded.data() + 2 * (start / rle_piece_size_bytes));
    if (size > static_cast<std::size_t>(coded_end - from)) return false;
    const Byte* const from_end = from + size;
    Byte* const to = plain.data() + start;
    Byte* const to_end = to + std::min(rle_piece_size_bytes, plain.size() - start);
    const Cursor at = decode_groups({from, to}, from_end, from_safe, to_safe);
    if (at.from > from_end || at.to > to_end) return false;
    if (!decode_piece({at.from, from_end}, {at.to, to_end})) return false;
    from = from_end;
  }
  return from == coded_end;
}

std::optional<std::size_t> compress_rle(int level, ByteView plain, MutableByteView out,
                                        std::size_t size_max) {
  return encode_sub_blocks(encode_rle, level, plain, out, size_max);
}

bool decompress_rle(ByteView stream, MutableByteView plain) {
  return decode_sub_blocks(decode_rle, stream, plain);
}

}  // namespace

const CodecParts rle_codec = {sub_blocks_size_bound, compress_rle, decompress_rle};

}  // namespace nacre::engine
