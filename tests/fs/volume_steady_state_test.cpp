// SPDX-License-Identifier: Apache-2.0
// The cost of overwriting a full volume for ever, in counts: bytes appended for each byte written,
// and stored bytes for each live byte. docs/PERFORMANCE.md has the figures and where they come
// from.
#include <functional>
#include <future>
#include <iostream>
#include <random>
#include <thread>

#include "tests/fs/compaction_fixture.h"

namespace nacre::tests {
namespace {

using fs::InodeNumber;

// Steady state of a full volume. Bytes appended for each byte of payload, and stored for each live
// one, once the first writes are forgotten.
struct Costs {
  double amplification = 0, space_max = 0;
  double space_end = 0;
};
struct Shape {
  std::size_t chunk_count = 2048;
  std::uint64_t segment_size_bytes = 64u << 10;  // 16 records or so
  double space_ratio = 1.25;
  bool in_background = false;  // compaction goes on by itself, the writer pauses for nothing
  bool has_room = false;       // on the disk; then no writer is held back
};
using Pick = std::size_t (*)(std::mt19937& random, std::size_t chunk_count);

class SteadyState : public VolumeCompaction {
 protected:
  // Waits as a request of the kernel does.
  void wait_to_write_on(InodeNumber file, std::uint64_t written_bytes) {
    if (mounted().compactor().pacer().may_go_on(written_bytes)) return;
    std::promise<void> may_go_on;
    mounted().compactor().pacer().hold(file, written_bytes, [&] { may_go_on.set_value(); });
    may_go_on.get_future().wait();
  }
  Costs overwrite(const Shape& shape, Pick pick) {
    unmount();
    options_.store.segment_size_bytes = shape.segment_size_bytes;
    options_.compaction.bound.space_ratio = shape.space_ratio;
    options_.dirty_budget_bytes = 64u << 20;
    options_.background_compaction = shape.in_background;
    // Only counts matter here: writers may write as much as compaction gets done, and nothing more
    // as time passes.
    options_.compaction.pacing.rate_min_bytes_per_second = 0;
    options_.compaction.bound.room_share = shape.has_room ? 1 : 0;
    mount();
    const std::size_t chunk_count = shape.chunk_count;
    const InodeNumber file = make_file(root, "f");
    write(file, 0, noise(chunk_count * chunk_size, 1));
    NACRE_EXPECT_OK(volume().sync_all());
    std::mt19937 random(7);
    const std::string fresh = noise(chunk_size, 2);
    fs::SegmentStats warm;
    Costs costs;
    const std::size_t rounds = 5 * chunk_count / 16;
    for (std::size_t round = 0; round < rounds; ++round) {
      if (round == rounds / 2) warm = segments();
      for (int i = 0; i < 16; ++i) {
        write(file, pick(random, chunk_count) * chunk_size, fresh);
        wait_to_write_on(file, chunk_size);
      }
      NACRE_EXPECT_OK(volume().sync_all());
      if (!shape.in_background) compact(fs::CompactionGoal::space_ratio);
      const auto now = segments();
      if (warm.stored_bytes > 0) {
        costs.space_max = std::max(costs.space_max, static_cast<double>(now.stored_bytes) /
                                                        static_cast<double>(now.live_bytes));
      }
    }
    const auto excess = [&] {
      const auto now = segments();
      return static_cast<double>(now.movable_dead_bytes) -
             (shape.space_ratio - 1) * static_cast<double>(now.live_bytes);
    };
    // Waits until compaction has caught up.
    while (shape.in_background && excess() > 0)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    NACRE_EXPECT_OK(volume().sync_all());
    const auto end = segments();
    costs.amplification = static_cast<double>(end.appended_bytes - warm.appended_bytes +
                                              end.moved_bytes - warm.moved_bytes) /
                          static_cast<double>(end.plain_bytes - warm.plain_bytes);
    costs.space_end = static_cast<double>(end.stored_bytes) / static_cast<double>(end.live_bytes);
    std::cout << fmt::format(
        "write amplification {:.2f}, space at most {:.3f} of live, {:.3f} in the end\n",
        costs.amplification, costs.space_max, costs.space_end);
    return costs;
  }
};

std::size_t any_chunk(std::mt19937& random, std::size_t chunk_count) {
  return random() % chunk_count;
}
std::size_t hot_tenth(std::mt19937& random, std::size_t chunk_count) {
  return random() % 10 < 9 ? random() % (chunk_count / 10) : random() % chunk_count;
}

TEST_F(SteadyState, random_overwrites_stay_within_space_and_amplification) {
  const Costs costs = overwrite({}, any_chunk);
  EXPECT_LE(costs.space_max, 1.25 + 0.01);
  EXPECT_LE(costs.amplification, 2.5);
}

TEST_F(SteadyState, overwrites_of_a_hot_tenth_cost_less) {
  const Costs costs = overwrite({}, hot_tenth);
  EXPECT_LE(costs.space_max, 1.25 + 0.01);
  EXPECT_LE(costs.amplification, 2.0);
}

// The writer is held back to the speed of compaction, however the machine shares its time between
// them. Dead bytes settle below twice the slack, here four segments. The segments that are being
// filled, and bytes that wait for a commit, come on top.
TEST_F(SteadyState, a_writer_without_a_pause_stays_within_space_and_amplification) {
  const Costs costs = overwrite({.in_background = true}, any_chunk);
  EXPECT_LE(costs.space_max, 1.25 + 0.125);
  EXPECT_LE(costs.amplification, 2.5);
  EXPECT_LE(costs.space_end, 1.25 + 0.03);
  EXPECT_GT(mounted().stats().compaction.writers.held_count, 0u);
}

TEST_F(SteadyState, so_does_one_that_prefers_a_hot_tenth) {
  const Costs costs = overwrite({.in_background = true}, hot_tenth);
  // While a segment is being emptied, writers go on until the next look (1.40 was seen). Without
  // being held back they would reach three times the live bytes.
  EXPECT_LE(costs.space_max, 1.25 + 0.375);
  EXPECT_LE(costs.amplification, 2.0);
}

// The dead records lay in the segment that was being filled when the background looked, and no
// commit wakes it again. What dies after that holds back the writer all the same.
TEST_F(SteadyState, a_writer_is_held_back_though_there_was_nothing_to_empty_before) {
  unmount();
  options_.store.segment_size_bytes = 1u << 20;
  options_.dirty_budget_bytes = 1u << 20;
  options_.background_compaction = true;
  options_.compaction.pacing.rate_min_bytes_per_second = 0;
  options_.compaction.bound.room_share = 0;
  mount();
  const InodeNumber small = make_file(root, "small");
  for (std::uint32_t i = 0; i < 6; ++i) {
    write(small, 0, noise(16 * chunk_size, i));
    NACRE_EXPECT_OK(volume().sync_all());
  }
  ASSERT_GT(segments().movable_dead_bytes, segments().live_bytes);
  std::this_thread::sleep_for(std::chrono::milliseconds(500));  // the background has looked
  ASSERT_EQ(mounted().stats().compaction.segment_count, 0u);
  const InodeNumber large = make_file(root, "large");
  const std::size_t chunk_count = 512;
  write(large, 0, noise(chunk_count * chunk_size, 1));
  std::mt19937 random(7);
  const std::string fresh = noise(chunk_size, 2);
  for (std::size_t i = 0; i < 16 * chunk_count; ++i) {
    write(large, any_chunk(random, chunk_count) * chunk_size, fresh);
    wait_to_write_on(large, chunk_size);
  }
  EXPECT_GT(mounted().stats().compaction.writers.held_count, 0u);
}

// If the disk has room, no writer is held back, and the speed of the machine decides how far
// compaction falls behind. That costs no additional writes, and in the end compaction catches up.
TEST_F(SteadyState, a_writer_without_a_pause_is_not_held_back_where_there_is_room) {
  const Costs costs = overwrite({.in_background = true, .has_room = true}, any_chunk);
  EXPECT_EQ(mounted().stats().compaction.writers.held_count, 0u);
  EXPECT_LE(costs.amplification, 2.5);
  EXPECT_LE(costs.space_end, 1.25 + 0.03);  // the segments being filled count
}

// The figures of docs/PERFORMANCE.md for each -o space_ratio=, with segments as small as these.
struct Setting {
  double space_ratio = 0, amplification = 0;
};
class SteadyStateOfSetting : public SteadyState, public ::testing::WithParamInterface<Setting> {};

TEST_P(SteadyStateOfSetting, costs_what_the_ledger_says) {
  Shape shape;
  shape.space_ratio = GetParam().space_ratio;
  const Costs costs = overwrite(shape, any_chunk);
  EXPECT_LE(costs.space_max, shape.space_ratio + 0.01);
  EXPECT_NEAR(costs.amplification / GetParam().amplification, 1, 0.05);
}

INSTANTIATE_TEST_SUITE_P(SpaceRatio, SteadyStateOfSetting,
                         ::testing::Values(Setting{1.15, 3.43}, Setting{1.5, 1.62},
                                           Setting{2, 1.21}));

// Segments of 500 records, near to the 1,000 that 64 MiB of incompressible chunks are. The theory
// of segments that are emptied as a whole allows no less than 2.69 at 1.25 and 2.39 at 1.3; the two
// segments being filled count in a volume as small as this one.
constexpr Shape full_segments{.chunk_count = 16384, .segment_size_bytes = 2105u << 10};

TEST_F(SteadyState, of_full_segments_costs_what_theory_says) {
  const Costs costs = overwrite(full_segments, any_chunk);
  EXPECT_LE(costs.space_max, 1.25 + 0.01);
  EXPECT_LE(costs.amplification, 2.9);
}

TEST_F(SteadyState, of_full_segments_costs_less_where_some_chunks_are_hot) {
  const Costs costs = overwrite(full_segments, hot_tenth);
  EXPECT_LE(costs.space_max, 1.25 + 0.01);
  EXPECT_LE(costs.amplification, 2.5);
}

TEST_F(SteadyState, of_full_segments_stays_within_amplification_where_more_space_is_allowed) {
  Shape shape = full_segments;
  shape.space_ratio = 1.3;
  const Costs costs = overwrite(shape, any_chunk);
  EXPECT_LE(costs.space_max, 1.3 + 0.01);
  EXPECT_LE(costs.amplification, 2.5);
}

}  // namespace
}  // namespace nacre::tests
