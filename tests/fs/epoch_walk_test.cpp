// SPDX-License-Identifier: Apache-2.0
// The proof that a rotation is complete: every record of every segment is counted, whichever thread
// walks it.
#include "fs/rotation/epoch_walk.h"

#include <atomic>

#include "fs/store/segment_walk.h"

#include "tests/fs/rotation_fixture.h"

namespace nacre::tests {
namespace {

using EpochWalk = RotationTest;
using fs::WalkDepth;

constexpr std::string_view folder = metadata::segment_folder;

Result<> pass(std::uint64_t) {
  return {};
}

TEST_F(EpochWalk, counts_every_record_of_many_segments_once) {
  open();
  fill(80);
  close();
  const auto names = backing_->list(folder);
  NACRE_ASSERT_OK(names);
  ASSERT_GT(names->size(), 10u);
  std::uint64_t stored_bytes = 0;
  for (const std::string& name : *names) {
    const auto file = backing_->open(fmt::format("{}/{}", folder, name), metadata::OpenMode::read);
    NACRE_ASSERT_OK(file);
    stored_bytes += (*file)->size().value() - metadata::segment_header_size_bytes;
  }
  for (const WalkDepth depth : {WalkDepth::headers, WalkDepth::everything}) {
    std::uint64_t passed_bytes = 0;
    const auto counts = fs::count_epochs(*backing_, 1, depth, [&](std::uint64_t bytes) -> Result<> {
      passed_bytes += bytes;
      return {};
    });
    NACRE_ASSERT_OK(counts);
    EXPECT_EQ(counts->record_bytes, stored_bytes);
    EXPECT_EQ(passed_bytes, stored_bytes);
    EXPECT_EQ(counts->other_file_count + counts->other_record_count, 0u) << counts->first_other;
    const auto later = fs::count_epochs(*backing_, 2, depth, pass);
    NACRE_ASSERT_OK(later);
    EXPECT_EQ(later->other_record_count, counts->record_count);
    EXPECT_EQ(later->file_count, counts->file_count);
    EXPECT_GT(later->other_file_count, names->size());
  }
}

TEST_F(EpochWalk, finds_the_one_segment_of_an_older_epoch_among_many) {
  open();
  fill(80);
  const auto names = backing_->list(folder);
  NACRE_ASSERT_OK(names);
  const auto old =
      metadata::read_file(*backing_, fmt::format("{}/{}", folder, names->front()), 1u << 20);
  NACRE_ASSERT_OK(old);
  NACRE_ASSERT_OK(rotation_->begin({}));
  NACRE_ASSERT_OK(rotation_->run({}));
  close();
  const auto clean = fs::count_epochs(*backing_, 2, WalkDepth::headers, pass);
  NACRE_ASSERT_OK(clean);
  ASSERT_EQ(clean->other_record_count, 0u) << clean->first_other;
  const std::string path = fmt::format("{}/000000009999.seg", folder);
  NACRE_ASSERT_OK(metadata::replace_file(*backing_, path, *old));
  for (const WalkDepth depth : {WalkDepth::headers, WalkDepth::everything}) {
    const auto counts = fs::count_epochs(*backing_, 2, depth, pass);
    NACRE_ASSERT_OK(counts);
    EXPECT_EQ(counts->other_file_count, 1u);
    EXPECT_GT(counts->other_record_count, 0u);
    EXPECT_EQ(counts->record_count, clean->record_count + counts->other_record_count);
    EXPECT_EQ(counts->first_other, path + " is of epoch 1");
  }
}

TEST_F(EpochWalk, looks_at_no_record_that_is_vouched_for_but_at_every_segment) {
  open();
  fill(80);
  close();
  const auto all = fs::count_epochs(*backing_, 2, WalkDepth::headers, pass);
  NACRE_ASSERT_OK(all);
  const auto some = fs::count_epochs(*backing_, 2, WalkDepth::headers, pass,
                                     [](auto segment) { return segment.value % 2 == 0; });
  NACRE_ASSERT_OK(some);
  EXPECT_LT(some->record_count, all->record_count);
  EXPECT_GT(some->record_count, 0u);
  EXPECT_EQ(some->other_file_count, all->other_file_count);
}

TEST_F(EpochWalk, may_be_vouched_for_only_where_this_process_wrote) {
  open();
  fill(80);
  const auto names = backing_->list(folder);
  NACRE_ASSERT_OK(names);
  const auto number_of = [](const std::string& name) { return *fs::segment_number_of(name); };
  EXPECT_TRUE(volume_.mounted().store().vouches_for(number_of(names->front())));
  close();
  open();
  EXPECT_FALSE(volume_.mounted().store().vouches_for(number_of(names->front())));
  EXPECT_FALSE(volume_.mounted().store().vouches_for(metadata::SegmentNumber{999'999}));
}

TEST_F(EpochWalk, ends_with_the_error_of_whoever_is_told_of_progress) {
  open();
  fill(80);
  close();
  for (const int calls : {0, 1, 5}) {
    std::atomic<int> left = calls;
    const auto counts =
        fs::count_epochs(*backing_, 1, WalkDepth::everything, [&](std::uint64_t) -> Result<> {
          if (left-- > 0) return {};
          return fail(ErrorCode::busy, "the error of the test");
        });
    ASSERT_FALSE(counts);
    EXPECT_EQ(counts.error().code, ErrorCode::busy);
    EXPECT_EQ(counts.error().message, "the error of the test");
  }
}

}  // namespace
}  // namespace nacre::tests
