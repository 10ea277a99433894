// SPDX-License-Identifier: Apache-2.0
// When parts begin and end, and what that tells.
#include "gpu_engine/plan/busy_periods.h"

#include <algorithm>

namespace nacre::engine {
namespace {

constexpr double least_left = 0.25;

}  // namespace

void BusyPeriods::begin(const PlannedPart& part, std::uint64_t now_ns) {
  const std::size_t class_index = LearnedCosts::class_index(part.cell);
  if (is_idle()) {
    last_ns_ = now_ns;
    measure_from(now_ns);
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
  ++ended_count_;
  ended_ns_ += part.predicted_ns;
  // One stall is one measurement, however many parts it held up.
  const auto known = std::span(cells_).first(cell_count_);
  const auto same = std::ranges::find(known, part.cell, &Measurement::cell);
  if (same != known.end())
    same->factor = part.factor;
  else
    cells_[cell_count_++] = {part.cell, part.factor};
  if (!is_idle() && ended_count_ < ended_max) return {};
  const double share = static_cast<double>(now_ns - begin_ns_) / ended_ns_;
  const bool tells = now_ns > begin_ns_ && ended_ns_ > 0 && !is_disturbed_;
  const std::size_t count = tells ? cell_count_ : 0;
  measure_from(now_ns);
  for (Measurement& measurement : std::span(cells_).first(count))
    measurement.factor *= share;
  return std::span(cells_).first(count);
}

void BusyPeriods::measure_from(std::uint64_t now_ns) {
  begin_ns_ = now_ns;
  ended_ns_ = 0;
  ended_count_ = 0;
  cell_count_ = 0;
  is_disturbed_ = disturbance_count_ > 0;
}

void BusyPeriods::begin_disturbance() {
  ++disturbance_count_;
  is_disturbed_ = true;
}

double BusyPeriods::backlog_ns(std::uint64_t now_ns) const {
  if (is_idle()) return 0;
  const auto since = static_cast<double>(now_ns - std::min(now_ns, last_ns_));
  return std::max(active_ns_ * least_left, active_ns_ - since);
}

}  // namespace nacre::engine
