// SPDX-License-Identifier: Apache-2.0
// Which writers may go on, and when, while compaction is behind.
#include "fs/space/write_pacer.h"

#include <future>
#include <string>

#include <gtest/gtest.h>

#include "fs/space/room_bound.h"
#include "fs/space/space_bound.h"
#include "tests/support/patience.h"

namespace nacre::tests {
namespace {

using fs::WritePacer;
using metadata::InodeNumber;

constexpr std::uint64_t mib = 1u << 20;

class WritePacerTest : public ::testing::Test {
 protected:
  // Notes the letter of each write that is let go, in their order. There is no rate, so everything
  // happens on this thread.
  void hold(char letter, std::uint64_t bytes, std::uint64_t inode = 1) {
    pacer_.hold(InodeNumber{inode}, bytes, [this, letter] { gone_ += letter; });
  }

  WritePacer pacer_{{.rate_min_bytes_per_second = 0, .burst_bytes_max = mib}};
  std::string gone_;
};

TEST_F(WritePacerTest, holds_nobody_before_it_is_engaged) {
  EXPECT_TRUE(pacer_.may_go_on(100 * mib));
  hold('a', mib);
  EXPECT_EQ(gone_, "a");
  EXPECT_EQ(pacer_.stats().held_count, 0u);
}

TEST_F(WritePacerTest, lets_go_what_compaction_makes_room_for) {
  pacer_.engage(2.0 / 3);  // the balance: as many bytes as were dead
  EXPECT_FALSE(pacer_.may_go_on(1));
  hold('a', mib);
  hold('b', mib);
  hold('c', mib);
  EXPECT_EQ(gone_, "");
  pacer_.note_cleaned(1);  // what is left of the first is the next one's to wait for
  EXPECT_EQ(gone_, "a");
  pacer_.note_cleaned(mib - 1);
  EXPECT_EQ(gone_, "a");
  pacer_.note_cleaned(1);
  EXPECT_EQ(gone_, "ab");
  pacer_.note_cleaned(mib);
  EXPECT_EQ(gone_, "abc");
  EXPECT_EQ(pacer_.stats().held_count, 3u);
}

TEST_F(WritePacerTest, gives_more_near_the_bound_and_never_nothing) {
  for (const auto& [overrun, per_dead_byte] : {std::pair(1e-9, 2.0), std::pair(2.0 / 3, 1.0),
                                               std::pair(1.0, 0.5), std::pair(1000.0, 0.5)}) {
    gone_.clear();
    pacer_.engage(overrun);
    for (int i = 0; i < 8; ++i)
      hold('x', mib);
    pacer_.note_cleaned(4 * mib - 8);  // a little less, so that rounding decides nothing
    EXPECT_EQ(gone_.size(), static_cast<std::size_t>(4 * per_dead_byte)) << overrun;
    pacer_.disengage();
    EXPECT_EQ(gone_.size(), 8u) << "disengaged, it let go of everybody";
  }
}

TEST_F(WritePacerTest, lets_small_writes_go_before_large_ones) {
  pacer_.engage(2.0 / 3);
  hold('L', mib);
  hold('L', mib);
  hold('s', 4096);
  pacer_.note_cleaned(1);
  EXPECT_EQ(gone_, "s");
  pacer_.note_cleaned(4096);
  EXPECT_EQ(gone_, "sL");
}

TEST_F(WritePacerTest, saves_up_no_more_than_a_burst) {
  pacer_.engage(2.0 / 3);
  pacer_.note_cleaned(100 * mib);
  EXPECT_TRUE(pacer_.may_go_on(mib));
  EXPECT_FALSE(pacer_.may_go_on(1));
}

// A commit that waits for a file's pages must not wait for what waits for the commit.
TEST_F(WritePacerTest, holds_no_write_of_the_file_that_a_commit_waits_for) {
  pacer_.engage(1);
  hold('a', mib, 7);
  hold('b', mib, 8);
  hold('c', mib, 7);
  pacer_.exempt(InodeNumber{7});
  EXPECT_EQ(gone_, "ac");
  hold('d', mib, 7);
  EXPECT_EQ(gone_, "acd");
  pacer_.exempt(std::nullopt);
  hold('e', mib, 7);
  EXPECT_EQ(gone_, "acd");
}

TEST_F(WritePacerTest, holds_nobody_once_stopped) {
  pacer_.engage(1);
  hold('a', mib);
  pacer_.stop();
  EXPECT_EQ(gone_, "a");
  pacer_.engage(1);
  EXPECT_TRUE(pacer_.may_go_on(mib));
  hold('b', mib);
  EXPECT_EQ(gone_, "ab");
}

// Even if compaction gets hardly anything done.
TEST(WritePacer, lets_everybody_go_in_the_end) {
  WritePacer pacer({.rate_min_bytes_per_second = 64 * mib, .burst_bytes_max = mib});
  pacer.engage(1000);
  std::promise<void> last;
  pacer.hold(InodeNumber{1}, mib, [] {});
  pacer.hold(InodeNumber{1}, mib, [&] { last.set_value(); });
  EXPECT_EQ(last.get_future().wait_for(patience), std::future_status::ready);
}

TEST(SpaceBound, is_what_the_ratio_the_slack_and_the_room_say) {
  const fs::SegmentStats stats{.live_bytes = 1000, .movable_dead_bytes = 400};
  const fs::SpaceBoundOptions options{
      .space_ratio = 1.25, .slack_share = 0.2, .slack_bytes_min = 10, .room_share = 0.5};
  const auto full = fs::space_bound_of(stats, 0, options);
  EXPECT_DOUBLE_EQ(full.allowed_bytes, 250);
  EXPECT_DOUBLE_EQ(full.excess_bytes, 150);
  EXPECT_DOUBLE_EQ(full.pressure(), 0.6);
  EXPECT_DOUBLE_EQ(full.slack_bytes, 50);
  EXPECT_DOUBLE_EQ(full.overrun(), 2);
  const auto roomy = fs::space_bound_of(stats, 1000, options);
  EXPECT_DOUBLE_EQ(roomy.slack_bytes, 550);
  EXPECT_LE(roomy.overrun(), 0);
  const auto empty = fs::space_bound_of({}, 0, {.slack_bytes_min = 0});
  EXPECT_DOUBLE_EQ(empty.pressure(), 0);
  EXPECT_LE(empty.overrun(), 0);
}

// On a full disk fewer dead bytes are allowed than by the space bound, as far as compaction can
// free any.
TEST(RoomBound, takes_the_place_of_the_space_bound_where_the_disk_is_full) {
  fs::SegmentStats stats{
      .live_bytes = 1000, .empty_bytes = 10, .movable_dead_bytes = 100, .reclaimable_bytes = 90};
  constexpr std::uint64_t disk_bytes = 16 * 160;
  const fs::SpaceBoundOptions options{.slack_bytes_min = 500, .room_share = 0};
  const auto bound_with = [&](std::uint64_t room_bytes) {
    return fs::room_bound_of(stats, room_bytes, disk_bytes)
        .applied_to(fs::space_bound_of(stats, 0, options));
  };
  EXPECT_LE(bound_with(150).excess_bytes, 0);
  EXPECT_DOUBLE_EQ(bound_with(110).excess_bytes, 40);
  EXPECT_LE(bound_with(110).overrun(), 0) << "nobody waits while half of the room is left";
  EXPECT_DOUBLE_EQ(bound_with(0).excess_bytes, 80) << "there is no more to be had";
  stats.reclaimable_bytes = 1000;
  EXPECT_DOUBLE_EQ(bound_with(0).excess_bytes, 150);
  EXPECT_DOUBLE_EQ(bound_with(0).overrun(), 150.0 / 80 - 1);
  stats.reclaimable_bytes = 10;
  EXPECT_LE(bound_with(0).excess_bytes, 0);
  // The bound by which compaction is further behind counts.
  stats.reclaimable_bytes = 1000;
  stats.movable_dead_bytes = 3000;
  EXPECT_DOUBLE_EQ(bound_with(0).excess_bytes, 2750);
  EXPECT_EQ(fs::room_bound_of(stats, 0, 1ull << 50).wanted_bytes, fs::RoomBound::bytes_max);
}

}  // namespace
}  // namespace nacre::tests
