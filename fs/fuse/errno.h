// SPDX-License-Identifier: Apache-2.0
// The only place that turns an ErrorCode into an errno. It also has the log of what an errno cannot
// say: a program sees EIO, and the log names the file and the kind of fault.
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

// Returns a positive errno.
int to_errno(ErrorCode code);
// The same for extended attributes, for which too_big has another errno (E2BIG).
int to_errno_of_xattr(ErrorCode code);

// Whether the error concerns the volume rather than the request. Programs see such errors as EIO.
bool is_fault(ErrorCode code);

// Logs each fault of an inode once, and at most a fixed number a minute. Thread-safe.
class FaultLog {
 public:
  // Logs error if it is a fault. operation is the request's name, e.g. "read". volume knows paths.
  void note(Volume& volume, std::string_view operation, metadata::InodeNumber inode,
            const Error& error) noexcept;

 private:
  using Clock = std::chrono::steady_clock;
  Mutex mutex_;
  // Inode, kind of fault.
  std::set<std::pair<std::uint64_t, ErrorCode>> known_ NACRE_GUARDED_BY(mutex_);
  Clock::time_point window_start_ NACRE_GUARDED_BY(mutex_){};
  std::uint64_t window_count_ NACRE_GUARDED_BY(mutex_) = 0;
  std::uint64_t suppressed_count_ NACRE_GUARDED_BY(mutex_) = 0;
};

}  // namespace nacre::fs
