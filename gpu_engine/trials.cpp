// SPDX-License-Identifier: Apache-2.0
// When a trial is due; see the header.
#include "gpu_engine/trials.h"

#include <algorithm>
#include <utility>

namespace nacre::engine {
namespace {

constexpr std::uint16_t interval_after_change = 16;
constexpr std::uint16_t interval_max = 256;
// Up to the second trial, and then.
constexpr unsigned interval_growth_first = 4;
constexpr unsigned interval_growth = 8;
// Payloads before one that is tried and predicted to take twice as long.
constexpr double payloads_per_loss = 100;
constexpr double payloads_per_first_loss = 12;
// What is thought to take up to three times as long is tried with two payloads.
constexpr double pair_loss_max = 2;
// Payloads of one trial.
constexpr std::uint8_t counted_count_max = 7;

}  // namespace

Trial Trials::next(const Payload& payload) {
  Place& place = places_[LearnedCosts::cell_of(Side::cpu, payload.work, payload.bytes)];
  if (payload.choice != Choice::none && payload.choice != place.choice) {
    if (place.choice != Choice::none)
      place.interval = std::min(place.interval, interval_after_change);
    place.choice = payload.choice;
  }
  if (std::exchange(place.is_trying, false) && payload.can_try &&
      place.counted_count < counted_count_max &&
      (place.counted_count == 0 || payload.went_well || payload.got_faster)) {
    place.is_trying = true;
    ++place.counted_count;
    return Trial::counted;
  }
  ++place.payload_count;
  const bool is_pair = payload.known_count >= 2 && payload.loss <= pair_loss_max;
  const double loss = is_pair ? 2 * payload.loss : payload.loss;
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
  place.counted_count = is_pair ? 0 : 1;
  return is_pair ? Trial::warm_up : Trial::counted;
}

}  // namespace nacre::engine
