// SPDX-License-Identifier: Apache-2.0
// For how long something has been in use: the time in which at least one user was within a Use.
// Thread-safe. A Use takes a mutex twice, so it is for work of many microseconds.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <utility>

#include "gpu_engine/base/mutex.h"

namespace nacre::engine {

class BusyTime {
 public:
  using Clock = std::chrono::steady_clock;
  // now: a clock that never goes back; tests give their own. It is called with a mutex held.
  explicit BusyTime(std::function<Clock::time_point()> now = Clock::now) : now_(std::move(now)) {}

  // One user, while it lives. busy outlives it.
  class Use {
   public:
    explicit Use(BusyTime& busy) : busy_(busy) { busy_.begin(); }
    ~Use() { busy_.end(); }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    BusyTime& busy_;
  };

  // The sum of all times in use until now, including a use that is under way.
  std::uint64_t nanoseconds() const {
    const LockGuard lock(mutex_);
    const auto current = use_count_ > 0 ? now_() - since_ : Clock::duration::zero();
    return static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(total_ + current).count());
  }

 private:
  void begin() {
    const LockGuard lock(mutex_);
    if (use_count_++ == 0) since_ = now_();
  }
  void end() {
    const LockGuard lock(mutex_);
    if (--use_count_ == 0) total_ += now_() - since_;
  }

  const std::function<Clock::time_point()> now_;
  mutable Mutex mutex_;
  unsigned use_count_ NACRE_GUARDED_BY(mutex_) = 0;
  Clock::time_point since_ NACRE_GUARDED_BY(mutex_) = {};  // when the first of them began
  Clock::duration total_ NACRE_GUARDED_BY(mutex_) = Clock::duration::zero();
};

}  // namespace nacre::engine
