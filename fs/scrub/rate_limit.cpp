// SPDX-License-Identifier: Apache-2.0
#include "fs/scrub/rate_limit.h"

#include <algorithm>

namespace nacre::fs {

RateLimit::Clock::duration RateLimit::after(std::uint64_t bytes, Clock::time_point now) {
  if (bytes_per_second_ == 0) return {};
  if (due_ == Clock::time_point::min()) due_ = now;
  // No single wait is longer than a day. That also keeps the sum within the range of a duration.
  constexpr double seconds_max = 86400;
  const double seconds =
      std::min(static_cast<double>(bytes) / static_cast<double>(bytes_per_second_), seconds_max);
  due_ = std::max(due_, now - credit_max) +
         std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  return std::max(due_ - now, Clock::duration::zero());
}

}  // namespace nacre::fs
