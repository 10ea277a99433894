// SPDX-License-Identifier: Apache-2.0
// Begins, ends and what they tell; see the header.
#include "gpu_engine/busy_periods.h"

#include <algorithm>

namespace nacre::engine {
namespace {

constexpr double least_left = 0.25;

}  // namespace

void BusyPeriods::begin(const PlannedPart& part, std::uint64_t now_ns) {
  const std::size_t class_index = LearnedCosts::class_index(part.cell);
  if (is_idle()) {
    begin_ns_ = last_ns_ = now_ns;
    ended_ns_ = 0;
    ended_count_ = 0;
    one_class_ = true;
    class_index_ = class_index;
  }
  if (part.cell == no_cost_cell || class_index != class_index_) one_class_ = false;
  ++active_count_;
  active_ns_ += part.predicted_ns;
}

std::span<const BusyPeriods::Measurement> BusyPeriods::end(const PlannedPart& part,
                                                           std::uint64_t now_ns) {
  --active_count_;
  active_ns_ = is_idle() ? 0 : active_ns_ - part.predicted_ns;
  last_ns_ = now_ns;
  if (!one_class_) return {};
  ended_[ended_count_++] = {part.cell, part.factor};
  ended_ns_ += part.predicted_ns;
  if (!is_idle() && ended_count_ < ended_max) return {};
  const double share = static_cast<double>(now_ns - begin_ns_) / ended_ns_;
  const std::size_t count = now_ns > begin_ns_ && ended_ns_ > 0 ? ended_count_ : 0;
  begin_ns_ = now_ns;
  ended_ns_ = 0;
  ended_count_ = 0;
  for (Measurement& measurement : std::span(ended_).first(count))
    measurement.factor *= share;
  return std::span(ended_).first(count);
}

double BusyPeriods::backlog_ns(std::uint64_t now_ns) const {
  if (is_idle()) return 0;
  const auto since = static_cast<double>(now_ns - std::min(now_ns, last_ns_));
  return std::max(active_ns_ * least_left, active_ns_ - since);
}

}  // namespace nacre::engine
