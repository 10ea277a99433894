// SPDX-License-Identifier: Apache-2.0
// A log-linear histogram, after Gil Tene's HdrHistogram: each power of two is cut into sixteen
// equal buckets, so a bucket is at most a sixteenth of its values wide, and its middle at most a
// 32nd off any of them. Values below 32 have buckets of their own. Fixed memory, no locks.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace nacre::fs {

inline constexpr unsigned histogram_sub_bucket_bits = 4;
// A value with more bits is counted as the largest one.
inline constexpr unsigned histogram_value_bits = 40;
inline constexpr std::uint64_t histogram_value_max = (1ull << histogram_value_bits) - 1;
inline constexpr std::size_t histogram_bucket_count =
    static_cast<std::size_t>(histogram_value_bits - histogram_sub_bucket_bits + 1)
    << histogram_sub_bucket_bits;

// For v >= 16, shift is chosen so that v >> shift is in [16, 32). The sixteen buckets of this power
// of two begin at 16 * (shift + 1), and (v >> shift) - 16 is the place of v among them.
constexpr std::size_t histogram_bucket_of(std::uint64_t value) {
  constexpr std::uint64_t linear = 1u << histogram_sub_bucket_bits;
  if (value > histogram_value_max) value = histogram_value_max;
  if (value < linear) return static_cast<std::size_t>(value);
  const unsigned shift =
      static_cast<unsigned>(std::bit_width(value)) - histogram_sub_bucket_bits - 1;
  return static_cast<std::size_t>((static_cast<std::uint64_t>(shift) << histogram_sub_bucket_bits) +
                                  (value >> shift));
}
// The smallest value of a bucket. For the bucket behind the last one it is the largest value
// plus 1.
constexpr std::uint64_t histogram_bucket_begin(std::size_t bucket) {
  constexpr std::size_t linear = 1u << histogram_sub_bucket_bits;
  if (bucket < linear) return bucket;
  const std::size_t shift = (bucket >> histogram_sub_bucket_bits) - 1;
  return static_cast<std::uint64_t>(bucket - (shift << histogram_sub_bucket_bits)) << shift;
}
static_assert(histogram_bucket_of(histogram_value_max) == histogram_bucket_count - 1);
static_assert(histogram_bucket_begin(histogram_bucket_count) == histogram_value_max + 1);

// A copy of a histogram. Values that are recorded while it is made may be counted in one field and
// not yet in another.
struct HistogramCounts {
  std::vector<std::uint64_t> buckets;  // empty, or histogram_bucket_count
  std::uint64_t count = 0;             // the sum of all buckets
  std::uint64_t sum = 0;               // the sum of the recorded values
  std::uint64_t max = 0;

  // The value below which this share (0 to 1) of all values lies: the middle of its bucket, but at
  // most max. It is 0 if nothing was recorded.
  std::uint64_t quantile(double share) const;
  // The number of values below value, which is the beginning of a bucket.
  std::uint64_t below(std::uint64_t value) const;
};

// Thread-safe; record() takes no lock and allocates nothing.
class LogHistogram {
 public:
  void record(std::uint64_t value) noexcept;
  HistogramCounts counts() const;

 private:
  std::array<std::atomic<std::uint64_t>, histogram_bucket_count> buckets_ = {};
  std::atomic<std::uint64_t> sum_{0};
  std::atomic<std::uint64_t> max_{0};
};

}  // namespace nacre::fs
