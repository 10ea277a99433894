// SPDX-License-Identifier: Apache-2.0
// Follows the parts of payloads that one backend runs, and measures how long they take.
//
// A part that runs alone is measured by itself. Of parts that overlap only the time of all together
// is known: from the begin of the first part until the backend is idle, or until eight parts have
// ended. If all of these are of one class, the time is divided in proportion to the predictions,
// and is one measurement for each size among the parts. Parts of several classes give no
// measurement; neither does a time that includes a disturbance. Not thread-safe. Times are
// nanoseconds of one clock; where it does not advance, there is no measurement.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "gpu_engine/plan/learned_costs.h"

namespace nacre::engine {

// The part of a payload that one backend gets.
struct PlannedPart {
  double predicted_ns = 0;
  CostCell cell = no_cost_cell;  // of the whole part; none where the part has many classes
  double factor = 1;             // the cell's, at the time of the prediction
};

class BusyPeriods {
 public:
  struct Measurement {
    CostCell cell;
    double factor;
  };

  void begin(const PlannedPart& part, std::uint64_t now_ns);
  // Ends a part that has begun. Returns the measurements that this completes; valid until the next
  // call.
  std::span<const Measurement> end(const PlannedPart& part, std::uint64_t now_ns);

  // A disturbance, between the two calls, is something other than a payload that keeps the backend
  // from its work. Disturbances may overlap.
  void begin_disturbance();
  void end_disturbance() { --disturbance_count_; }

  bool is_idle() const { return active_count_ == 0; }
  // The predicted time that is left of the parts that have begun. At least a quarter of their
  // predicted time, since parts that take longer than predicted are still running.
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
