// SPDX-License-Identifier: Apache-2.0
// Measures how long the kernel's requests take, from the receipt of a request until its answer is
// passed to the kernel, and counts the errors that they get.
//
// A RequestScope notes on the thread which request it is answering, and the answer looks it up
// there. Code that answers on another thread takes the mark along and opens a scope of its own.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "fs/control/log_histogram.h"

namespace nacre::fs {

// A request that was received and is not answered yet.
struct RequestMark {
  std::uint64_t unique = 0;  // the kernel's number of the request; 0: none
  std::uint32_t operation = 0;
  std::chrono::steady_clock::time_point received = {};
};

// While it exists, this thread answers that request. Scopes nest.
class RequestScope {
 public:
  explicit RequestScope(const RequestMark& mark) noexcept;
  ~RequestScope();
  RequestScope(const RequestScope&) = delete;
  RequestScope& operator=(const RequestScope&) = delete;
  static RequestMark current() noexcept;

 private:
  RequestMark previous_;
};

struct OperationStats {
  std::string name;
  std::uint64_t error_count = 0;  // requests answered with an error other than ENOSYS
  HistogramCounts latency_ns;     // of all answered requests
};
struct RequestStats {
  std::vector<OperationStats> operations;  // operations that came at least once
  std::vector<std::pair<std::string, std::uint64_t>>
      errors;                         // the name of each error and its count
  std::uint64_t counted_seconds = 0;  // since counting began
};

// Thread-safe; answered() takes no lock and allocates nothing.
class RequestMetrics {
 public:
  static constexpr std::size_t operation_count = 64;

  // Called just before the answer to the request with that number is passed to the kernel. Counts
  // the request if it is this thread's. error is 0 or a positive errno. ENOSYS tells the kernel not
  // to ask again and is not counted as an error.
  void answered(std::uint64_t unique, int error) noexcept;
  // The same for a request that gets no answer.
  void finished(const RequestMark& mark) noexcept { record(mark, 0); }

  std::uint64_t answered_count(std::uint32_t operation) const {
    return latencies_[operation].counts().count;
  }

  // name_of(operation) returns the name of an operation. Operations without a name are left out.
  template <typename NameOf>
  RequestStats stats(NameOf name_of) const {
    RequestStats result;
    for (std::size_t i = 0; i < operation_count; ++i) {
      OperationStats one{.name = name_of(static_cast<std::uint32_t>(i)),
                         .error_count = error_counts_[i].load(std::memory_order_relaxed),
                         .latency_ns = latencies_[i].counts()};
      if (one.latency_ns.count > 0 && !one.name.empty()) {
        result.operations.push_back(std::move(one));
      }
    }
    finish(result);
    return result;
  }

 private:
  static constexpr int errno_max = 255;
  void record(const RequestMark& mark, int error) noexcept;
  void finish(RequestStats& stats) const;

  const std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
  std::array<LogHistogram, operation_count> latencies_ = {};
  std::array<std::atomic<std::uint64_t>, operation_count> error_counts_ = {};
  std::array<std::atomic<std::uint64_t>, errno_max + 1> errors_ = {};
};

}  // namespace nacre::fs
