// SPDX-License-Identifier: Apache-2.0
// How often a disk is asked for its free space, and which value is used in between.
#include "fs/space/free_space.h"

#include <future>

#include <gtest/gtest.h>

namespace nacre::tests {
namespace {

using fs::FreeSpace;
using std::chrono::hours;
using std::chrono::milliseconds;

TEST(FreeSpace, is_asked_for_once_while_the_answer_counts) {
  int asked = 0;
  FreeSpace space([&] { return ++asked, 1000; }, hours(1));
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(space.bytes(50), 1000u);
  EXPECT_EQ(asked, 1);
}

TEST(FreeSpace, is_less_by_what_was_appended_since) {
  FreeSpace space([] { return 1000; }, hours(1));
  EXPECT_EQ(space.bytes(500), 1000u);
  EXPECT_EQ(space.bytes(800), 700u);
  EXPECT_EQ(space.bytes(501), 999u);
  EXPECT_EQ(space.bytes(499), 1000u) << "counted before the disk was asked";
  EXPECT_EQ(space.bytes(1500), 0u);
  EXPECT_EQ(space.bytes(UINT64_MAX), 0u);
}

TEST(FreeSpace, is_asked_for_again_once_the_answer_is_old) {
  std::uint64_t free_bytes = 1000;
  FreeSpace space([&] { return free_bytes; }, milliseconds(0));
  EXPECT_EQ(space.bytes(0), 1000u);
  free_bytes = 7;
  EXPECT_EQ(space.bytes(900), 7u);
}

// A disk may be slow to answer. Other threads that ask meanwhile do not wait for it.
TEST(FreeSpace, is_the_old_answer_while_somebody_asks) {
  int asked = 0;
  std::promise<void> begun, may_answer;
  FreeSpace space(
      [&]() -> std::uint64_t {
        if (++asked == 1) return 1000;
        begun.set_value();
        may_answer.get_future().wait();
        return 7;
      },
      milliseconds(0));
  EXPECT_EQ(space.bytes(0), 1000u);
  auto asking = std::async(std::launch::async, [&] { return space.bytes(300); });
  begun.get_future().wait();
  EXPECT_EQ(space.bytes(400), 600u);
  may_answer.set_value();
  EXPECT_EQ(asking.get(), 7u);
  EXPECT_EQ(asked, 2);
}

}  // namespace
}  // namespace nacre::tests
