// SPDX-License-Identifier: Apache-2.0
// Reads one round of all 32 lanes as a whole. The loop in fast_rounds.cpp calls the variant that
// suits the processor.
#pragma once

#include "gpu_engine/codec/gdeflate/fast_rounds.h"

namespace nacre::engine::gdeflate {

struct LaneBits {
  alignas(64) std::array<std::uint64_t, lane_count> bits;
  alignas(64) std::array<std::uint32_t, lane_count> count;
};

inline constexpr std::size_t copy_size_bytes = 32;

// The items (literals and matches) that begin in one round, numbered from 0 in their order.
struct Round {
  // By lane: the size of its match, or the distance of the match that began in the round before.
  alignas(64) std::array<std::uint32_t, lane_count> values;
  alignas(32) std::array<std::uint8_t, lane_count> items;   // by lane: its item's number, if any
  std::array<Byte, lane_count + copy_size_bytes> literals;  // by item; undefined for a match
  std::uint32_t matches = 0;                                // mask of lanes that begin a match
  std::uint32_t item_count = 0;
  std::uint32_t size = 0;  // plain bytes of all items
};

// Reads a round from the lanes in `from`, and writes the lanes as they are after it to `to`.
// next: the next word of the page; at least 32 words must follow there. It is moved past the words
// that lanes got. begun: `matches` of the round before. If the return value has a bit of
// unusual_flags, the round holds the end of the block or a code that no page may hold; round, to
// and next are then not valid.
inline constexpr TableEntry unusual_flags = entry_is_unusable | entry_is_end;
using ReadRound = TableEntry (*)(const BlockTables& tables, const LaneBits& from,
                                 std::uint32_t begun, const Byte*& next, LaneBits& to,
                                 Round& round);

TableEntry read_round_portable(const BlockTables& tables, const LaneBits& from, std::uint32_t begun,
                               const Byte*& next, LaneBits& to, Round& round);

// The reader for AVX-512; nullptr if this processor lacks an instruction set that it uses.
ReadRound find_read_round_avx512();

}  // namespace nacre::engine::gdeflate
