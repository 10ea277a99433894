// SPDX-License-Identifier: Apache-2.0
// A volume that counts what each operation asks of its tables and of its disk. Nothing runs in the
// background, nothing is compressed, and commits come when a test wants one, so the counts are
// exact.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "tests/fs/volume_fixture.h"
#include "tests/support/counted_backing.h"
#include "tests/support/counted_database.h"

namespace nacre::tests {

class VolumeCounts : public VolumeTest {
 protected:
  static constexpr std::uint32_t chunk_size = 16u << 10;

  void SetUp() override {
    options_.background_compaction = false;
    options_.checkpoints.interval_ms = 0;
    options_.read_ahead_bytes_max = 0;
    options_.cache_budget_bytes = 64u << 20;  // what a reader has taken whole stays, too
    options_.store.codec = engine::Codec::none;
    VolumeTest::SetUp();
    commit();
  }

  Result<OpenVolume> open(std::uint64_t keyring_generation = 1) override {
    const auto directory = std::make_shared<CountedBacking>(backing_, disk_);
    NACRE_ASSIGN(auto below, metadata::Database::open(directory, test_keys(), {}));
    NACRE_ASSIGN(auto engine, engine::Engine::create({.thread_count = 2}));
    return fs::Mounted::open_over(directory,
                                  std::make_unique<CountedDatabase>(std::move(below), tables_),
                                  test_keys(), keyring_generation, std::move(engine), options_);
  }
  // Drops everything about files from memory, so that it is only on disk.
  void forget_all() {
    remount();
    commit();
  }
  void commit() { NACRE_EXPECT_OK(volume().sync_all()); }

  // Expects the operation to make exactly these requests. Afterwards bytes_ has its bytes.
  void expect(std::string_view operation, const OperationCounts& expected,
              const std::function<void()>& act) {
    const OperationCounts counts_before = counts();
    const ByteCounts bytes_before = bytes();
    act();
    EXPECT_EQ(counts() - counts_before, expected) << "counted for: " << operation;
    bytes_ = bytes() - bytes_before;
  }
  void expect_nothing(std::string_view operation, const std::function<void()>& act) {
    expect(operation, {}, act);
  }
  // Expects these counts of the commit that makes the changes durable.
  void expect_commit(std::string_view operation, const OperationCounts& expected) {
    expect(operation, expected, [this] { commit(); });
  }
  // The counts of a commit that writes only rows: one write to the log, and one flush of the disk.
  static OperationCounts rows_only(std::uint64_t puts, std::uint64_t rows) {
    return {.puts = puts, .batches = 1, .batch_rows = rows, .database_writes = 1, .syncs = 1};
  }

  OperationCounts counts() {
    return {.gets = tables_->gets,
            .many_gets = tables_->many_gets,
            .iterators = tables_->iterators,
            .rows_read = mounted().stats().database.row_reads,
            .puts = tables_->puts,
            .erases = tables_->erases,
            .batches = tables_->batches,
            .batch_rows = tables_->batch_rows,
            .segment_reads = disk_->segments.reads,
            .segment_writes = disk_->segments.writes,
            .database_writes = disk_->database.writes,
            .syncs = disk_->syncs,
            .folder_syncs = disk_->folder_syncs};
  }
  ByteCounts bytes() const {
    return {.segment_read = disk_->segments.bytes_read,
            .segment_written = disk_->segments.bytes_written,
            .database_written = disk_->database.bytes_written};
  }

  const std::shared_ptr<TableCounters> tables_ = std::make_shared<TableCounters>();
  const std::shared_ptr<DiskCounters> disk_ = std::make_shared<DiskCounters>();
  ByteCounts bytes_;
};

}  // namespace nacre::tests
