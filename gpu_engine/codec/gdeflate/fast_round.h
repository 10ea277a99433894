// SPDX-License-Identifier: Apache-2.0
// One round of all 32 lanes, read as a whole: what the loop of fast_rounds.cpp shares with its
// readers for particular processors.
#pragma once

#include "gpu_engine/codec/gdeflate/fast_rounds.h"

namespace nacre::engine::gdeflate {

struct LaneBits {
  alignas(64) std::array<std::uint64_t, lane_count> bits;
  alignas(64) std::array<std::uint32_t, lane_count> count;
};

inline constexpr std::size_t copy_size_bytes = 32;

// The literals and matches that begin in one round. An item is one of these; items are counted from
// 0 in their order.
struct Round {
  // By lane: the size of its match, or the distance of the match that began in the round before.
  alignas(64) std::array<std::uint32_t, lane_count> values;
  alignas(32) std::array<std::uint8_t, lane_count> items;   // by lane, where it has one
  std::array<Byte, lane_count + copy_size_bytes> literals;  // by item; any byte for a match
  std::uint32_t matches = 0;                                // lanes
  std::uint32_t item_count = 0;
  std::uint32_t size = 0;  // plain bytes of all items
};

// Reads a round from the lanes and from the words at next, of which there is one for every lane.
// begun: the matches of the round before. If the result has a bit of unusual_flags, the
// round holds something unusual, and no other result is valid.
inline constexpr TableEntry unusual_flags = entry_is_unusable | entry_is_end;
using ReadRound = TableEntry (*)(const BlockTables& tables, const LaneBits& from,
                                 std::uint32_t begun, const Byte*& next, LaneBits& to,
                                 Round& round);

TableEntry read_round_portable(const BlockTables& tables, const LaneBits& from, std::uint32_t begun,
                               const Byte*& next, LaneBits& to, Round& round);

// A reader with AVX-512; nullptr where this processor lacks what it needs.
ReadRound find_read_round_avx512();

}  // namespace nacre::engine::gdeflate
