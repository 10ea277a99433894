// SPDX-License-Identifier: Apache-2.0
// The greedy parse of liblz4's fast mode. The plain loop:
//
//   for (i = 0; at least 12 bytes are left at i;) {
//     candidate = table[hash of the bytes at i], table[hash] = i;
//     if four bytes at candidate are those at i:
//       extend the match in both directions, write literals and match, i = its end;
//     else i += a step that grows while nothing is found;
//   }
//
// This encoder differs in two things. First, it hashes six bytes instead of the four of the
// shortest match: the matches that it finds are longer, so there is less to write and less to
// search. A block that gets little smaller with six (numbers in lines, small records) is coded
// again with four. Second, the table has 2^14 entries instead of 2^13. It still fits the
// first-level cache, and fewer positions are overwritten.
//
// Positions are 16 bits, since a block has at most 65536 bytes. Position 0 also stands for "none":
// it is a candidate like any other, since the bytes of every candidate are compared.
#include "gpu_engine/codec/lz4_fast.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

#include "gpu_engine/codec/copy_step.h"
#include "gpu_engine/codec/workspace.h"

namespace nacre::engine {
namespace {

constexpr unsigned table_bits = 14;
constexpr std::size_t match_size_min = 4;
// The format: the last five bytes are literals, and a match begins at least twelve bytes before the
// end.
constexpr std::size_t last_literals = 5;
constexpr std::size_t match_start_room = 12;
constexpr unsigned skip_shift = 5;
constexpr std::size_t copy_room = 32;  // how far literals may be copied past their end

// When six-byte hashes leave more than this many quarters of a block's size, the block is coded
// again with four-byte hashes.
constexpr std::size_t well_coded_of_4 = 3;

struct SecondTry {
  std::array<Byte, (1u << 16)> bytes;
};
struct Table {
  std::array<std::uint16_t, 1u << table_bits> positions;
};

// Reads eight bytes. Every caller has at least eleven bytes left.
template <unsigned byte_count>
inline std::size_t hash(const Byte* at) {
  static_assert(byte_count == 4 || byte_count == 6);
  if constexpr (byte_count == 4)
    return (load_le<std::uint32_t>(at) * 2654435761u) >> (32 - table_bits);
  return ((load_le<std::uint64_t>(at) << 16) * 227718039650203u) >> (64 - table_bits);
}
inline std::uint32_t load_4(const Byte* at) {
  return load_le<std::uint32_t>(at);
}

// How many bytes at a equal those at b, up to end, which bounds a. b lies before a.
inline std::size_t count_equal(const Byte* a, const Byte* b, const Byte* end) {
  const Byte* const begin = a;
  while (a + 8 <= end) {
    const std::uint64_t difference = load_le<std::uint64_t>(a) ^ load_le<std::uint64_t>(b);
    if (difference != 0)
      return static_cast<std::size_t>(a - begin) +
             static_cast<std::size_t>(std::countr_zero(difference)) / 8;
    a += 8;
    b += 8;
  }
  while (a < end && *a == *b) {
    ++a;
    ++b;
  }
  return static_cast<std::size_t>(a - begin);
}

inline Byte* put_length(Byte* to, std::size_t rest) {
  for (; rest >= 255; rest -= 255)
    *to++ = 255;
  *to++ = static_cast<Byte>(rest);
  return to;
}

// How many bytes follow the token to express this length (of literals, or of a match beyond four
// bytes): a token holds up to 14 by itself.
inline std::size_t lz4_length_size(std::size_t length) {
  return length < 15 ? 0 : (length - 15) / 255 + 1;
}
inline std::size_t literals_size(std::size_t literals) {
  return 1 + lz4_length_size(literals) + literals;
}
constexpr std::size_t distance_size = 2;

template <unsigned hashed, bool has_room>
std::size_t encode(unsigned acceleration, ByteView plain, MutableByteView out) {
  const Byte* const base = plain.data();
  const Byte* const end = base + plain.size();
  const Byte* anchor = base;
  Byte* to = out.data();
  Byte* const to_end = to + out.size();

  if (plain.size() > match_start_room) {
    auto& table = thread_workspace<Table>().positions;
    table.fill(0);
    const Byte* const match_end_max = end - last_literals;
    const Byte* const start_max = end - match_start_room;  // no match begins after it
    const auto position = [base](const Byte* at) { return static_cast<std::uint16_t>(at - base); };

    const Byte* at = base + 1;
    std::size_t next_hash = hash<hashed>(at);
    for (;;) {
      // Find a match.
      const Byte* candidate;
      const Byte* next = at;
      unsigned misses = acceleration << skip_shift;
      do {
        const std::size_t slot = next_hash;
        at = next;
        next += misses++ >> skip_shift;
        if (next > start_max) goto done;
        candidate = base + table[slot];
        next_hash = hash<hashed>(next);
        table[slot] = position(at);
      } while (load_4(candidate) != load_4(at));
      while (at > anchor && candidate > base && at[-1] == candidate[-1]) {
        --at;
        --candidate;
      }

      // Write its literals.
      const auto literals = static_cast<std::size_t>(at - anchor);
      const auto room = static_cast<std::size_t>(to_end - to);
      // This sum is larger than the exact one below, and quicker to compute.
      const bool is_roomy = has_room || room >= literals + literals / 128 + 2 * copy_room;
      if (!is_roomy && literals_size(literals) + distance_size > room) return 0;
      Byte* token = to++;
      if (literals < 15) {
        *token = static_cast<Byte>(literals << 4);
      } else {
        *token = 15 << 4;
        to = put_length(to, literals - 15);
      }
      if (is_roomy && static_cast<std::size_t>(end - anchor) >= literals + copy_room) {
        copy_step<16>(to, anchor);
        for (std::size_t i = 16; i < literals; i += 16)
          copy_step<16>(to + i, anchor + i);
      } else {
        std::memcpy(to, anchor, literals);
      }
      to += literals;

      for (;;) {
        // Write the match, and look at once for one that follows it.
        store_le(to, static_cast<std::uint16_t>(at - candidate));
        to += 2;
        const std::size_t extra =
            count_equal(at + match_size_min, candidate + match_size_min, match_end_max);
        if (extra < 15) {
          *token = static_cast<Byte>(*token | extra);
        } else {
          if (!has_room && lz4_length_size(extra) > static_cast<std::size_t>(to_end - to)) return 0;
          *token |= 15;
          to = put_length(to, extra - 15);
        }
        at += match_size_min + extra;
        anchor = at;
        if (at > start_max) goto done;
        table[hash<hashed>(at - 2)] = position(at - 2);
        const std::size_t slot = hash<hashed>(at);
        candidate = base + table[slot];
        table[slot] = position(at);
        if (load_4(candidate) != load_4(at)) break;
        if (!has_room && 1 + distance_size > static_cast<std::size_t>(to_end - to)) return 0;
        token = to++;
        *token = 0;
      }
      next_hash = hash<hashed>(++at);
    }
  }
done:
  const auto literals = static_cast<std::size_t>(end - anchor);
  if (literals_size(literals) > static_cast<std::size_t>(to_end - to)) return 0;
  if (literals < 15) {
    *to++ = static_cast<Byte>(literals << 4);
  } else {
    *to++ = 15 << 4;
    to = put_length(to, literals - 15);
  }
  std::memcpy(to, anchor, literals);
  return static_cast<std::size_t>(to + literals - out.data());
}

template <unsigned hashed>
std::size_t encode_by(int acceleration, ByteView plain, MutableByteView out) {
  // The size of the longest possible block, and room to copy past the end.
  const std::size_t bound = plain.size() + plain.size() / 255 + 16 + copy_room;
  const auto eagerness = static_cast<unsigned>(acceleration);
  return out.size() >= bound ? encode<hashed, true>(eagerness, plain, out)
                             : encode<hashed, false>(eagerness, plain, out);
}

}  // namespace

std::size_t encode_lz4_fast(int acceleration, ByteView plain, MutableByteView out) {
  const std::size_t size = encode_by<6>(acceleration, plain, out);
  if (size == 0) return encode_by<4>(acceleration, plain, out);
  if (size <= plain.size() / 4 * well_coded_of_4) return size;
  auto& second = thread_workspace<SecondTry>().bytes;
  const MutableByteView room(second.data(), std::min(second.size(), size - 1));
  const std::size_t smaller = encode_by<4>(acceleration, plain, room);
  if (smaller == 0) return size;
  std::copy_n(second.begin(), smaller, out.begin());
  return smaller;
}

}  // namespace nacre::engine
