// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/measure.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <numeric>

namespace nacre::tools {

namespace {

double read_clock(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

struct Turn {
  double per_second;
  double per_cpu_second;
};

// If a pass takes no longer than the turn, one that is not measured comes first. Cores that waited
// for a device, and threads that slept during another's turn, are slower at first; that cost is not
// theirs.
Result<Turn> take_turn(Contender& contender, double units, double seconds, double pass_seconds) {
  if (pass_seconds < seconds) NACRE_TRY(contender.run());
  const double cpu_begin = cpu_seconds();
  const double begin = wall_seconds();
  double elapsed = 0;
  double passes = 0;
  do {
    NACRE_TRY(contender.run());
    ++passes;
    elapsed = wall_seconds() - begin;
  } while (elapsed < seconds);
  // A clock that stood still must not make a rate infinite.
  constexpr double tick = 1e-9;
  return Turn{passes * units / std::max(elapsed, tick),
              passes * units / std::max(cpu_seconds() - cpu_begin, tick)};
}

}  // namespace

double wall_seconds() {
  return read_clock(CLOCK_MONOTONIC);
}
double cpu_seconds() {
  return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

Result<std::vector<Rate>> measure(std::span<Contender* const> contenders,
                                  std::span<const double> weights, unsigned thread_count,
                                  double full_seconds, double seconds, double turn_seconds_max) {
  const double each = seconds / static_cast<double>(std::max<std::size_t>(contenders.size(), 1));
  const double turn = std::min(each / bench_round_count, turn_seconds_max);
  const bool has_more_rounds = turn < each / bench_round_count;
  // If a turn is too short for all messages, a contender gets only every stride-th of them, unless
  // it takes all.
  const std::size_t stride_max = std::max<std::size_t>(weights.size() / thread_count, 1);
  const double wanted = std::ceil(full_seconds / std::max(turn, 1e-6));
  const std::size_t stride =
      std::min(stride_max, static_cast<std::size_t>(std::clamp(wanted, 1.0, 1e9)));
  const auto units_of = [&](const Contender& contender) {
    double units = 0;
    for (std::size_t i = 0; i < weights.size(); i += contender.takes_all() ? 1 : stride)
      units += weights[i];
    return units;
  };

  std::vector<std::vector<double>> cpu(contenders.size());
  std::vector<Rate> rates(contenders.size());
  for (Contender* contender : contenders)
    NACRE_TRY(contender->select(contender->takes_all() ? 1 : stride));
  std::vector<std::size_t> order(contenders.size());
  std::iota(order.begin(), order.end(), 0);
  const double begin = wall_seconds();
  for (int round = 0;
       round < bench_round_count || (has_more_rounds && wall_seconds() - begin < seconds);
       ++round) {
    // The order runs there and back and begins with the next one, so that no contender always
    // follows the same one.
    if (round > 0) std::reverse(order.begin(), order.end());
    if (round > 0 && round % 2 == 0 && order.size() > 1)
      std::rotate(order.begin(), order.begin() + 1, order.end());
    for (const std::size_t i : order) {
      const double units = units_of(*contenders[i]);
      const double pass_seconds =
          round == 0 ? full_seconds : units / std::max(rates[i].rounds.back(), 1e-9);
      NACRE_ASSIGN(const Turn taken, take_turn(*contenders[i], units, turn, pass_seconds));
      rates[i].rounds.push_back(taken.per_second);
      cpu[i].push_back(taken.per_cpu_second);
    }
  }
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    Rate& rate = rates[i];
    rate.median = median_of(rate.rounds);
    rate.lowest = *std::min_element(rate.rounds.begin(), rate.rounds.end());
    rate.highest = *std::max_element(rate.rounds.begin(), rate.rounds.end());
    rate.per_cpu_second = median_of(cpu[i]);
    NACRE_TRY(contenders[i]->select(1));
  }
  return rates;
}

}  // namespace nacre::tools
