// SPDX-License-Identifier: Apache-2.0
// Decides which payloads try the backend that is thought to be the slower one. If it were never
// tried, a wrong estimate of it would never be corrected.
//
// For one class and size the first trial comes with the fourth payload, and the next ones 16, 128
// and then 256 payloads later each. The interval is 16 after the other backend has become the
// better one, and 4 after a trial that was sooner than the better one. A trial with a larger
// predicted loss is rarer: before it come enough payloads for it to cost a hundredth of them, or a
// twelfth while the other backend has had fewer than two payloads.
//
// A backend that was idle for a while is slow at first: threads wake, and memory is in no cache. So
// a trial with little at stake begins with payloads from which nothing is learned: with one, or
// with as many as are predicted to take half a millisecond together, since sixteen threads wake in
// that time and not in a number of payloads. A trial goes on, for at most six more payloads, while
// it is sooner than the better backend or still gets faster. Otherwise a backend that once fell
// behind would never be seen at its full speed. Meanwhile the better backend was idle, so nothing
// is learned from its next payloads either. Not thread-safe.
#pragma once

#include <array>
#include <cstdint>

#include "gpu_engine/plan/learned_costs.h"

namespace nacre::engine {

enum class Trial : std::uint8_t {
  none,
  warm_up,  // to be tried, but nothing is learned from it
  counted,
  settle,  // not to be tried, and nothing is learned from it
};

class Trials {
 public:
  enum class Choice : std::uint8_t { none, cpu, cuda, both };

  struct Payload {
    WorkClass work;
    double bytes = 0;
    // The backend thought to be best for it; none where that depends on what else is running.
    Choice choice = Choice::none;
    double chosen_ns = 0;  // the time predicted for it
    double tried_ns = 0;   // the time predicted for the other one
    double loss = 0;       // how much longer the other one is predicted to take, as a share of it
    bool can_try = true;   // whether this payload may go to the other one
    unsigned known_count = 0;  // how many payloads the other one has had
    bool went_well = false;    // whether it was sooner with its last payload
    bool got_faster = false;   // whether its last payload was faster than the one before
  };

  // Called once for each payload that is of one class.
  Trial next(const Payload& payload);

 private:
  static constexpr std::uint16_t interval_first = 4;

  struct Place {
    std::uint32_t payload_count = 0;  // since the last trial
    std::uint16_t interval = interval_first;
    Choice choice = Choice::none;
    bool is_trying = false;          // with the payload before
    std::uint8_t warm_up_count = 0;  // how many payloads of the trial still teach nothing
    std::uint8_t counted_count = 0;  // payloads of that trial that count
    std::uint8_t settle_count = 0;   // payloads after it that teach nothing
  };
  // Indexed as the cells of one backend; those of the other are not used.
  std::array<Place, LearnedCosts::cell_count> places_ = {};
};

}  // namespace nacre::engine
