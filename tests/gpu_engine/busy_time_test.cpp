// SPDX-License-Identifier: Apache-2.0
// Times in which several users overlap are counted once.
#include "gpu_engine/plan/busy_time.h"

#include <optional>

#include <gtest/gtest.h>

namespace nacre::engine {
namespace {

class BusyTimeTest : public ::testing::Test {
 protected:
  void pass(int nanoseconds) { now_ += std::chrono::nanoseconds(nanoseconds); }

  BusyTime::Clock::time_point now_;
  BusyTime busy_{[this] { return now_; }};
};

TEST_F(BusyTimeTest, counts_overlapping_users_once) {
  std::optional<BusyTime::Use> first(busy_), second;
  pass(10);
  second.emplace(busy_);
  pass(20);
  first.reset();
  pass(30);
  second.reset();
  EXPECT_EQ(busy_.nanoseconds(), 60u);
}

TEST_F(BusyTimeTest, does_not_count_the_time_between_users) {
  std::optional<BusyTime::Use> use(busy_);
  pass(10);
  use.reset();
  pass(1000);
  use.emplace(busy_);
  pass(5);
  use.reset();
  EXPECT_EQ(busy_.nanoseconds(), 15u);
}

TEST_F(BusyTimeTest, includes_what_is_under_way) {
  const BusyTime::Use use(busy_);
  pass(10);
  EXPECT_EQ(busy_.nanoseconds(), 10u);
  pass(5);
  EXPECT_EQ(busy_.nanoseconds(), 15u);
}

}  // namespace
}  // namespace nacre::engine
