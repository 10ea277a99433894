// SPDX-License-Identifier: Apache-2.0
// The disk is full while RocksDB compacts tables on a thread of its own. Nothing waits for ever,
// and no row is lost.
#include <gtest/gtest.h>
#include <rocksdb/env.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <future>
#include <optional>
#include <random>
#include <thread>

#include "tests/metadata/database_fixture.h"
#include "tests/support/patience.h"

namespace nacre::tests {
namespace {

using metadata::Table;
using Priority = rocksdb::Env::Priority;

// Holds up RocksDB's threads of one priority while it exists.
class HeldThread {
 public:
  explicit HeldThread(Priority priority) {
    rocksdb::Env::Default()->Schedule(&HeldThread::run, this, priority);
    reached_.get_future().wait();
  }
  ~HeldThread() {
    go_on_.set_value();
    left_.get_future().wait();
  }
  HeldThread(const HeldThread&) = delete;
  HeldThread& operator=(const HeldThread&) = delete;

 private:
  static void run(void* self) {
    auto& held = *static_cast<HeldThread*>(self);
    held.reached_.set_value();
    held.go_on_.get_future().wait();
    held.left_.set_value();
  }
  std::promise<void> reached_, go_on_, left_;
};

class DatabaseCompaction : public ::testing::Test {
 protected:
  void SetUp() override {
    database_ = create_database(backing_);
    ASSERT_NE(database_, nullptr);
  }

  // Commits a group of 64 KiB that do not compress. Returns false if the group still waits to be
  // committed.
  bool write_some() {
    for (int i = 0; i < 64; i++) {
      std::string value(1024, '\0');
      for (char& c : value)
        c = static_cast<char>(random_());
      database_->put(Table::inodes, std::to_string(row_count_++), std::move(value));
    }
    return commit(*database_);
  }

  // The first attempts may still meet the full disk, and may need more room than is left.
  bool commits_at_last() {
    for (int i = 0; i < 3; i++) {
      if (commit(*database_)) return true;
    }
    backing_->set_capacity(UINT64_MAX);
    return commit(*database_) || commit(*database_);
  }

  // Four tables make a compaction, which stops at its first write to such a file.
  void stop_compaction_at(const std::string& path_part) {
    auto compaction = std::make_optional<HeldThread>(Priority::LOW);
    while (files_ending(*backing_, ".sst").size() < 4)
      ASSERT_TRUE(write_some());
    auto reached = at_write_.get_future();
    backing_->watch([this, path_part](std::uint32_t operation, std::string_view path) {
      if (operation != change_write || path.find(path_part) == path.npos || stopped_.exchange(true))
        return;
      at_write_.set_value();
      go_on_.get_future().wait();
    });
    compaction.reset();
    reached.wait();
  }
  void let_compaction_go_on() { go_on_.set_value(); }

  // Expects all calls to go on, also while earlier threads still run.
  void expect_all_goes_on(std::future<void>& before) {
    auto after = std::async(std::launch::async, [&] {
      before.wait();
      // The first group may still meet the full disk, and is then written by a later commit.
      write_some();
      if (!write_some() || !commit(*database_)) return std::string("no group is written");
      const auto closed = database_->close();
      return closed ? std::string() : closed.error().message;
    });
    if (after.wait_for(patience) != std::future_status::ready) {
      std::fprintf(stderr, "the database waits for ever\n");
      std::_Exit(1);  // there is no way to end those threads
    }
    EXPECT_EQ(after.get(), "");
    const auto again = open_database(backing_->power_loss(0), small_options());
    ASSERT_NE(again, nullptr);
    for (int i = 0; i < row_count_; i++)
      ASSERT_TRUE(again->get(Table::inodes, std::to_string(i)).value()) << i;
  }

  // Leaves room on the disk for more than a write buffer.
  void leave_room() {
    std::uint64_t stored = 0;
    for (const std::string& path : backing_->files())
      stored += backing_->file_size(path).value_or(0);
    backing_->set_capacity(stored + (3u << 19));
  }

  // work returns true, and does not wait for ever.
  static void expect_in_time(const std::function<bool()>& work) {
    auto done = std::async(std::launch::async, work);
    if (done.wait_for(patience) != std::future_status::ready) {
      std::fprintf(stderr, "a commit waits for ever\n");
      std::_Exit(1);
    }
    EXPECT_TRUE(done.get());
  }

  const std::shared_ptr<MemoryBacking> backing_ = MemoryBacking::create();
  std::unique_ptr<metadata::Database> database_;
  int row_count_ = 0;

 private:
  std::mt19937 random_{1};
  std::atomic<bool> stopped_{false};
  std::promise<void> at_write_, go_on_;
};

// Between the moment at which a flush is asked for and the one at which it begins, a compaction
// cannot write the manifest: RocksDB loses such a flush, and a thread that resumed RocksDB waited
// for that flush for ever.
TEST_F(DatabaseCompaction, that_meets_a_full_disk_beside_a_flush_loses_no_flush) {
  stop_compaction_at("MANIFEST");
  auto flush = std::make_optional<HeldThread>(Priority::HIGH);
  backing_->inject(
      {.operations = change_write, .path_part = "MANIFEST", .code = ErrorCode::no_space});
  auto written = std::async(std::launch::async, [&] {
    for (int i = 0; i < 100; i++) {
      if (!write_some()) return;
    }
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  let_compaction_go_on();
  written.wait_for(std::chrono::milliseconds(500));
  flush.reset();
  { const HeldThread idle(Priority::HIGH); }
  backing_->clear_failures();
  expect_all_goes_on(written);
}

// Deletes must come through on a disk that has room for flushes and never for a compaction.
TEST_F(DatabaseCompaction, that_never_fits_holds_up_no_commit) {
  expect_in_time([this] {
    for (int i = 0; i < 2000 && files_ending(*backing_, ".sst").size() <= 40; i++) {
      leave_room();
      if (!write_some()) return false;
    }
    return true;
  });
  EXPECT_GT(files_ending(*backing_, ".sst").size(), 40u) << "a compaction has run all the same";
}

// RocksDB never forgets that an error has stopped it. When the log met a full disk afterwards, the
// write that followed resumed RocksDB, which waited for the end of a compaction that was tried
// again for ever. LMDB with a writable mapping on a full disk met it.
TEST_F(DatabaseCompaction, that_does_not_fit_holds_up_no_commit_after_a_full_log) {
  backing_->inject({.operations = change_write, .path_part = ".sst", .code = ErrorCode::no_space});
  for (int i = 0; i < 100 && write_some(); i++) {
  }
  backing_->clear_failures();
  ASSERT_TRUE(commits_at_last()) << "RocksDB was stopped, and goes on";
  expect_in_time([this] {
    int refused = 0;
    for (int i = 0; i < 1000 && refused < 20; i++) {
      leave_room();
      backing_->inject(
          {.operations = change_write, .path_part = ".log", .code = ErrorCode::no_space});
      if (!write_some()) ++refused;
      backing_->clear_failures();
      leave_room();
      if (!commits_at_last()) return false;
    }
    return refused == 20;
  });
}

}  // namespace
}  // namespace nacre::tests
