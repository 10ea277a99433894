// SPDX-License-Identifier: Apache-2.0
// A wrong state in the store or the cache ends the process before it becomes wrong data. Each test
// here makes one state wrong, and expects the message of its check.
#include <csignal>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "fs/cache/whole_chunk.h"
#include "fs/store/backup_holds.h"
#include "fs/store/ballast.h"
#include "fs/store/plain_memory.h"
#include "fs/store/segment_table.h"
#include "tests/fs/store_fixture.h"

namespace nacre::tests {
namespace {

#define EXPECT_STOPS(statement, words) \
  EXPECT_EXIT(statement, testing::KilledBySignal(SIGABRT), "an internal check failed at .*" words)

constexpr std::uint32_t checked_chunk_size = 16u << 10;  // StoreOptions
constexpr std::uint32_t stored_size = 100;

// Runs the cpu's engine. If told to lie, it says that each record is longer than its room.
class LyingEngine final : public engine::Engine {
 public:
  Result<engine::Arena> allocate(std::size_t size_bytes) override {
    return engine_->allocate(size_bytes);
  }
  std::uint64_t payload_size_bytes() const override { return engine_->payload_size_bytes(); }
  void run(engine::Payload& payload) override {
    engine_->run(payload);
    if (!lies) return;
    for (std::size_t i = 0; i < payload.results.size(); ++i)
      payload.results[i].output_size = payload.messages[i].output_capacity + 1;
  }
  void submit(engine::Payload& payload, std::function<void()> done) override {
    run(payload);
    done();
  }
  Result<double> measure_resident(engine::Payload& payload, unsigned repetitions) override {
    return engine_->measure_resident(payload, repetitions);
  }
  Result<engine::DeviceCeilings> measure_ceilings() override { return engine_->measure_ceilings(); }
  engine::EngineStats stats() const override { return engine_->stats(); }
  std::string backend_name() const override { return engine_->backend_name(); }

  bool lies = false;

 private:
  const std::unique_ptr<engine::Engine> engine_ =
      engine::Engine::create({.choice = engine::EngineChoice::cpu, .thread_count = 1}).value();
};

// Threads of an engine and of a database are there, so each test is run in a process of its own.
class ChecksDeathTest : public ::testing::Test {
 protected:
  void SetUp() override {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    NACRE_ASSERT_OK(TestStore::format(directory_));
  }
  void open_table() {
    database_ = metadata::Database::open(directory_, test_keys(), {}).value();
    table_ = std::make_unique<fs::SegmentTable>(directory_, *database_);
    NACRE_ASSERT_OK(table_->recover(test_keys()->volume_id(), false));
    segment_ = table_->create(test_keys()->volume_id(), 1, {}).value();
  }
  metadata::RecordLocation record() const {
    return {segment_->number, metadata::segment_header_size_bytes, stored_size};
  }
  // Like an append that forgets to note the size that it has written.
  void grow_segment() {
    segment_->size += stored_size;
    segment_->changed = true;
  }
  void open_store(engine::Engine* engine = nullptr) {
    store_ = TestStore::open(directory_, {.engine = engine}).value();
  }

  const std::shared_ptr<MemoryBacking> directory_ = MemoryBacking::create();
  std::unique_ptr<metadata::Database> database_;
  std::unique_ptr<fs::SegmentTable> table_;
  fs::SharedSegment segment_;
  LyingEngine engine_;
  std::unique_ptr<TestStore> store_;
};

TEST_F(ChecksDeathTest, a_live_count_below_zero) {
  open_table();
  table_->add_live(record(), +1);
  table_->add_live(record(), -1);
  EXPECT_STOPS(table_->add_live(record(), -1), "segment 1 has -100 live bytes");
}

TEST_F(ChecksDeathTest, a_row_that_is_to_name_a_record_of_no_segment) {
  open_table();
  const metadata::RecordLocation gone{{99}, 64, stored_size};
  table_->add_live(gone, -1);  // a row of a damaged volume may have named it
  EXPECT_STOPS(table_->add_live(gone, +1), "a record in segment 99, which is gone");
}

TEST_F(ChecksDeathTest, a_committed_size_that_shrinks) {
  open_table();
  table_->stage();
  NACRE_ASSERT_OK(table_->sync());
  segment_->size = 10;
  segment_->changed = true;
  EXPECT_STOPS(table_->stage(), "segment 1 shrank from 64 to 10 bytes");
}

TEST_F(ChecksDeathTest, rows_whose_segments_are_not_synced) {
  open_table();
  table_->stage();
  EXPECT_STOPS(table_->committed(), "committed before the segments that they name were synced");
  NACRE_ASSERT_OK(table_->sync());
  table_->committed();
}

TEST_F(ChecksDeathTest, a_segment_that_is_synced_up_to_less_than_its_row_says) {
  open_table();
  table_->stage();
  NACRE_ASSERT_OK(table_->sync());
  table_->committed();
  grow_segment();
  table_->stage();
  EXPECT_STOPS(static_cast<void>(table_->sync()),
               "segment 1: 164 bytes are about to be committed, 64 are synced");
}

TEST_F(ChecksDeathTest, a_record_that_leaves_its_room) {
  open_store(&engine_);
  const Bytes plain(1000, 'x');
  const fs::SealRequest request{{.inode = fs::InodeNumber{7}}, plain};
  NACRE_ASSERT_OK(store_->segments().append(std::span(&request, 1)));
  engine_.lies = true;
  EXPECT_STOPS(static_cast<void>(store_->segments().append(std::span(&request, 1))),
               "a record of [0-9]+ bytes was sealed where [0-9]+ have room");
}

TEST_F(ChecksDeathTest, a_block_that_is_given_back_twice) {
  fs::PlainMemory memory(engine_, checked_chunk_size);
  Byte* const first = memory.take();
  Byte* const second = memory.take();
  EXPECT_STOPS(memory.give_back(second + 1), "begins 16385 bytes into a slab");
  EXPECT_TRUE(memory.give_back(second));
  EXPECT_STOPS(memory.give_back(second), "block 1 of a slab is given back twice");
  EXPECT_TRUE(memory.give_back(first));
}

TEST_F(ChecksDeathTest, a_backup_that_ends_twice) {
  fs::BackupHolds holds([] {});
  NACRE_ASSERT_OK(holds.enter());
  holds.leave();
  EXPECT_STOPS(holds.leave(), "a backup ended that never began");
}

TEST_F(ChecksDeathTest, bytes_that_are_taken_back_from_less_than_were_admitted) {
  std::atomic<std::uint64_t> admitted{0};
  fs::Ballast::Admission admission(admitted, 100);
  EXPECT_STOPS(
      {
        admitted = 99;
        admission = fs::Ballast::Admission();
      },
      "100 bytes of 99 that were admitted are taken back");
}

TEST_F(ChecksDeathTest, dirty_bytes_below_zero) {
  open_store();
  NACRE_ASSERT_OK(store_->file(2).write(0, Bytes(5, 'a')));
  EXPECT_EQ(store_->cache().dirty_bytes(), 5u);
  EXPECT_STOPS(store_->cache().change_dirty_bytes(-6, 0),
               "-1 bytes are dirty, after a change by -6");
}

TEST_F(ChecksDeathTest, a_load_that_ends_twice) {
  fs::ChunkCache cache(1u << 20);
  const fs::ChunkCache::Key key{.inode = fs::InodeNumber{2}, .index = {5}, .content = {}};
  const auto load = cache.claim_ahead(key);
  cache.finish(key, load, fail(ErrorCode::io), {});
  EXPECT_STOPS(cache.finish(key, load, fail(ErrorCode::io), {}),
               "a load of chunk 5 of inode 2 ends that nobody has claimed");
}

// A cached chunk is what its row says.
TEST_F(ChecksDeathTest, a_cached_chunk_of_another_size_than_its_row_has) {
  open_store();
  fs::FileData& file = store_->file(2);
  NACRE_ASSERT_OK(file.write(0, Bytes(1000, 'a')));
  NACRE_ASSERT_OK(store_->sync_all());
  const auto mapped = file.mapped_chunk(fs::ChunkIndex{0}).value();
  const fs::ChunkCache::Key key{
      .inode = file.inode(), .index = {}, .content = fs::ContentId(mapped->row)};
  auto& chunks = store_->cache().chunks();
  const auto shorter = std::make_shared<fs::ChunkContent>();
  shorter->resize(999);
  chunks.finish(key, chunks.claim_ahead(key), fs::SharedContent(shorter), {});
  Bytes out(1000);
  EXPECT_STOPS(static_cast<void>(file.read(0, out)), "a chunk of 1000 bytes has 999");
}

TEST_F(ChecksDeathTest, a_row_that_counts_more_bytes_than_there_are) {
  open_store();
  const metadata::ChunkRow row{.base = metadata::ChunkBase{.plain_size = 10, .valid_size = 11}};
  EXPECT_STOPS(
      static_cast<void>(store_->cache().map().set_chunk({2}, fs::ChunkIndex{0}, row, true)),
      "a row has 11 of a base's 10 bytes");
}

TEST_F(ChecksDeathTest, a_row_that_names_fewer_records_than_it_has_places) {
  open_store();
  const fs::SealedRecord record;
  metadata::ChunkRow row{.base = {}, .patches = std::vector<metadata::ChunkPatch>(2)};
  EXPECT_STOPS(fs::name_records(row, store_->file(2), std::span(&record, 1)),
               "1 records are named in a row for 2 patches");
}

}  // namespace
}  // namespace nacre::tests
