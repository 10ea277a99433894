// SPDX-License-Identifier: Apache-2.0
// Decides when a trial is due.
#include "gpu_engine/plan/trials.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace nacre::engine {
namespace {

constexpr std::uint16_t interval_after_change = 16;
constexpr std::uint16_t interval_max = 256;
// Growth of the interval before the second trial, and after it.
constexpr unsigned interval_growth_first = 4;
constexpr unsigned interval_growth = 8;
// How many payloads come before a trial that is predicted to take twice as long (loss 1).
constexpr double payloads_per_loss = 100;
constexpr double payloads_per_first_loss = 12;
// A backend that is predicted to take up to three times as long is warmed up before a trial.
constexpr double warm_loss_max = 2;
constexpr double warm_up_ns = 5e5;
constexpr double warm_up_count_max = 15;
double warm_up_count(double payload_ns) {
  return std::clamp(std::ceil(warm_up_ns / payload_ns), 1.0, warm_up_count_max);
}
// The most payloads of one trial that are measured.
constexpr std::uint8_t counted_count_max = 7;

}  // namespace

Trial Trials::next(const Payload& payload) {
  Place& place = places_[LearnedCosts::cell_of(Side::cpu, payload.work, payload.bytes)];
  if (payload.choice != Choice::none && payload.choice != place.choice) {
    if (place.choice != Choice::none)
      place.interval = std::min(place.interval, interval_after_change);
    place.choice = payload.choice;
  }
  if (std::exchange(place.is_trying, false) && payload.can_try) {
    if (place.warm_up_count > 0) {
      --place.warm_up_count;
      place.is_trying = true;
      return Trial::warm_up;
    }
    if (place.counted_count < counted_count_max &&
        (place.counted_count == 0 || payload.went_well || payload.got_faster)) {
      place.is_trying = true;
      ++place.counted_count;
      return Trial::counted;
    }
    place.settle_count = static_cast<std::uint8_t>(warm_up_count(payload.chosen_ns));
  }
  ++place.payload_count;
  if (place.settle_count > 0) {
    --place.settle_count;
    return Trial::settle;
  }
  const bool warms_up = payload.known_count >= 2 && payload.loss <= warm_loss_max;
  const double warm_ups = warms_up ? warm_up_count(payload.tried_ns) : 0;
  const double loss = payload.loss * (warm_ups + 1);
  const double needed = payload.went_well
                            ? interval_first
                            : std::max<double>(place.interval, loss * (payload.known_count < 2
                                                                           ? payloads_per_first_loss
                                                                           : payloads_per_loss));
  if (!payload.can_try || place.payload_count < needed) return Trial::none;
  place.payload_count = 0;
  const unsigned growth =
      place.interval == interval_first ? interval_growth_first : interval_growth;
  place.interval =
      static_cast<std::uint16_t>(std::min<unsigned>(place.interval * growth, interval_max));
  place.is_trying = true;
  place.counted_count = warms_up ? 0 : 1;
  place.warm_up_count = static_cast<std::uint8_t>(std::max(warm_ups - 1, 0.0));
  return warms_up ? Trial::warm_up : Trial::counted;
}

}  // namespace nacre::engine
