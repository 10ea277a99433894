// SPDX-License-Identifier: Apache-2.0
// Room for new data on a disk that is nearly full: there less may be dead than the space ratio
// allows, since what compaction can still give back must not keep writers out. Arithmetic alone.
#pragma once

#include <algorithm>
#include <cstdint>

#include "fs/space/space_bound.h"
#include "fs/store/segment_store.h"

namespace nacre::fs {

struct RoomBound {
  // Kept free for new data as long as dead bytes can give it: this share of the disk, and no more
  // than that.
  static constexpr std::uint64_t share_of_disk = 16;
  static constexpr std::uint64_t bytes_max = 1u << 30;

  std::uint64_t wanted_bytes = 0;
  std::uint64_t missing_bytes = 0;  // of them, as far as compaction can make more room

  // What compaction has to do, and when writers wait for it: past half of the room.
  SpaceBound applied_to(SpaceBound bound) const {
    const auto missing = static_cast<double>(missing_bytes);
    const auto slack = static_cast<double>(wanted_bytes) / 2;
    if (missing_bytes == 0 || missing / slack <= bound.overrun() + 1) return bound;
    bound.excess_bytes = missing;
    bound.slack_bytes = slack;
    return bound;
  }
};

// room_bytes: what new data may use now.
inline RoomBound room_bound_of(const SegmentStats& stats, std::uint64_t room_bytes,
                               std::uint64_t disk_bytes) {
  RoomBound bound;
  bound.wanted_bytes = std::min(disk_bytes / RoomBound::share_of_disk, RoomBound::bytes_max);
  // What is empty is room with the next commit.
  const std::uint64_t soon = std::min(room_bytes + stats.empty_bytes, bound.wanted_bytes);
  const std::uint64_t can_give =
      stats.reclaimable_bytes - std::min(stats.reclaimable_bytes, stats.empty_bytes);
  bound.missing_bytes = std::min(bound.wanted_bytes - soon, can_give);
  return bound;
}

}  // namespace nacre::fs
