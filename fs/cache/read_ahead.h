// SPDX-License-Identifier: Apache-2.0
// Decides what to read ahead of a sequential reader. The kernel sends a reader's requests in
// parallel, so "sequential" means near the last one, not right after it. Thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>

#include "gpu_engine/base/mutex.h"

namespace nacre::fs {

// The state of one file's readers. It holds no data and reads nothing itself. All sizes and offsets
// are bytes.
class ReadAhead {
 public:
  struct Range {
    std::uint64_t offset = 0;
    std::uint64_t size = 0;  // 0: there is nothing to fetch
  };

  // Notes a read of [offset, offset + size). Returns the range to fetch now: at most window_max
  // bytes past the reads so far, and never past file_size. No byte of a run is returned twice.
  Range note_read(std::uint64_t offset, std::uint64_t size, std::uint64_t file_size,
                  std::uint64_t window_max) {
    LockGuard lock(mutex_);
    const std::uint64_t end = offset + size;
    const bool near = offset <= reach_ + slack_bytes && end + slack_bytes >= reach_;
    if (!near || (offset != 0 && reach_ == 0)) {
      // After a jump the run is forgotten. The next read near this one begins another run.
      reach_ = end;
      fetched_ = end;
      run_bytes_ = 0;
      return {};
    }
    run_bytes_ += size;
    reach_ = std::max(reach_, end);
    fetched_ = std::max(fetched_, reach_);
    // The window is twice what was read in sequence, so that a short run costs little.
    const std::uint64_t window = std::min(window_max, run_bytes_ * 2);
    const std::uint64_t target = std::min(file_size, reach_ + window);
    // Ranges are at least a quarter of the window, which gives whole payloads and not single
    // chunks.
    if (target <= fetched_ || (target < file_size && target - fetched_ < window / 4)) return {};
    const Range range{fetched_, target - fetched_};
    fetched_ = target;
    return range;
  }

 private:
  static constexpr std::uint64_t slack_bytes = 1u << 20;
  Mutex mutex_;
  std::uint64_t reach_ NACRE_GUARDED_BY(mutex_) = 0;    // end of the furthest read of the run
  std::uint64_t fetched_ NACRE_GUARDED_BY(mutex_) = 0;  // end of the range that was fetched for it
  std::uint64_t run_bytes_ NACRE_GUARDED_BY(mutex_) = 0;
};

}  // namespace nacre::fs
