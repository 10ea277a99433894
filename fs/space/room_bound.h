// SPDX-License-Identifier: Apache-2.0
// The bound of dead bytes on a nearly full disk. There it is lower than the space ratio allows,
// because space that compaction can still free must not keep writers out. This file only computes.
#pragma once

#include <algorithm>
#include <cstdint>

#include "fs/space/space_bound.h"
#include "fs/store/segment_store.h"

namespace nacre::fs {

struct RoomBound {
  // Room that is kept free for new data, as far as dead bytes can give it: 1/share_of_disk of the
  // disk, and at most bytes_max.
  static constexpr std::uint64_t share_of_disk = 16;
  static constexpr std::uint64_t bytes_max = 1u << 30;

  std::uint64_t wanted_bytes = 0;
  std::uint64_t missing_bytes = 0;  // the missing part of them, as far as compaction can free it

  // The bound with this room: compaction must free the missing bytes, and writers wait for it once
  // more than half of the room is used.
  SpaceBound applied_to(SpaceBound bound) const {
    const auto missing = static_cast<double>(missing_bytes);
    const auto slack = static_cast<double>(wanted_bytes) / 2;
    if (missing_bytes == 0 || missing / slack <= bound.overrun() + 1) return bound;
    bound.excess_bytes = missing;
    bound.slack_bytes = slack;
    return bound;
  }
};

// room_bytes is the room that new data may use now.
inline RoomBound room_bound_of(const SegmentStats& stats, std::uint64_t room_bytes,
                               std::uint64_t disk_bytes) {
  RoomBound bound;
  bound.wanted_bytes = std::min(disk_bytes / RoomBound::share_of_disk, RoomBound::bytes_max);
  // Empty segments become room with the next commit.
  const std::uint64_t soon = std::min(room_bytes + stats.empty_bytes, bound.wanted_bytes);
  const std::uint64_t can_give =
      stats.reclaimable_bytes - std::min(stats.reclaimable_bytes, stats.empty_bytes);
  bound.missing_bytes = std::min(bound.wanted_bytes - soon, can_give);
  return bound;
}

}  // namespace nacre::fs
