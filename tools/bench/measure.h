// SPDX-License-Identifier: Apache-2.0
// Measures contenders side by side. In each round every one has its turn, so that other work on the
// machine hits all alike. Figures are medians of the rounds.
#pragma once

#include <span>
#include <vector>

#include "gpu_engine/base/result.h"
#include "tools/bench/contender.h"

namespace nacre::tools {

// The fewest rounds.
inline constexpr int bench_round_count = 7;

// Units (bytes or operations) a second.
struct Rate {
  double median = 0;
  double lowest = 0;
  double highest = 0;
  double per_cpu_second = 0;   // of all threads of this process together
  std::vector<double> rounds;  // in their order
};

// weights: what each message counts, in units. Contenders have run all messages once and are warm;
// full_seconds says how long that took the slowest one that can also do a part of them. Takes about
// `seconds`, or longer if one message of each thread takes longer, or if a contender needs all
// messages. turn_seconds_max: the longest turn that makes several passes; shorter turns mean more
// rounds.
Result<std::vector<Rate>> measure(std::span<Contender* const> contenders,
                                  std::span<const double> weights, unsigned thread_count,
                                  double full_seconds, double seconds, double turn_seconds_max);

double median_of(std::vector<double> values);
double wall_seconds();
double cpu_seconds();

}  // namespace nacre::tools
