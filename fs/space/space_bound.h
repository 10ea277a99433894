// SPDX-License-Identifier: Apache-2.0
// How much of a volume's segments may be dead, and how far past that they are. Arithmetic alone.
#pragma once

#include <algorithm>
#include <cstdint>

#include "fs/store/segment_store.h"

namespace nacre::fs {

struct SpaceBoundOptions {
  // Stored bytes of segments for each live byte that compaction aims at; more than 1.
  double space_ratio = 1.25;
  // The slack: dead bytes past the bound that compaction takes on without anybody being slowed
  // down. This share of what the bound allows, or the segments that are always under way ...
  double slack_share = 0.1;
  std::uint64_t slack_bytes_min = 0;
  // ... and this share of what is free on the disk: where there is plenty, nobody is.
  double room_share = 0.12;
};

struct SpaceBound {
  std::uint64_t dead_bytes = 0;  // that could be moved
  double allowed_bytes = 0;      // dead ones
  double excess_bytes = 0;       // dead ones past them; not above 0: within the bound
  double slack_bytes = 0;

  // By what share of what is allowed dead bytes are past it.
  double pressure() const { return std::max(excess_bytes / std::max(allowed_bytes, 1.0), 0.0); }
  // By what share of the slack they are past the slack, too; not above 0: they are not.
  double overrun() const { return excess_bytes / std::max(slack_bytes, 1.0) - 1; }
};

// free_bytes: of the disk. Dead bytes that no compaction could move now are nobody's fault.
inline SpaceBound space_bound_of(const SegmentStats& stats, std::uint64_t free_bytes,
                                 const SpaceBoundOptions& options) {
  SpaceBound bound;
  bound.dead_bytes = stats.movable_dead_bytes;
  bound.allowed_bytes = (options.space_ratio - 1) * static_cast<double>(stats.live_bytes);
  bound.excess_bytes = static_cast<double>(stats.movable_dead_bytes) - bound.allowed_bytes;
  bound.slack_bytes = std::max(options.slack_share * bound.allowed_bytes,
                               static_cast<double>(options.slack_bytes_min)) +
                      options.room_share * static_cast<double>(free_bytes);
  return bound;
}

}  // namespace nacre::fs
