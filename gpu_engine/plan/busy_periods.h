// SPDX-License-Identifier: Apache-2.0
// What one backend is at: parts of payloads from their begin to their end, and what their times
// tell.
//
// A part that nothing overlapped took its own time. Of parts that overlapped only their sum is
// known, from the first one's begin until the backend was idle, or until eight of them had ended:
// where all were of one class, it is shared out as it was predicted, and is one measurement for
// each size among them; else nothing is learned, nor of a time in which the backend was kept from
// its work. Not thread-safe. Times are nanoseconds of one clock; one that stands still teaches
// nothing.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "gpu_engine/plan/learned_costs.h"

namespace nacre::engine {

// What one backend is given of a payload.
struct PlannedPart {
  double predicted_ns = 0;
  CostCell cell = no_cost_cell;  // of all of it; none where it is of many classes
  double factor = 1;             // of the cell, when that was predicted
};

class BusyPeriods {
 public:
  struct Measurement {
    CostCell cell;
    double factor;
  };

  void begin(const PlannedPart& part, std::uint64_t now_ns);
  // Of a part that has begun. What is learned from it is there until the next call.
  std::span<const Measurement> end(const PlannedPart& part, std::uint64_t now_ns);

  // From the one to the other it is kept from its work by what is no payload.
  void begin_disturbance();
  void end_disturbance() { --disturbance_count_; }

  bool is_idle() const { return active_count_ == 0; }
  // What is still to do of the parts that have begun, as far as was predicted. A quarter of them at
  // least: those that take longer than was thought are not over yet.
  double backlog_ns(std::uint64_t now_ns) const;

 private:
  static constexpr std::size_t ended_max = 8;

  void measure_from(std::uint64_t now_ns);

  std::uint64_t active_count_ = 0;
  double active_ns_ = 0;                      // predicted
  std::uint64_t last_ns_ = 0;                 // when a part ended, or the first one began
  std::uint64_t begin_ns_ = 0;                // of the time that is measured
  double ended_ns_ = 0;                       // predicted, of the parts that have ended in it
  std::size_t ended_count_ = 0;               // of those
  std::array<Measurement, ended_max> cells_;  // of those, each once
  std::size_t cell_count_ = 0;
  unsigned disturbance_count_ = 0;
  bool is_disturbed_ = false;  // the time that is measured
  bool one_class_ = true;      // all parts since the backend was idle
  std::size_t class_index_ = 0;
};

}  // namespace nacre::engine
