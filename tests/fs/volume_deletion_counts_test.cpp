// SPDX-License-Identifier: Apache-2.0
// Deleting, cutting and punching a large file costs what it frees: neither the removal of its rows
// nor the compaction of its segments goes over rows again that are gone already.
#include <fmt/format.h>

#include "tests/fs/volume_counts_fixture.h"

namespace nacre::tests {
namespace {

class VolumeDeletionCounts : public VolumeCounts {
 protected:
  static constexpr std::uint32_t small_chunk = 4u << 10;
  static constexpr std::uint64_t chunk_count = 8192;

  void SetUp() override {
    options_.store.chunk_size_bytes = small_chunk;
    VolumeCounts::SetUp();
    // Records of a file that stays lie among those of the large one, so its segments are compacted.
    large_ = make_file(root, "large");
    const auto kept = make_file(root, "kept");
    constexpr std::uint64_t step = 128;
    for (std::uint64_t chunk = 0; chunk < chunk_count; chunk += step) {
      write(large_, chunk * small_chunk, std::string(step * small_chunk, 'x'));
      write(kept, chunk * small_chunk / 8, std::string(step * small_chunk / 8, 'k'));
      commit();
    }
  }
  std::uint64_t passed() const { return tables_->erased_chunks_passed; }
  void remove_large() {
    NACRE_ASSERT_OK(volume().unlink(root, "large"));
    volume().forget(large_, 1);
  }
  // Waits until the rows of the file are gone. (A remount would not wait for that: it stops the
  // erasing and goes on with it afterwards.)
  void wait_until_erased() {
    while (mounted().stats().data_bytes > chunk_count * small_chunk / 8)
      std::this_thread::yield();
  }
  void compact() { NACRE_ASSERT_OK(mounted().compact(fs::CompactionGoal::everything, {})); }

  fs::InodeNumber large_;
};

TEST_F(VolumeDeletionCounts, rows_that_are_erased_are_not_walked_over_again) {
  const std::uint64_t before = passed();
  remove_large();
  wait_until_erased();
  EXPECT_LE(passed() - before, chunk_count);
}

TEST_F(VolumeDeletionCounts, compaction_asks_once_for_all_records_of_a_deleted_file) {
  remove_large();
  wait_until_erased();
  const std::uint64_t before = passed();
  compact();
  EXPECT_LE(passed() - before, 64 * chunk_count) << "once a segment";
}

TEST_F(VolumeDeletionCounts, compaction_asks_once_for_all_records_of_a_file_that_was_cut) {
  NACRE_ASSERT_OK(volume().change_attributes(large_, {.size = 0}));
  commit();
  const std::uint64_t before = passed();
  compact();
  EXPECT_LE(passed() - before, 64 * chunk_count) << "once a segment";
}

TEST_F(VolumeDeletionCounts, compaction_asks_once_for_all_records_of_a_file_that_was_punched) {
  NACRE_ASSERT_OK(
      volume().allocate(large_, fs::AllocateMode::punch_hole, 0, chunk_count * small_chunk));
  commit();
  const std::uint64_t before = passed();
  compact();
  EXPECT_LE(passed() - before, 64 * chunk_count) << "once a segment";
}

}  // namespace
}  // namespace nacre::tests
