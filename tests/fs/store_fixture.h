// SPDX-License-Identifier: Apache-2.0
// A store with a few files and nothing above it: database, segments, committer and file cache over
// a directory in memory. Inode rows hold sizes only; the volume's own rules are tested with the
// volume.
#pragma once

#include <map>
#include <memory>
#include <set>

#include <gtest/gtest.h>

#include "fs/cache/file_cache.h"
#include "fs/store/committer.h"
#include "fs/store/segment_store.h"
#include "gpu_engine/engine.h"
#include "gpu_engine/kdf/kdf.h"
#include "metadata/format/rows.h"
#include "metadata/keys/keys.h"
#include "metadata/tables/database.h"
#include "tests/support/format_under_test.h"
#include "tests/support/memory_backing.h"

namespace nacre::tests {

#define NACRE_ASSERT_OK(expression)                                             \
  do {                                                                          \
    const auto& nacre_outcome = (expression);                                   \
    ASSERT_TRUE(nacre_outcome) << to_string(nacre_outcome.error().code) << ": " \
                               << nacre_outcome.error().message;                \
  } while (false)
#define NACRE_EXPECT_OK(expression)                                             \
  do {                                                                          \
    const auto& nacre_outcome = (expression);                                   \
    EXPECT_TRUE(nacre_outcome) << to_string(nacre_outcome.error().code) << ": " \
                               << nacre_outcome.error().message;                \
  } while (false)

inline std::shared_ptr<metadata::KeyTree> test_keys() {
  std::vector<metadata::EpochKey> epochs;
  epochs.push_back(metadata::EpochKey{
      .number = 1, .key = SecretBytes(Bytes(32, 7)), .format = format_under_test()});
  return std::make_shared<metadata::KeyTree>(engine::VolumeId{1, 2, 3}, SecretBytes(Bytes(32, 9)),
                                             std::move(epochs));
}

struct StoreOptions {
  fs::SegmentStoreOptions segments = {.segment_size_bytes = 1u << 20,
                                      .chunk_size_bytes = 16u << 10};
  fs::FileCacheOptions cache;
  std::uint32_t inline_commit_bytes_max = 32u << 10;
  std::uint32_t commit_interval_ms = 3'600'000;  // tests commit when they want to
  bool threads = false;
  engine::Engine* engine = nullptr;  // borrowed; none: the cpu's
};

class TestStore final : public fs::CommitSource, public fs::DurableObserver {
 public:
  // Rows of an empty volume.
  static Result<> format(const std::shared_ptr<metadata::BackingDirectory>& directory) {
    NACRE_TRY(directory->make_directory("db"));
    NACRE_TRY(directory->make_directory("segments"));
    NACRE_ASSIGN(auto database, metadata::Database::open(directory, test_keys(), {.create = true}));
    using metadata::Table;
    for (const auto key : {metadata::system_key_next_segment, metadata::system_key_next_session}) {
      database->put(Table::system, key, metadata::encode_u64(1));
    }
    database->freeze();
    NACRE_TRY(database->commit_frozen(true));
    return database->close();
  }

  static Result<std::unique_ptr<TestStore>> open(
      std::shared_ptr<metadata::BackingDirectory> directory, const StoreOptions& options = {}) {
    auto self = std::make_unique<TestStore>();
    self->options_ = options;
    if (options.engine == nullptr) {
      NACRE_ASSIGN(self->engine_, engine::Engine::create({.thread_count = 2}));
    }
    engine::Engine& engine = options.engine != nullptr ? *options.engine : *self->engine_;
    NACRE_ASSIGN(self->database_, metadata::Database::open(directory, test_keys(), {}));
    NACRE_ASSIGN(self->store_, fs::SegmentStore::open(directory, *self->database_, test_keys(),
                                                      engine, options.segments));
    self->committer_ = std::make_unique<fs::Committer>(
        *self->database_, *self->store_,
        fs::Committer::Options{.interval_ms = options.commit_interval_ms});
    self->cache_ =
        std::make_unique<fs::FileCache>(*self->database_, *self->store_, *self->committer_, *self,
                                        options.segments.chunk_size_bytes, options.cache);
    Result<> bad;
    NACRE_TRY(self->database_->scan(
        metadata::Table::inodes, "", "", [&](std::string_view key, std::string_view value) {
          const auto inode = metadata::decode_inode_key(key);
          const auto row = metadata::decode_inode_row(value);
          if (!inode || !row) {
            bad = fail(ErrorCode::corrupt, "a row");
            return false;
          }
          self->files_[*inode] =
              std::make_shared<fs::FileData>(*self->cache_, *inode, row->size, row->data_bytes);
          return true;
        }));
    NACRE_TRY(bad);
    self->committer_->start(*self);
    if (options.threads) self->cache_->start();
    return self;
  }

  ~TestStore() override {
    if (cache_) cache_->stop();
    if (committer_) committer_->abandon();
    files_.clear();
  }

  Result<> close() {
    cache_->stop();
    NACRE_TRY(committer_->stop());
    return database_->close();
  }

  fs::FileData& file(std::uint64_t number) {
    std::lock_guard lock(mutex_);
    auto& file = files_[fs::InodeNumber{number}];
    if (!file) {
      file = std::make_shared<fs::FileData>(*cache_, fs::InodeNumber{number}, 0, 0);
      changed_.insert(fs::InodeNumber{number});
    }
    return *file;
  }
  std::shared_ptr<fs::FileData> shared_file(std::uint64_t number) {
    return file(number).shared_from_this();
  }
  Result<> sync(std::uint64_t number) {
    file(number);
    NACRE_TRY(committer_->commit(fs::CommitScope{.inodes = {fs::InodeNumber{number}}}));
    std::lock_guard lock(mutex_);
    const auto failure = failures_.find(fs::InodeNumber{number});
    return failure == failures_.end() ? Result<>() : tl::unexpected(failure->second);
  }
  Result<> sync_all() { return committer_->commit(fs::CommitScope{.everything = true}); }

  // Expects every chunk below each file's durable size to be covered by exactly one row, and no row
  // to lie beyond. The segments' live counts must be the sums of the records that rows name.
  void check_map() {
    std::map<fs::InodeNumber, std::uint64_t> next;
    std::uint64_t live = 0;
    const std::uint32_t chunk_size = options_.segments.chunk_size_bytes;
    NACRE_EXPECT_OK(database_->scan(
        metadata::Table::chunks, "", "", [&](std::string_view key, std::string_view value) {
          const auto parts = metadata::decode_chunk_key(key);
          const auto row = metadata::decode_chunk_map_row(value);
          EXPECT_TRUE(parts && row);
          if (!parts || !row) return false;
          EXPECT_EQ(next[parts->inode], parts->index.value) << "a gap or an overlap";
          next[parts->inode] = parts->index.value + (row->hole   ? row->hole->chunk_count
                                                     : row->lost ? row->lost->chunk_count
                                                                 : 1);
          if (row->chunk) {
            if (row->chunk->base) live += row->chunk->base->location.stored_size;
            for (const auto& patch : row->chunk->patches) {
              if (patch.location) live += patch.location->stored_size;
            }
            EXPECT_LE(fs::content_end(*row->chunk), chunk_size);
          }
          return true;
        }));
    for (const auto& [inode, file] : files_) {
      EXPECT_EQ(next[inode], (file->durable_size() + chunk_size - 1) / chunk_size)
          << "inode " << inode.value;
      next.erase(inode);
    }
    EXPECT_TRUE(next.empty()) << "rows of files that are not there";
    EXPECT_EQ(store_->stats().live_bytes, live);
    check_layers();
  }

  void check_layers() {
    NACRE_EXPECT_OK(database_->scan(metadata::Table::chunks, "", "",
                                    [&](std::string_view, std::string_view value) {
                                      const auto row = metadata::decode_chunk_map_row(value);
                                      EXPECT_TRUE(row);
                                      if (row && row->chunk) expect_layers_in_order(*row->chunk);
                                      return true;
                                    }));
  }
  // If two records overlap, the upper one must have the higher version: a salvage without rows has
  // only versions to tell it which one is newer.
  static void expect_layers_in_order(const metadata::ChunkRow& row) {
    for (auto on_top = row.patches.begin(); on_top != row.patches.end(); ++on_top) {
      if (row.base && row.base->plain_size > on_top->offset) {
        EXPECT_LT(row.base->version, on_top->version);
      }
      for (auto below = row.patches.begin(); below != on_top; ++below) {
        const bool overlaps = below->offset < on_top->offset + on_top->plain_size &&
                              on_top->offset < below->offset + below->plain_size;
        if (overlaps) {
          EXPECT_LT(below->version, on_top->version) << on_top->offset;
        }
      }
    }
  }

  fs::FileCache& cache() { return *cache_; }
  fs::SegmentStore& segments() { return *store_; }
  fs::Committer& committer() { return *committer_; }
  metadata::Database& database() { return *database_; }

  // CommitSource and DurableObserver.
  Result<> flush(const fs::CommitScope& scope) override {
    fs::FileFailures failures;
    const auto flushed = cache_->flush(scope, options_.inline_commit_bytes_max, failures);
    std::lock_guard lock(mutex_);
    failures_ = std::move(failures);
    return flushed;
  }
  Result<> stage() override {
    std::lock_guard lock(mutex_);
    for (const fs::InodeNumber inode : std::exchange(changed_, {})) {
      const auto& file = files_.at(inode);
      database_->put(metadata::Table::inodes, metadata::inode_key(inode),
                     metadata::encode(metadata::InodeRow{
                         .size = file->durable_size(), .data_bytes = file->durable_data_bytes()}));
    }
    return {};
  }
  std::set<fs::InodeNumber> unflushed_moves() override {
    std::set<fs::InodeNumber> dirty;
    std::lock_guard lock(mutex_);
    for (const fs::InodeNumber inode : moved_) {
      if (cache_->is_dirty(inode)) dirty.insert(inode);
    }
    if (dirty.empty()) moved_.clear();
    return dirty;
  }
  std::uint64_t flushed_bytes() const override { return cache_->flushed_bytes(); }
  void durable_state_changed(fs::InodeNumber inode) override {
    std::lock_guard lock(mutex_);
    changed_.insert(inode);
  }
  void note_move(std::uint64_t number) {
    std::lock_guard lock(mutex_);
    moved_.insert(fs::InodeNumber{number});
  }

 private:
  StoreOptions options_;
  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<metadata::Database> database_;
  std::unique_ptr<fs::SegmentStore> store_;
  std::unique_ptr<fs::Committer> committer_;
  std::unique_ptr<fs::FileCache> cache_;
  std::mutex mutex_;  // guards what follows
  std::map<fs::InodeNumber, std::shared_ptr<fs::FileData>> files_;
  std::set<fs::InodeNumber> changed_;
  fs::FileFailures failures_;  // of the last flush
  std::set<fs::InodeNumber> moved_;
};

}  // namespace nacre::tests
