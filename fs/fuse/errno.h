// SPDX-License-Identifier: Apache-2.0
// The only place that turns an ErrorCode into an errno, and the log of what an errno cannot say: a
// program sees EIO, the log names the file and the verdict.
#pragma once

#include <chrono>
#include <cstdint>
#include <set>
#include <string_view>
#include <utility>

#include "fs/volume/volume.h"
#include "gpu_engine/base/mutex.h"
#include "gpu_engine/base/result.h"

namespace nacre::fs {

// A positive errno.
int to_errno(ErrorCode code);
// The same for extended attributes, where too_big has another name (E2BIG).
int to_errno_of_xattr(ErrorCode code);

// True for errors that say something about the volume rather than about the request: those that
// programs see as EIO.
bool is_fault(ErrorCode code);

// Logs each fault of an inode once, and no more than a bounded number a minute. Thread-safe.
class FaultLog {
 public:
  explicit FaultLog(Volume& volume) : volume_(volume) {}
  // Logs error when it is a fault. operation: the request's name, e.g. "read".
  void note(std::string_view operation, metadata::InodeNumber inode, const Error& error) noexcept;

 private:
  using Clock = std::chrono::steady_clock;
  Volume& volume_;  // knows paths
  Mutex mutex_;
  std::set<std::pair<std::uint64_t, ErrorCode>> known_ NACRE_GUARDED_BY(mutex_);  // inode, verdict
  Clock::time_point window_start_ NACRE_GUARDED_BY(mutex_){};
  std::uint64_t window_count_ NACRE_GUARDED_BY(mutex_) = 0;
  std::uint64_t suppressed_count_ NACRE_GUARDED_BY(mutex_) = 0;
};

}  // namespace nacre::fs
