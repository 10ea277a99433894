// SPDX-License-Identifier: Apache-2.0
// Decides which payloads go, as a trial, to the backend that is predicted to be slower. Without
// trials a wrong prediction for that backend would never be corrected.
//
// The first trial of each class and size is its fourth payload. The next trials come 16, then 128,
// then each time 256 payloads later; at most 16 after the two backends have changed places, and 4
// after a trial that ended sooner than predicted for the better backend. A trial with a larger
// predicted loss is rarer: as many payloads come first as make the loss a hundredth of their time,
// or a twelfth while the tried backend has had fewer than two payloads.
//
// A backend that was idle for a while is slow at first: its threads wake up, and its memory is in
// no cache. So a trial with little at stake begins with payloads that warm the backend up and are
// not measured: at least one, and as many as are predicted to take half a millisecond together,
// because sixteen threads wake in that time, however many payloads it is. A trial goes on, for at
// most six more payloads, while it is sooner than the better backend or still gets faster.
// Otherwise a backend that once fell behind would never be seen at its full speed. Meanwhile the
// better backend was idle, so its next payloads are not measured either. Not thread-safe.
#pragma once

#include <array>
#include <cstdint>

#include "gpu_engine/plan/learned_costs.h"

namespace nacre::engine {

enum class Trial : std::uint8_t {
  none,
  warm_up,  // run it on the slower backend, but learn nothing from it
  counted,  // run it on the slower backend, and learn from it
  settle,   // run it on the better backend, but learn nothing from it
};

class Trials {
 public:
  enum class Choice : std::uint8_t { none, cpu, cuda, both };

  struct Payload {
    WorkClass work;
    double bytes = 0;
    // The better backend (or both) by prediction; none where that depends on what else is running.
    Choice choice = Choice::none;
    double chosen_ns = 0;      // the time predicted for the better backend
    double tried_ns = 0;       // the time predicted for the slower backend
    double loss = 0;           // (tried_ns - chosen_ns) / chosen_ns, at least 0
    bool can_try = true;       // whether this payload may go to the slower backend
    unsigned known_count = 0;  // how many measurements of the slower backend there are
    bool went_well = false;    // whether its last measurement is less than chosen_ns
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
    bool is_trying = false;          // the payload before was part of a trial
    std::uint8_t warm_up_count = 0;  // how many payloads of the trial are still to warm up
    std::uint8_t counted_count = 0;  // how many payloads of the trial were measured
    std::uint8_t settle_count = 0;   // how many payloads are still to settle
  };
  // Indexed by the cells of Side::cpu, whichever backend is tried.
  std::array<Place, LearnedCosts::cell_count> places_ = {};
};

}  // namespace nacre::engine
