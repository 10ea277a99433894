// SPDX-License-Identifier: Apache-2.0
// The fastest parser: one candidate a position, from a table that fits the first-level cache, and
// longer steps where none has been found for a while.
#include <algorithm>
#include <array>

#include "gpu_engine/codec/gdeflate/match_size.h"
#include "gpu_engine/codec/gdeflate/parse.h"

namespace nacre::engine::gdeflate {
namespace {

constexpr unsigned table_bits = 14;
constexpr std::size_t hashed_bytes = 4;
// No match begins in the last bytes: what is read ahead is there.
constexpr std::size_t tail_bytes = 8;
static_assert(tail_bytes >= hashed_bytes && tail_bytes >= ItemList::step);
constexpr unsigned steps_per_miss_log = 5;  // after so many misses the step grows by one

std::uint32_t hash(std::uint32_t bytes) {
  return (bytes * 0x9e3779b1u) >> (32 - table_bits);
}

}  // namespace

void parse_fast(ByteView plain, ItemList& items) {
  const Byte* const bytes = plain.data();
  // Position 0 stands for none as well: what it holds is compared anyway.
  std::array<std::uint16_t, 1u << table_bits> last{};
  std::size_t at = 0;
  std::size_t literals_from = 0;
  items.clear();
  if (plain.size() > tail_bytes) {
    const std::size_t end = plain.size() - tail_bytes;
    at = 1;
    unsigned misses = 1u << steps_per_miss_log;
    while (at < end) {
      const auto here = load_le<std::uint32_t>(bytes + at);
      std::uint16_t& entry = last[hash(here)];
      const std::size_t candidate = entry;
      entry = static_cast<std::uint16_t>(at);
      if (load_le<std::uint32_t>(bytes + candidate) != here) {
        at += misses++ >> steps_per_miss_log;
        continue;
      }
      misses = 1u << steps_per_miss_log;
      std::size_t from = candidate;
      while (at > literals_from && from > 0 && bytes[at - 1] == bytes[from - 1]) {
        --at;
        --from;
      }
      const std::size_t size =
          hashed_bytes +
          count_equal(bytes + from + hashed_bytes, bytes + at + hashed_bytes, bytes + plain.size());
      items.add_literals(bytes + literals_from, at - literals_from);
      items.add_match(static_cast<unsigned>(size), static_cast<unsigned>(at - from));
      at += size;
      literals_from = at;
      if (at < end)
        last[hash(load_le<std::uint32_t>(bytes + at - 2))] = static_cast<std::uint16_t>(at - 2);
    }
  }
  for (; literals_from < plain.size(); ++literals_from)
    items.add_literal(bytes[literals_from]);
}

}  // namespace nacre::engine::gdeflate
