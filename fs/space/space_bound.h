// SPDX-License-Identifier: Apache-2.0
// The number of bytes of a volume's segments that may be dead, and how far they exceed it. This
// file only computes.
#pragma once

#include <algorithm>
#include <cstdint>

#include "fs/store/segment_store.h"

namespace nacre::fs {

struct SpaceBoundOptions {
  // The goal of compaction: stored bytes of segments for each live byte. It is more than 1.
  double space_ratio = 1.25;
  // The slack: dead bytes past the bound that compaction handles without slowing writers down. It
  // is this share of the allowed dead bytes, or the segments that are always under way ...
  double slack_share = 0.1;
  std::uint64_t slack_bytes_min = 0;
  // ... and this share of the disk's free space: with plenty of space no writer is slowed down.
  double room_share = 0.12;
};

struct SpaceBound {
  std::uint64_t dead_bytes = 0;  // dead bytes that could be freed
  double allowed_bytes = 0;      // dead bytes that the bound allows
  double excess_bytes = 0;       // dead bytes past the bound; 0 or less: within it
  double slack_bytes = 0;

  // The share of the allowed bytes by which dead bytes exceed them.
  double pressure() const { return std::max(excess_bytes / std::max(allowed_bytes, 1.0), 0.0); }
  // The share of the slack by which dead bytes exceed bound and slack. 0 or less: they do not.
  double overrun() const { return excess_bytes / std::max(slack_bytes, 1.0) - 1; }
};

// free_bytes is the disk's free space. Dead bytes that compaction cannot free now do not count.
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
