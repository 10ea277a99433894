// SPDX-License-Identifier: Apache-2.0
// Follows what one backend is doing, parts of payloads from their begin to their end, and learns
// from the times that they take.
//
// When nothing overlapped a part, its time is its own. When parts overlapped, only the time of all
// of them is known: from the begin of the first one until the backend was idle, or until eight of
// them had ended. If all of them were of one class, that time is divided in proportion to the
// predictions, and is one measurement for each size among them. Otherwise nothing is learned; nor
// is anything from a time in which something else kept the backend from its work. Not thread-safe.
// Times are nanoseconds of one clock; a clock that stands still teaches nothing.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "gpu_engine/plan/learned_costs.h"

namespace nacre::engine {

// The part of a payload that one backend gets.
struct PlannedPart {
  double predicted_ns = 0;
  CostCell cell = no_cost_cell;  // of the whole part; none where it has many classes
  double factor = 1;             // of the cell, at the time of the prediction
};

class BusyPeriods {
 public:
  struct Measurement {
    CostCell cell;
    double factor;
  };

  void begin(const PlannedPart& part, std::uint64_t now_ns);
  // Ends a part that has begun. The measurements learned from it exist until the next call.
  std::span<const Measurement> end(const PlannedPart& part, std::uint64_t now_ns);

  // Between the two calls something that is no payload keeps the backend from its work.
  void begin_disturbance();
  void end_disturbance() { --disturbance_count_; }

  bool is_idle() const { return active_count_ == 0; }
  // The predicted work that is left of the parts that have begun. It is at least a quarter of them:
  // parts that take longer than predicted are not over yet.
  double backlog_ns(std::uint64_t now_ns) const;

 private:
  static constexpr std::size_t ended_max = 8;

  void measure_from(std::uint64_t now_ns);

  std::uint64_t active_count_ = 0;
  double active_ns_ = 0;         // predicted
  std::uint64_t last_ns_ = 0;    // when a part ended, or the first one began
  std::uint64_t begin_ns_ = 0;   // of the time that is being measured
  double ended_ns_ = 0;          // predicted, of the parts that have ended in that time
  std::size_t ended_count_ = 0;  // of those parts
  std::array<Measurement, ended_max> cells_;  // of those parts, each cell once
  std::size_t cell_count_ = 0;
  unsigned disturbance_count_ = 0;
  bool is_disturbed_ = false;  // something disturbs the time that is measured
  bool one_class_ = true;      // all parts since the backend was idle
  std::size_t class_index_ = 0;
};

}  // namespace nacre::engine
