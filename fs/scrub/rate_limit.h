// SPDX-License-Identifier: Apache-2.0
// Keeps work to a rate. Arithmetic only: the caller has the clock, and does the waiting.
#pragma once

#include <chrono>
#include <cstdint>

namespace nacre::fs {

// Not thread-safe.
class RateLimit {
 public:
  using Clock = std::chrono::steady_clock;
  // What was not used of the rate is saved up for this long at the most.
  static constexpr std::chrono::milliseconds credit_max{500};

  // 0: no limit.
  explicit RateLimit(std::uint64_t bytes_per_second) : bytes_per_second_(bytes_per_second) {}
  std::uint64_t bytes_per_second() const { return bytes_per_second_; }

  // So many bytes were done by now: how long to wait before the next.
  Clock::duration after(std::uint64_t bytes, Clock::time_point now);

 private:
  std::uint64_t bytes_per_second_;
  Clock::time_point due_ = Clock::time_point::min();  // when all bytes so far were due
};

}  // namespace nacre::fs
