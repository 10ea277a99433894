// SPDX-License-Identifier: Apache-2.0
#include "fs/control/log_histogram.h"

#include <algorithm>
#include <cmath>

namespace nacre::fs {

std::uint64_t HistogramCounts::quantile(double share) const {
  if (count == 0) return 0;
  const auto wanted = static_cast<std::uint64_t>(
      std::ceil(std::clamp(share, 0.0, 1.0) * static_cast<double>(count)));
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    seen += buckets[i];
    if (seen >= std::max<std::uint64_t>(wanted, 1)) {
      const std::uint64_t begin = histogram_bucket_begin(i);
      const std::uint64_t middle = begin + (histogram_bucket_begin(i + 1) - begin) / 2;
      return std::min(middle, std::max(max, begin));
    }
  }
  return max;
}

std::uint64_t HistogramCounts::below(std::uint64_t value) const {
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < buckets.size() && histogram_bucket_begin(i) < value; ++i)
    seen += buckets[i];
  return seen;
}

void LogHistogram::record(std::uint64_t value) noexcept {
  buckets_[histogram_bucket_of(value)].fetch_add(1, std::memory_order_relaxed);
  sum_.fetch_add(value, std::memory_order_relaxed);
  std::uint64_t known = max_.load(std::memory_order_relaxed);
  while (value > known && !max_.compare_exchange_weak(known, value, std::memory_order_relaxed)) {
  }
}

HistogramCounts LogHistogram::counts() const {
  HistogramCounts result;
  result.buckets.resize(histogram_bucket_count);
  for (std::size_t i = 0; i < histogram_bucket_count; ++i) {
    result.buckets[i] = buckets_[i].load(std::memory_order_relaxed);
    result.count += result.buckets[i];
  }
  result.sum = sum_.load(std::memory_order_relaxed);
  result.max = max_.load(std::memory_order_relaxed);
  return result;
}

}  // namespace nacre::fs
