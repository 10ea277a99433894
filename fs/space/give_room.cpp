// SPDX-License-Identifier: Apache-2.0
// What compaction does for a write that waits for room which was promised to it (room.h).
#include "fs/space/compactor.h"

namespace nacre::fs {

namespace {

// A segment of which so much is dead is emptied for that.
constexpr double pressed_share_min = 1.0 / 1024;

}  // namespace

Result<> Compactor::give_room(CompactionReport& report) {
  while (pressed_count_ > 0) {
    // What is dead may lie in the segments that are being filled.
    if (store_.stats().movable_dead_bytes == 0) store_.close_segments();
    NACRE_ASSIGN(bool done, compact_one(1 - reclaimable_share_min, Speed::full, report));
    if (!done) {
      NACRE_ASSIGN(done, compact_one(1 - pressed_share_min, Speed::full, report));
    }
    if (!done) {
      store_.close_segments();
      NACRE_ASSIGN(done, compact_one(1 - pressed_share_min, Speed::full, report));
    }
    NACRE_TRY(commit_moves());
    if (!done) return {};
  }
  return {};
}

}  // namespace nacre::fs
