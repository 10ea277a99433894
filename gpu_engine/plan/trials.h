// SPDX-License-Identifier: Apache-2.0
// Which payloads try the backend that is thought to be the slower one: were it never tried, what is
// thought of it would never mend.
//
// Of one class and size the first trial comes with the fourth payload, the next ones 16, 128 and
// then 256 later each; 16 after the better backend has become the other one, 4 after a trial that
// was sooner than the better one. What a trial is predicted to lose makes it rarer: so many
// payloads lie before it that it costs a hundredth of them, or a twelfth where the other backend
// has not had two payloads yet.
//
// A backend that had nothing to do for a while is slow at first: threads wake, memory is in no
// cache. So a trial of which little is at stake begins with payloads that teach nothing: one, or as
// many as are predicted to take half a millisecond together, since sixteen threads wake in that
// time, not in a number of payloads. And a trial goes on, for six more payloads at most, while it
// is sooner than the better one or ever faster: else whoever once fell behind would never be seen
// at his speed. Meanwhile the better one has rested, so what it has next teaches nothing either.
// Not thread-safe.
#pragma once

#include <array>
#include <cstdint>

#include "gpu_engine/plan/learned_costs.h"

namespace nacre::engine {

enum class Trial : std::uint8_t {
  none,
  warm_up,  // to be tried, and nothing to be learned from it
  counted,
  settle,  // not to be tried, and nothing to be learned from it
};

class Trials {
 public:
  enum class Choice : std::uint8_t { none, cpu, cuda, both };

  struct Payload {
    WorkClass work;
    double bytes = 0;
    // What is thought to be best for it; none where that hangs on what else is under way.
    Choice choice = Choice::none;
    double chosen_ns = 0;  // what it is thought to take
    double tried_ns = 0;   // and by the other one
    double loss = 0;       // how much longer the other one is thought to take, as a part of that
    bool can_try = true;   // whether this payload may go there
    unsigned known_count = 0;  // how many payloads the other one has had
    bool went_well = false;    // whether it was sooner with the last of them
    bool got_faster = false;   // whether it was, with the last, than with the one before
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
    std::uint8_t warm_up_count = 0;  // payloads of that trial to come that teach nothing
    std::uint8_t counted_count = 0;  // of that trial
    std::uint8_t settle_count = 0;   // payloads behind it that teach nothing
  };
  // As the cells of one backend: those of the other are not used.
  std::array<Place, LearnedCosts::cell_count> places_ = {};
};

}  // namespace nacre::engine
