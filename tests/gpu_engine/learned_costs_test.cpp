// SPDX-License-Identifier: Apache-2.0
// Learning from times: the factors, the periods from which they follow, and when the other backend
// is tried.
#include "gpu_engine/plan/learned_costs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "gpu_engine/plan/busy_periods.h"
#include "gpu_engine/plan/trials.h"

namespace nacre::engine {
namespace {

constexpr double megabyte = 1 << 20;
constexpr WorkClass seal_lz77 = {WorkKind::seal, Codec::lz77};
constexpr WorkClass checksum = {WorkKind::checksum};

CostCell cell(double bytes, Side side = Side::cpu, WorkClass work = seal_lz77) {
  return LearnedCosts::cell_of(side, work, bytes);
}

TEST(LearnedCosts, has_a_cell_for_each_backend_class_and_size) {
  std::vector<bool> taken(LearnedCosts::cell_count);
  for (std::size_t i = 0; i < work_class_count; ++i) {
    for (const Side side : {Side::cpu, Side::cuda}) {
      for (double bytes = megabyte / 4; bytes < 1024 * megabyte; bytes *= 2) {
        const CostCell at = cell(bytes, side, work_class_at(i));
        ASSERT_LT(at, taken.size());
        EXPECT_FALSE(taken[at]) << to_string(work_class_at(i)) << ", " << bytes;
        taken[at] = true;
        EXPECT_EQ(at, cell(bytes * 1.99, side, work_class_at(i)));
        EXPECT_EQ(LearnedCosts::class_index(at), i);
      }
    }
  }
  EXPECT_EQ(std::ranges::count(taken, true), std::ptrdiff_t{LearnedCosts::cell_count});
  EXPECT_EQ(cell(0), cell(1));
  EXPECT_EQ(cell(512 * megabyte), cell(1e15));
}

TEST(LearnedCosts, takes_the_median_and_bad_news_from_the_second_payload_on) {
  LearnedCosts learned;
  const CostCell at = cell(megabyte);
  EXPECT_EQ(learned.factor(at), 1);
  learned.learn(at, 3);
  EXPECT_EQ(learned.factor(at), 1) << "it may have been a hiccup";
  learned.learn(at, 2);
  EXPECT_EQ(learned.factor(at), 2);
  learned.learn(at, 2.5);
  EXPECT_EQ(learned.factor(at), 2.5);
  EXPECT_EQ(learned.payload_count(at), 3u);
  LearnedCosts other;
  other.learn(at, 0.5);
  EXPECT_EQ(other.factor(at), 0.5) << "nothing but speed makes a payload faster";
}

TEST(LearnedCosts, forgets_hiccups_and_follows_what_lasts) {
  LearnedCosts learned;
  const CostCell at = cell(megabyte);
  for (const double first : {100.0, 1.0, 1.0})
    learned.learn(at, first);
  EXPECT_EQ(learned.factor(at), 1);
  learned.learn(at, 100);
  learned.learn(at, 1);
  EXPECT_EQ(learned.factor(at), 1) << "two of five";
  for (int i = 0; i < 3; ++i)
    learned.learn(at, 2);
  EXPECT_EQ(learned.factor(at), 2);
  for (int i = 0; i < 5; ++i)
    learned.learn(at, 1e9);
  EXPECT_EQ(learned.factor(at), LearnedCosts::factor_max);
  for (int i = 0; i < 5; ++i)
    learned.learn(at, 1e-9);
  EXPECT_EQ(learned.factor(at), 1 / LearnedCosts::factor_max);
}

TEST(LearnedCosts, lets_sizes_of_which_nothing_is_known_follow_the_nearest) {
  LearnedCosts learned;
  const auto learn = [&](double bytes, double factor) {
    for (int i = 0; i < 2; ++i)
      learned.learn(cell(bytes), factor);
  };
  learn(4 * megabyte, 2);
  EXPECT_EQ(learned.factor(cell(megabyte)), 2);
  EXPECT_EQ(learned.factor(cell(512 * megabyte)), 2);
  learn(64 * megabyte, 3);
  EXPECT_EQ(learned.factor(cell(8 * megabyte)), 2);
  EXPECT_EQ(learned.factor(cell(32 * megabyte)), 3);
  learn(8 * megabyte, 0.5);
  EXPECT_EQ(learned.factor(cell(4 * megabyte)), 2);
  EXPECT_EQ(learned.factor(cell(8 * megabyte)), 0.5);
  EXPECT_EQ(learned.factor(cell(4 * megabyte, Side::cuda)), 1);
  EXPECT_EQ(learned.factor(cell(4 * megabyte, Side::cpu, checksum)), 1);
}

// Each class learns by itself: DES in a serial mode learns nothing from AES in one, and making RSA
// keys nothing from RSA.
TEST(LearnedCosts, keeps_what_it_learns_of_a_class_and_a_backend_to_these) {
  for (std::size_t own = 0; own < work_class_count; ++own) {
    for (const Side own_side : {Side::cpu, Side::cuda}) {
      LearnedCosts learned;
      for (int i = 0; i < 2; ++i)
        learned.learn(cell(4 * megabyte, own_side, work_class_at(own)), 2);
      for (std::size_t i = 0; i < work_class_count; ++i) {
        for (const Side side : {Side::cpu, Side::cuda})
          EXPECT_EQ(learned.factor(cell(4 * megabyte, side, work_class_at(i))),
                    i == own && side == own_side ? 2 : 1)
              << to_string(work_class_at(i)) << " beside " << to_string(work_class_at(own));
      }
    }
  }
}

PlannedPart part(double ns, WorkClass work = seal_lz77, double factor = 1) {
  return {.predicted_ns = ns, .cell = cell(megabyte, Side::cpu, work), .factor = factor};
}

TEST(BusyPeriods, tells_the_time_of_a_part_that_was_alone) {
  BusyPeriods busy;
  for (const double took : {50.0, 200.0}) {
    EXPECT_TRUE(busy.is_idle());
    busy.begin(part(100, seal_lz77, 0.8), 1000);
    EXPECT_FALSE(busy.is_idle());
    const auto told = busy.end(part(100, seal_lz77, 0.8), 1000 + static_cast<std::uint64_t>(took));
    ASSERT_EQ(told.size(), 1u);
    EXPECT_EQ(told[0].cell, cell(megabyte));
    EXPECT_DOUBLE_EQ(told[0].factor, 0.8 * took / 100);
  }
  // A part that cannot be attributed teaches nothing, and neither does a clock that stands still.
  const PlannedPart unknown = {.predicted_ns = 5};
  busy.begin(unknown, 0);
  EXPECT_TRUE(busy.end(unknown, 70).empty());
  busy.begin(part(100), 70);
  EXPECT_TRUE(busy.end(part(100), 70).empty());
}

TEST(BusyPeriods, shares_out_what_overlapped_where_it_was_of_one_class) {
  BusyPeriods busy;
  busy.begin(part(100), 0);
  busy.begin(part(300, seal_lz77, 2), 50);
  EXPECT_TRUE(busy.end(part(100), 200).empty());
  const auto told = busy.end(part(300, seal_lz77, 2), 800);
  ASSERT_EQ(told.size(), 1u) << "one measurement for each size";
  EXPECT_DOUBLE_EQ(told[0].factor, 4);
  for (const PlannedPart& other : {part(50, checksum), PlannedPart{.predicted_ns = 50}}) {
    busy.begin(part(100), 1000);
    busy.begin(other, 1001);
    EXPECT_TRUE(busy.end(other, 1100).empty());
    EXPECT_TRUE(busy.end(part(100), 1200).empty()) << "something of unknown length was beside it";
  }
  busy.begin(part(100), 2000);
  EXPECT_EQ(busy.end(part(100), 2100).size(), 1u) << "what was before it is over";
}

// With many callers it never is.
TEST(BusyPeriods, does_not_wait_for_the_backend_to_be_idle) {
  BusyPeriods busy;
  std::size_t told_count = 0;
  busy.begin(part(100), 0);
  for (std::uint64_t i = 1; i <= 32; ++i) {
    busy.begin(part(100), 250 * i);
    for (const auto& told : busy.end(part(100), 250 * i)) {
      EXPECT_DOUBLE_EQ(told.factor, 2.5);
      ++told_count;
    }
  }
  EXPECT_EQ(told_count, 32u / 8);
}

// While a mount locked its first pages, seven payloads at the same time took seven times as long.
// In an earlier version that counted seven times, and the device was seldom tried again.
TEST(BusyPeriods, tell_of_a_stall_once_however_many_parts_it_held_up) {
  BusyPeriods busy;
  LearnedCosts learned;
  const auto part_of = [](double bytes) {
    return PlannedPart{.predicted_ns = 100, .cell = cell(bytes), .factor = 1};
  };
  std::uint64_t now = 0;
  const auto run_beside_each_other = [&](double slowness) {
    for (int i = 0; i < 7; ++i)
      busy.begin(part_of(i == 0 ? 32 * megabyte : 16 * megabyte), now);
    now += static_cast<std::uint64_t>(700 * slowness);
    std::size_t told_count = 0;
    for (int i = 0; i < 7; ++i) {
      for (const auto& told : busy.end(part_of(i == 0 ? 32 * megabyte : 16 * megabyte), now)) {
        learned.learn(told.cell, told.factor);
        ++told_count;
      }
    }
    EXPECT_EQ(told_count, 2u) << "one for each size";
  };
  for (const double slowness : {1.1, 7.0, 1.1, 1.1, 6.7})
    run_beside_each_other(slowness);
  EXPECT_NEAR(learned.factor(cell(16 * megabyte)), 1.1, 0.01);
  EXPECT_NEAR(learned.factor(cell(32 * megabyte)), 1.1, 0.01);
}

TEST(BusyPeriods, tell_nothing_of_a_time_in_which_the_backend_was_kept_from_its_work) {
  BusyPeriods busy;
  busy.begin(part(100), 0);
  busy.begin_disturbance();
  busy.end_disturbance();
  EXPECT_TRUE(busy.end(part(100), 900).empty()) << "there was one";
  busy.begin_disturbance();
  busy.begin(part(100), 1000);
  EXPECT_TRUE(busy.end(part(100), 1900).empty()) << "there is one";
  busy.begin(part(100), 2000);
  busy.end_disturbance();
  EXPECT_TRUE(busy.end(part(100), 2900).empty()) << "there was one when it began";
  busy.begin(part(100), 3000);
  EXPECT_EQ(busy.end(part(100), 3100).size(), 1u);
  // With many callers it never is idle.
  busy.begin(part(100), 4000);
  std::size_t told_count = 0;
  for (std::uint64_t i = 1; i <= 16; ++i) {
    if (i == 3) busy.begin_disturbance();
    if (i == 5) busy.end_disturbance();
    busy.begin(part(100), 4000 + 250 * i);
    told_count += busy.end(part(100), 4000 + 250 * i).size();
  }
  EXPECT_EQ(told_count, 1u) << "of the second eight";
}

TEST(BusyPeriods, counts_what_is_left_to_do) {
  BusyPeriods busy;
  EXPECT_EQ(busy.backlog_ns(5), 0);
  busy.begin(part(100), 1000);
  EXPECT_DOUBLE_EQ(busy.backlog_ns(1000), 100);
  EXPECT_DOUBLE_EQ(busy.backlog_ns(1040), 60);
  busy.begin(part(200), 1040);
  EXPECT_DOUBLE_EQ(busy.backlog_ns(1040), 260);
  EXPECT_DOUBLE_EQ(busy.backlog_ns(9000), 75) << "late, but not over";
  busy.end(part(100), 9000);
  EXPECT_DOUBLE_EQ(busy.backlog_ns(9000), 200);
  busy.end(part(200), 9001);
  EXPECT_EQ(busy.backlog_ns(9001), 0);
}

bool is_tried(Trial trial) {
  return trial == Trial::warm_up || trial == Trial::counted;
}

// One that takes as long as a backend needs to wake.
Trials::Payload long_payload() {
  return {.work = checksum,
          .bytes = megabyte,
          .choice = Trials::Choice::cpu,
          .chosen_ns = 5e5,
          .tried_ns = 5e5};
}

// The payloads, counted from 1, that are trials.
std::vector<int> trials_of(Trials& trials, int payload_count, double loss, unsigned known_count) {
  Trials::Payload payload = long_payload();
  payload.loss = loss;
  payload.known_count = known_count;
  std::vector<int> due;
  for (int i = 1; i <= payload_count; ++i)
    if (is_tried(trials.next(payload))) due.push_back(i);
  return due;
}

TEST(Trials, come_soon_at_first_and_then_seldom) {
  Trials trials;
  EXPECT_EQ(trials_of(trials, 1000, 0, 0), (std::vector{4, 20, 148, 404, 660, 916}));
  Trials::Payload other = long_payload();
  other.bytes = 2 * megabyte;
  EXPECT_EQ(trials.next(other), Trial::none) << "each size has its own";
  Trials again;
  Trials::Payload busy = long_payload();
  busy.can_try = false;
  for (int i = 0; i < 2000; ++i)
    EXPECT_EQ(again.next(busy), Trial::none);
  EXPECT_EQ(trials_of(again, 1, 0, 0), std::vector{1}) << "as soon as one is possible";
}

// A backend that slept is slow with the first payload, and by then so is the better one.
TEST(Trials, are_two_payloads_where_little_is_at_stake) {
  const auto all_of = [](double loss, unsigned known_count) {
    Trials trials;
    Trials::Payload payload = long_payload();
    payload.loss = loss;
    payload.known_count = known_count;
    std::vector<Trial> all;
    for (int i = 1; i <= 7; ++i)
      all.push_back(trials.next(payload));
    return all;
  };
  using enum Trial;
  EXPECT_EQ(all_of(0.01, 2), (std::vector{none, none, none, warm_up, counted, settle, none}));
  EXPECT_EQ(all_of(0.01, 1), (std::vector{none, none, none, counted, settle, none, none}));
  EXPECT_EQ(all_of(2.5, 2), std::vector(7, none)) << "much is at stake";
  Trials trials;
  Trials::Payload payload = long_payload();
  payload.known_count = 5;
  for (int i = 1; i < 4; ++i)
    trials.next(payload);
  EXPECT_EQ(trials.next(payload), warm_up);
  Trials::Payload busy = payload;
  busy.can_try = false;
  EXPECT_EQ(trials.next(busy), none) << "it is not waited for";
  EXPECT_EQ(trials.next(payload), none) << "and by then would have slept again";
}

// Threads wake in a time, not in a number of payloads.
TEST(Trials, begin_with_as_many_payloads_as_waking_takes) {
  using Counts = std::array<int, 3>;  // of warm_up, counted and settle, in the first trial
  const auto counts_of = [](double tried_ns, double chosen_ns, int settle_count) {
    Trials trials;
    Trials::Payload payload = long_payload();
    payload.known_count = 5;
    payload.tried_ns = tried_ns;
    payload.chosen_ns = chosen_ns;
    for (int i = 1; i < 4; ++i)
      trials.next(payload);
    Counts counts = {};
    do {
      ++counts.at(static_cast<std::size_t>(trials.next(payload)) - 1);
    } while (counts[2] < settle_count);
    return counts;
  };
  EXPECT_EQ(counts_of(1e5, 2e5, 3), (Counts{5, 1, 3}));
  EXPECT_EQ(counts_of(1e3, 1e3, 15), (Counts{15, 1, 15})) << "no more than these";
  EXPECT_EQ(counts_of(1e7, 1e7, 1), (Counts{1, 1, 1}));
}

// A trial goes on while the tried backend gets faster, but only up to a bound.
TEST(Trials, go_on_while_they_are_worth_it) {
  Trials trials;
  Trials::Payload payload = long_payload();
  payload.known_count = 5;
  const auto next_of = [&](int count) {
    int tried = 0;
    for (int i = 0; i < count; ++i)
      tried += is_tried(trials.next(payload)) ? 1 : 0;
    return tried;
  };
  EXPECT_EQ(next_of(4), 1);
  EXPECT_EQ(next_of(1), 1) << "after the warm-up";
  payload.got_faster = true;
  EXPECT_EQ(next_of(2), 2);
  payload.got_faster = false;
  EXPECT_EQ(next_of(1), 0);
  payload.got_faster = true;
  EXPECT_EQ(next_of(1), 0) << "what is over is over";
  EXPECT_EQ(next_of(100), 8);
}

TEST(Trials, are_rarer_the_more_they_may_cost) {
  for (const double loss : {0.5, 2.0, 8.0}) {
    for (const unsigned known : {0u, 5u}) {
      Trials trials;
      const std::vector<int> due = trials_of(trials, 4000, loss, known);
      const double spent = static_cast<double>(due.size()) * loss / 4000;
      EXPECT_GE(due.size(), 4u);
      EXPECT_LE(spent, known == 0 ? 0.1 : 0.011) << loss;
    }
  }
}

TEST(Trials, come_soon_again_when_things_have_changed) {
  const auto until = [](const Trials::Payload& payload) {
    Trials trials;
    trials_of(trials, 918, 0, 0);
    int count = 3;
    while (!is_tried(trials.next(payload)))
      ++count;
    return count;
  };
  Trials::Payload payload = long_payload();
  EXPECT_EQ(until(payload), 256);
  payload.choice = Trials::Choice::cuda;
  EXPECT_EQ(until(payload), 16);
  payload = long_payload();
  payload.loss = 3;
  payload.went_well = true;
  EXPECT_EQ(until(payload), 4);
}

}  // namespace
}  // namespace nacre::engine
