// SPDX-License-Identifier: Apache-2.0
// Keeps work to a rate. It only computes; the caller reads the clock and waits.
#pragma once

#include <chrono>
#include <cstdint>

namespace nacre::fs {

// Not thread-safe.
class RateLimit {
 public:
  using Clock = std::chrono::steady_clock;
  // Bandwidth that was not used is saved up for at most this time.
  static constexpr std::chrono::milliseconds credit_max{500};

  // 0: no limit.
  explicit RateLimit(std::uint64_t bytes_per_second) : bytes_per_second_(bytes_per_second) {}
  std::uint64_t bytes_per_second() const { return bytes_per_second_; }

  // Notes that this many bytes were done by the time now. Returns how long to wait before the next.
  Clock::duration after(std::uint64_t bytes, Clock::time_point now);

 private:
  std::uint64_t bytes_per_second_;
  Clock::time_point due_ = Clock::time_point::min();  // when all bytes so far may have been done
};

}  // namespace nacre::fs
