// SPDX-License-Identifier: Apache-2.0
// The fastest parser: two candidates a position, from a table that fits the first-level cache, and
// longer steps after many positions without a match. A bucket holds the last two positions with one
// hash, the later one in its low half. Of the positions inside a match, the second and the last two
// are entered too. These entries and the second candidate save a twentieth of the size, and cost a
// seventh of the speed.
#include <algorithm>
#include <array>

#include "gpu_engine/codec/gdeflate/match_size.h"
#include "gpu_engine/codec/gdeflate/parse.h"

namespace nacre::engine::gdeflate {
namespace {

constexpr unsigned table_bits = 13;
constexpr std::size_t hashed_bytes = 4;
// No match begins in the last bytes, so reading ahead stays within the plain bytes.
constexpr std::size_t tail_bytes = 8;
static_assert(tail_bytes >= hashed_bytes && tail_bytes >= ItemList::step);
constexpr unsigned steps_per_miss_log = 6;  // after each 2^6 misses in a row the step grows by one

std::uint32_t hash(std::uint32_t bytes) {
  return (bytes * 0x9e3779b1u) >> (32 - table_bits);
}

void remember(std::uint32_t& bucket, std::size_t position) {
  bucket = bucket << 16 | static_cast<std::uint32_t>(position);
}

}  // namespace

void parse_fast(ByteView plain, ItemList& items) {
  const Byte* const bytes = plain.data();
  // Position 0 also stands for none: the bytes there are compared anyway.
  std::array<std::uint32_t, 1u << table_bits> last{};
  std::size_t at = 0;
  std::size_t literals_from = 0;
  items.clear();
  if (plain.size() > tail_bytes) {
    const std::size_t end = plain.size() - tail_bytes;
    at = 1;
    unsigned misses = 1u << steps_per_miss_log;
    while (at < end) {
      const auto here = load_le<std::uint32_t>(bytes + at);
      std::uint32_t& entry = last[hash(here)];
      const std::uint32_t bucket = entry;
      remember(entry, at);
      std::size_t candidate = bucket & 0xffff;
      const std::size_t older = bucket >> 16;
      const bool first_fits = load_le<std::uint32_t>(bytes + candidate) == here;
      const bool second_fits = load_le<std::uint32_t>(bytes + older) == here;
      if (!first_fits && !second_fits) {
        at += misses++ >> steps_per_miss_log;
        continue;
      }
      std::size_t size = 0;
      if (first_fits) size = count_equal(bytes + candidate, bytes + at, bytes + plain.size());
      if (second_fits) {
        const std::size_t other = count_equal(bytes + older, bytes + at, bytes + plain.size());
        if (other > size) {
          size = other;
          candidate = older;
        }
      }
      misses = 1u << steps_per_miss_log;
      std::size_t from = candidate;
      while (at > literals_from && from > 0 && bytes[at - 1] == bytes[from - 1]) {
        --at;
        --from;
        ++size;
      }
      items.add_literals(bytes + literals_from, at - literals_from);
      items.add_match(static_cast<unsigned>(size), static_cast<unsigned>(at - from));
      at += size;
      literals_from = at;
      if (at < end) {
        for (const std::size_t inside : {at - size + 1, at - 2, at - 1})
          remember(last[hash(load_le<std::uint32_t>(bytes + inside))], inside);
      }
    }
  }
  for (; literals_from < plain.size(); ++literals_from)
    items.add_literal(bytes[literals_from]);
}

}  // namespace nacre::engine::gdeflate
