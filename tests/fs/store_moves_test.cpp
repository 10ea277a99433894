// SPDX-License-Identifier: Apache-2.0
// Records that are appended as they are: a segment holds no record of an epoch other than its own,
// even if a caller passes one.
#include <gtest/gtest.h>

#include "fs/store/segment_table.h"
#include "gpu_engine/record/record.h"
#include "tests/fs/store_fixture.h"
#include "tests/support/error_of.h"

namespace nacre::tests {
namespace {

class StoreMoves : public testing::Test {
 protected:
  void SetUp() override {
    NACRE_ASSERT_OK(TestStore::format(directory_));
    database_ = metadata::Database::open(directory_, keys_, {}).value();
    store_ = fs::SegmentStore::open(directory_, *database_, keys_, *engine_,
                                    {.chunk_size_bytes = chunk_size})
                 .value();
  }

  // A record under the current epoch, as it lies in its segment.
  Bytes append_record(char content) {
    const Bytes plain(chunk_size, static_cast<Byte>(content));
    const fs::SealRequest request = {
        .name = {.inode = fs::InodeNumber{7}, .chunk = fs::ChunkIndex{next_chunk_++}},
        .plain = plain};
    const auto sealed = store_->append(std::span(&request, 1));
    EXPECT_TRUE(sealed);
    const fs::RecordLocation at = sealed->records.front().location;
    const auto file =
        directory_->open(fs::segment_path(at.segment), metadata::OpenMode::read).value();
    Bytes record(at.stored_size);
    EXPECT_EQ(file->read(at.offset, record).value(), record.size());
    return record;
  }
  void begin_epoch() {
    keys_->begin_rotation(SecretBytes(Bytes(32, 10)),
                          {.number = 2, .key = SecretBytes(Bytes(32, 8))}, {});
    NACRE_ASSERT_OK(store_->begin_epoch());
  }
  Result<std::optional<fs::SealedBatch>> append_sealed(const std::vector<ByteView>& records) {
    return store_->append_sealed(records, 0, fs::PageCache::used);
  }
  static std::uint32_t epoch_of(ByteView record) {
    return engine::parse_record_header(record).value().epoch;
  }

  static constexpr std::uint32_t chunk_size = 16u << 10;
  const std::shared_ptr<MemoryBacking> directory_ = MemoryBacking::create();
  const std::shared_ptr<metadata::KeyTree> keys_ = test_keys();
  const std::unique_ptr<engine::Engine> engine_ =
      engine::Engine::create({.choice = engine::EngineChoice::cpu, .thread_count = 1}).value();
  std::unique_ptr<metadata::Database> database_;
  std::unique_ptr<fs::SegmentStore> store_;
  std::uint64_t next_chunk_ = 0;
};

TEST_F(StoreMoves, append_no_records_of_two_epochs_together) {
  const Bytes old_record = append_record('a');
  begin_epoch();
  const Bytes new_record = append_record('b');
  ASSERT_EQ(epoch_of(old_record), 1u);
  ASSERT_EQ(epoch_of(new_record), 2u);
  EXPECT_EQ(error_of(append_sealed({old_record, new_record})), ErrorCode::invalid_argument);
  EXPECT_EQ(error_of(append_sealed({new_record, old_record})), ErrorCode::invalid_argument);
  EXPECT_EQ(error_of(append_sealed({new_record, new_record, old_record})),
            ErrorCode::invalid_argument);
  // All records are of an epoch that has ended, so they must be prepared once more.
  const auto late = append_sealed({old_record});
  NACRE_ASSERT_OK(late);
  EXPECT_FALSE(*late);

  // Once prepared, all are of one epoch. Nothing was written when they were refused.
  const std::vector<ByteView> both = {old_record, new_record};
  const fs::PreparedMove prepared = store_->prepare_move(both);
  for (const ByteView record : prepared.records)
    EXPECT_EQ(epoch_of(record), 2u);
  const std::uint64_t moved_before = store_->stats().moved_records;
  const auto appended = append_sealed(prepared.records);
  NACRE_ASSERT_OK(appended);
  ASSERT_TRUE(*appended);
  EXPECT_EQ(moved_before, 0u);
  EXPECT_EQ(store_->stats().moved_records, 2u);
  ASSERT_EQ((*appended)->records.size(), 2u);
  const fs::RecordLocation first = (*appended)->records[0].location;
  const fs::RecordLocation second = (*appended)->records[1].location;
  EXPECT_EQ(first.offset, metadata::segment_header_size_bytes);
  EXPECT_EQ(second.offset, first.offset + first.stored_size);
  for (std::uint64_t chunk = 0; chunk < 2; ++chunk) {
    Bytes back(chunk_size);
    fs::ReadRequest read = {.location = (*appended)->records[chunk].location,
                            .name = *prepared.names[chunk],
                            .out = back};
    store_->read(std::span(&read, 1));
    NACRE_EXPECT_OK(read.result);
    EXPECT_TRUE(back == Bytes(chunk_size, static_cast<Byte>('a' + chunk)));
  }
}

}  // namespace
}  // namespace nacre::tests
