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
inline constexpr unsigned histogram_value_bits = 40;  // larger values count as the largest
inline constexpr std::uint64_t histogram_value_max = (1ull << histogram_value_bits) - 1;
inline constexpr std::size_t histogram_bucket_count =
    static_cast<std::size_t>(histogram_value_bits - histogram_sub_bucket_bits + 1)
    << histogram_sub_bucket_bits;

// For v >= 16, shift brings v into [16, 32): the sixteen buckets of its power of two begin at
// 16 * (shift + 1), and v >> shift - 16 is its place among them.
constexpr std::size_t histogram_bucket_of(std::uint64_t value) {
  constexpr std::uint64_t linear = 1u << histogram_sub_bucket_bits;
  if (value > histogram_value_max) value = histogram_value_max;
  if (value < linear) return static_cast<std::size_t>(value);
  const unsigned shift =
      static_cast<unsigned>(std::bit_width(value)) - histogram_sub_bucket_bits - 1;
  return static_cast<std::size_t>((static_cast<std::uint64_t>(shift) << histogram_sub_bucket_bits) +
                                  (value >> shift));
}
// The smallest value of a bucket; of the one past the last: one more than the largest value.
constexpr std::uint64_t histogram_bucket_begin(std::size_t bucket) {
  constexpr std::size_t linear = 1u << histogram_sub_bucket_bits;
  if (bucket < linear) return bucket;
  const std::size_t shift = (bucket >> histogram_sub_bucket_bits) - 1;
  return static_cast<std::uint64_t>(bucket - (shift << histogram_sub_bucket_bits)) << shift;
}
static_assert(histogram_bucket_of(histogram_value_max) == histogram_bucket_count - 1);
static_assert(histogram_bucket_begin(histogram_bucket_count) == histogram_value_max + 1);

// A histogram's state at some moment. Records that come meanwhile may be in one field and not yet
// in another.
struct HistogramCounts {
  std::vector<std::uint64_t> buckets;  // empty, or histogram_bucket_count
  std::uint64_t count = 0;             // of all buckets
  std::uint64_t sum = 0;               // of the values themselves
  std::uint64_t max = 0;

  // The value below which a share (0 to 1) of all lies: its bucket's middle, but no more than max.
  // 0 when there is none.
  std::uint64_t quantile(double share) const;
  // How many are below value, a bucket's beginning.
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
