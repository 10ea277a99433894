// SPDX-License-Identifier: Apache-2.0
// A chunk's row made from its records: never older bytes than those that a record gives, and never
// zeros for bytes that are not known.
#include <gtest/gtest.h>

#include "fs/repair/chunk_of_records.h"
#include "fs/store/chunk_map.h"

namespace nacre::tests {
namespace {

using fs::FoundRecord;
using fs::PlacedRecord;
using metadata::ChunkRow;
using metadata::LostRange;
using metadata::RecordKind;
using metadata::RecordVersion;

class ChunkOfRecords : public ::testing::Test {
 protected:
  void found(RecordKind kind, std::uint32_t offset, std::uint32_t size) {
    records_.push_back({.version = RecordVersion{100 + records_.size()},
                        .plain_size = size,
                        .patch_offset = offset,
                        .kind = kind});
  }
  bool make(std::uint32_t file_end) {
    std::vector<PlacedRecord> placed;
    for (const FoundRecord& record : records_) {
      placed.push_back(
          {&record, {fs::SegmentNumber{1}, 1000 * record.version.value, record.plain_size}});
    }
    return fs::add_newer_records(row_, placed, file_end);
  }

  std::vector<FoundRecord> records_;
  ChunkRow row_;
};

TEST_F(ChunkOfRecords, takes_parts_as_they_are) {
  for (std::uint32_t part = 0; part < 4; ++part)
    found(RecordKind::patch, part * 1000, 1000);
  EXPECT_TRUE(make(4000));
  EXPECT_FALSE(row_.base);
  EXPECT_EQ(row_.patches.size(), 4u);
  EXPECT_TRUE(row_.lost.empty());
}

TEST_F(ChunkOfRecords, says_that_bytes_without_a_record_are_lost) {
  found(RecordKind::patch, 0, 1000);
  found(RecordKind::patch, 2000, 1000);
  EXPECT_TRUE(make(3500));
  EXPECT_EQ(row_.lost, (std::vector<LostRange>{{1000, 1000}, {3000, 500}}));
}

TEST_F(ChunkOfRecords, knows_no_end_of_a_file_whose_row_is_gone) {
  found(RecordKind::patch, 500, 1000);
  EXPECT_TRUE(make(0));
  EXPECT_EQ(row_.lost, (std::vector<LostRange>{{0, 500}}));
}

// Ten generations of four parts are more than a row has room for. In an earlier version the oldest
// ones filled it.
TEST_F(ChunkOfRecords, takes_the_newest_of_many_generations) {
  for (int generation = 0; generation < 10; ++generation) {
    for (std::uint32_t part = 0; part < 4; ++part)
      found(RecordKind::patch, part * 1000, 1000);
  }
  EXPECT_TRUE(make(4000));
  ASSERT_EQ(row_.patches.size(), 4u);
  for (const auto& patch : row_.patches)
    EXPECT_GE(patch.version, RecordVersion{136});
}

// If a record for which there is no room were left out, bytes of an older record would be seen in
// its place.
TEST_F(ChunkOfRecords, loses_what_a_full_row_has_no_room_for) {
  found(RecordKind::chunk, 0, 4000);
  for (std::uint32_t i = 0; i < metadata::patch_count_max; ++i)
    found(RecordKind::patch, i * 100, 50);
  found(RecordKind::patch, 3900, 100);
  EXPECT_TRUE(make(4000));
  EXPECT_EQ(row_.patches.size(), metadata::patch_count_max);
  EXPECT_EQ(row_.lost, (std::vector<LostRange>{{3900, 100}}));
  found(RecordKind::chunk, 0, 4000);
  row_ = {};
  EXPECT_TRUE(make(4000));
  EXPECT_TRUE(row_.base && row_.patches.empty() && row_.lost.empty());
}

TEST_F(ChunkOfRecords, leaves_a_row_alone_that_is_as_new_as_they_are) {
  found(RecordKind::chunk, 0, 4000);
  row_.base =
      metadata::ChunkBase{.version = RecordVersion{200}, .plain_size = 10, .valid_size = 10};
  EXPECT_FALSE(make(4000));
  EXPECT_EQ(row_.base->plain_size, 10u);
}

}  // namespace
}  // namespace nacre::tests
