// SPDX-License-Identifier: Apache-2.0
// When a trial is due; see the header.
#include "gpu_engine/trials.h"

#include <algorithm>

namespace nacre::engine {
namespace {

constexpr std::uint16_t interval_after_change = 16;
constexpr std::uint16_t interval_max = 256;
constexpr unsigned interval_growth = 4;
// Payloads before a trial that is predicted to take twice as long.
constexpr double payloads_per_loss = 100;
constexpr double payloads_per_first_loss = 12;

}  // namespace

bool Trials::is_due(const Payload& payload) {
  Place& place = places_[LearnedCosts::cell_of(Side::cpu, payload.work, payload.bytes)];
  if (payload.choice != Choice::none && payload.choice != place.choice) {
    if (place.choice != Choice::none)
      place.interval = std::min(place.interval, interval_after_change);
    place.choice = payload.choice;
  }
  ++place.payload_count;
  const double needed =
      payload.went_well
          ? interval_first
          : std::max<double>(place.interval,
                             payload.loss * (payload.known_count < 2 ? payloads_per_first_loss
                                                                     : payloads_per_loss));
  if (!payload.can_try || place.payload_count < needed) return false;
  place.payload_count = 0;
  place.interval = static_cast<std::uint16_t>(
      std::min<unsigned>(place.interval * interval_growth, interval_max));
  return true;
}

}  // namespace nacre::engine
