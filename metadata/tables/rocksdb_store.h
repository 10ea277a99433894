// SPDX-License-Identifier: Apache-2.0
// RocksDB as Nacre uses it: column families, opening, writing, closing. It lies below the overlay
// and above the sealed file system.
#pragma once

#include <rocksdb/db.h>
#include <rocksdb/env.h>

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpu_engine/base/mutex.h"
#include "metadata/sealed_fs/info_log.h"
#include "metadata/sealed_fs/sealed_file_system.h"
#include "metadata/tables/background_errors.h"
#include "metadata/tables/database.h"
#include "metadata/tables/database_snapshot.h"

namespace nacre::metadata {

inline constexpr std::string_view database_folder = "db";

class RocksdbStore {
 public:
  static Result<std::unique_ptr<RocksdbStore>> open(std::shared_ptr<BackingDirectory> directory,
                                                    std::shared_ptr<const KeyTree> keys,
                                                    const DatabaseOptions& options);
  ~RocksdbStore();  // closes files and flushes nothing, as a crash would

  // Thread-safe, as RocksDB is.
  Result<std::optional<std::string>> get(Table table, std::string_view key) const;
  std::vector<Result<std::optional<std::string>>> get_many(
      Table table, std::span<const rocksdb::Slice> keys) const;  // keys ascend
  // If upper is empty, there is no bound. The bounds must outlive the iterator.
  std::unique_ptr<rocksdb::Iterator> iterate(Table table, const rocksdb::Slice* lower,
                                             const rocksdb::Slice* upper) const;
  // What happens to a batch after no_space. same_batch is for the frozen group, of which there is
  // one at a time: it is written again until that succeeds, and RocksDB applies it once. With never
  // the batch is not repeated, but its rows may be found in the database later.
  enum class Retry : std::uint8_t { same_batch, never };
  // Writes a batch as a whole or not at all. Other batches may be written between the tries of a
  // group. Any error but no_space is final: all later writes get it.
  Result<void> write(rocksdb::WriteBatch& batch, bool sync, Retry retry);
  rocksdb::ColumnFamilyHandle* family(Table table) const {
    return families_[static_cast<std::size_t>(table)];
  }
  // Flushes all tables. All rows of the log are in table files afterwards.
  Result<void> flush();
  Result<void> close();
  // The number of the last change that RocksDB has. Each change of a row gets the next number.
  std::uint64_t last_sequence() const;
  std::uint64_t log_bytes() const { return file_system_->live_log_bytes(); }
  std::uint64_t table_file_bytes() const;
  Result<std::set<std::string>> needed_files() const;  // see Database
  // See Database. Called by the writing thread.
  Result<DatabaseSnapshot> snapshot();
  std::unique_ptr<CommittedView> committed_view() const;
  // See Database. Called by the writing thread.
  Result<void> switch_epoch(const KeyTree& next, const std::function<Result<void>()>& commit);
  // See Database. Any thread may call them, one at a time.
  Result<void> prepare_switch(const KeyTree& next, const std::function<Result<void>()>& go_on);
  Result<void> abandon_switch();
  // The two parts of Database::reseal(). The writing thread calls begin_reseal().
  Result<void> begin_reseal();
  Result<std::vector<std::string>> finish_reseal(const std::function<Result<void>()>& go_on);
  std::uint64_t held_bytes() const { return file_system_->shared_holds()->removed_bytes(); }

 private:
  RocksdbStore() = default;
  Result<void> try_write(rocksdb::WriteBatch& batch, bool sync, Retry retry);
  Result<void> settle_log(bool sync);
  Result<void> note(Result<void> result);
  void resume_background();
  // Called by the writing thread.
  rocksdb::Status flush_families();
  rocksdb::Status resume();
  void wait_until_at_rest() const;
  rocksdb::Status enable_file_deletions();
  bool has_room(std::uint64_t bytes) const;
  Result<void> flush_when_full();
  Result<std::optional<DatabaseSnapshot>> try_snapshot(const SealedFileSystem::LogMark& log);
  bool has_flushed_everything() const;
  Result<void> flush_everything();
  struct RewritePass {
    std::size_t rewritten = 0;
    std::size_t busy = 0;  // tables that could not be rewritten at this moment
  };
  Result<RewritePass> rewrite_tables(rocksdb::ColumnFamilyHandle* family,
                                     const std::function<Result<void>()>& go_on);
  Result<void> check_table(const std::string& path) const;
  Result<void> remove_unneeded_small_files();
  void release_families();

  std::shared_ptr<BackingDirectory> directory_;
  std::shared_ptr<const KeyTree> keys_;
  std::shared_ptr<SealedFileSystem> file_system_;
  std::unique_ptr<rocksdb::Env> env_;
  std::unique_ptr<rocksdb::DB> db_;
  std::array<rocksdb::ColumnFamilyHandle*, table_count> families_ = {};
  rocksdb::ColumnFamilyHandle* default_family_ = nullptr;  // RocksDB requires it; unused
  std::shared_ptr<InfoLog> info_log_;                      // null when read-only
  std::shared_ptr<BackgroundErrors> background_;
  Mutex rewriting_;  // held while reseal() compacts a table, and while RocksDB is resumed
  std::uint64_t write_buffer_bytes_ = 0;
  // Used by the writing thread only.
  std::uint64_t buffered_bytes_ = 0;  // bytes of batches that are in no table yet
  bool needs_resume_ = false;         // RocksDB was stopped by no_space
  bool log_owes_ = false;             // RocksDB has a batch that its log may not have yet
  bool has_group_ = false;            // RocksDB has applied the group that is to be written again
  std::optional<Error> failure_;
};

}  // namespace nacre::metadata
