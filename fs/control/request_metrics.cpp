// SPDX-License-Identifier: Apache-2.0
#include "fs/control/request_metrics.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

namespace nacre::fs {

namespace {

using Clock = std::chrono::steady_clock;

constinit thread_local RequestMark current_request;

}  // namespace

RequestScope::RequestScope(const RequestMark& mark) noexcept : previous_(current_request) {
  current_request = mark;
}

RequestScope::~RequestScope() {
  current_request = previous_;
}

RequestMark RequestScope::current() noexcept {
  return current_request;
}

void RequestMetrics::answered(std::uint64_t unique, int error) noexcept {
  if (unique == 0 || current_request.unique != unique) return;
  record(current_request, error);
}

void RequestMetrics::record(const RequestMark& mark, int error) noexcept {
  if (mark.operation >= operation_count) return;
  const auto took =
      std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - mark.received).count();
  latencies_[mark.operation].record(static_cast<std::uint64_t>(std::max<std::int64_t>(took, 0)));
  if (error == 0 || error == ENOSYS) return;
  error_counts_[mark.operation].fetch_add(1, std::memory_order_relaxed);
  errors_[static_cast<std::size_t>(std::clamp(error, 0, errno_max))].fetch_add(
      1, std::memory_order_relaxed);
}

void RequestMetrics::finish(RequestStats& stats) const {
  stats.counted_seconds = static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - begun_).count());
  for (int error = 0; error <= errno_max; ++error) {
    const std::uint64_t count =
        errors_[static_cast<std::size_t>(error)].load(std::memory_order_relaxed);
    if (count == 0) continue;
    const char* name = strerrorname_np(error);
    stats.errors.emplace_back(name != nullptr ? std::string(name) : fmt::format("errno {}", error),
                              count);
  }
}

}  // namespace nacre::fs
