// SPDX-License-Identifier: Apache-2.0
// The free space of a disk, without asking the disk each time: in a network directory each question
// is a round trip.
//
// An answer is valid for a while. Bytes that the volume itself appends in the meantime are
// subtracted from it. So the result is at most what would be free if nothing were freed and no
// other program wrote.
//
// Thread-safe. The thread that finds the answer too old asks, and the others go on with the old
// one. For the first answer all threads wait.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <utility>

#include "gpu_engine/base/mutex.h"

namespace nacre::fs {

class FreeSpace {
 public:
  // Returns the disk's free bytes. Called on any thread, one at a time. Must not throw.
  using Ask = std::function<std::uint64_t()>;
  FreeSpace(Ask ask, std::chrono::milliseconds counts_for)
      : ask_(std::move(ask)), counts_for_(counts_for) {}

  // appended_bytes is the total number of bytes that the volume has appended since some moment.
  std::uint64_t bytes(std::uint64_t appended_bytes);

 private:
  using Clock = std::chrono::steady_clock;

  const Ask ask_;
  const std::chrono::milliseconds counts_for_;

  Mutex mutex_;
  bool is_known_ NACRE_GUARDED_BY(mutex_) = false;
  // The disk is being asked for a new answer.
  bool is_being_asked_ NACRE_GUARDED_BY(mutex_) = false;
  Clock::time_point asked_at_ NACRE_GUARDED_BY(mutex_);
  std::uint64_t answer_bytes_ NACRE_GUARDED_BY(mutex_) = 0;
  // The appended_bytes when the disk was asked.
  std::uint64_t appended_before_ NACRE_GUARDED_BY(mutex_) = 0;
};

}  // namespace nacre::fs
