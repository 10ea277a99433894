// SPDX-License-Identifier: Apache-2.0
// RocksdbStore: seals all files anew under the current epoch. Logs are switched and flushed, tables
// are compacted one by one into new ones, and files that RocksDB never replaces are sealed anew in
// place.
#include <fmt/format.h>

#include <chrono>
#include <thread>

#include "metadata/sealed_fs/page_file.h"
#include "metadata/sealed_fs/reseal_files.h"
#include "metadata/sealed_fs/status.h"
#include "metadata/tables/rocksdb_store.h"

namespace nacre::metadata {
namespace {

constexpr std::string_view rewriting = "writing a table anew";
// A table may be part of a compaction that is under way.
constexpr int try_count_max = 2000;
constexpr std::chrono::milliseconds try_pause{5};
constexpr std::uint64_t table_size_bytes_max = 16u << 20;
// Rounds in which tables are sealed anew before a switch of epochs, and what is left to the switch.
constexpr int prepare_round_count = 4;
constexpr std::size_t few_tables = 2;
constexpr std::size_t check_piece_bytes = 256u << 10;

}  // namespace

// A log is switched only if it is not empty. No table uses the default family, so a tombstone in it
// changes nothing.
Result<void> RocksdbStore::begin_reseal() {
  rocksdb::WriteBatch batch;
  batch.Delete(default_family_, "rekeyed");
  NACRE_TRY(write(batch, true, Retry::never));
  NACRE_TRY(flush_everything());
  NACRE_ASSIGN(const auto log, file_system_->retire_logs());
  static_cast<void>(log);
  return {};
}

Result<void> RocksdbStore::switch_epoch(const KeyTree& next,
                                        const std::function<Result<void>()>& commit) {
  if (failure_) return tl::unexpected<Error>(*failure_);
  NACRE_TRY(flush_everything());
  NACRE_ASSIGN(const auto log, file_system_->retire_logs());
  static_cast<void>(log);
  const LockGuard lock(rewriting_);
  if (const auto paused = db_->PauseBackgroundWork(); !paused.ok()) {
    return tl::unexpected<Error>(to_error(paused, rewriting));
  }
  auto switched = [&]() -> Result<void> {
    NACRE_ASSIGN(auto needed, needed_files());
    return file_system_->switch_epoch(std::string(database_folder), needed, next, commit);
  }();
  const auto resumed = db_->ContinueBackgroundWork();
  NACRE_TRY(switched);
  if (!resumed.ok()) return tl::unexpected<Error>(to_error(resumed, rewriting));
  return {};
}

// Tables come and go meanwhile, so another round has those of the last round's time.
Result<void> RocksdbStore::prepare_switch(const KeyTree& next,
                                          const std::function<Result<void>()>& go_on) {
  for (int round = 0; round < prepare_round_count; ++round) {
    NACRE_ASSIGN(const auto needed, needed_files());
    NACRE_ASSIGN(const std::size_t made,
                 file_system_->prepare_switch(std::string(database_folder), needed, next, go_on));
    if (made <= few_tables) break;
  }
  return {};
}

Result<void> RocksdbStore::abandon_switch() {
  return file_system_->abandon_switch(std::string(database_folder));
}

// If a compaction met damage, RocksDB would refuse all writes; so the table is checked first.
Result<void> RocksdbStore::check_table(const std::string& path) const {
  NACRE_ASSIGN(const auto reader, PageReader::open(*directory_, path, *keys_));
  Bytes piece(check_piece_bytes);
  for (std::uint64_t at = 0; at < reader->size(); at += piece.size()) {
    NACRE_ASSIGN(const std::size_t got, reader->read(at, piece));
    static_cast<void>(got);
  }
  return {};
}

// One pass over the family's tables. The result counts those that are of an older epoch, or were a
// moment ago.
Result<RocksdbStore::RewritePass> RocksdbStore::rewrite_tables(
    rocksdb::ColumnFamilyHandle* family, const std::function<Result<void>()>& go_on) {
  rocksdb::ColumnFamilyMetaData all;
  db_->GetColumnFamilyMetaData(family, &all);
  RewritePass pass;
  rocksdb::CompactionOptions options;
  options.compression = rocksdb::kDisableCompressionOption;  // as in the family's options
  options.output_file_size_limit = table_size_bytes_max;
  for (const rocksdb::LevelMetaData& level : all.levels) {
    for (const rocksdb::SstFileMetaData& table : level.files) {
      const std::string path = std::string(database_folder) + table.name;
      const auto found = epoch_of_file(*directory_, path);
      // A compaction may have removed it in the meantime.
      if (!found && found.error().code == ErrorCode::not_found) continue;
      if (!found) return tl::unexpected(found.error());
      if (*found == keys_->current_epoch_number()) continue;
      NACRE_TRY(go_on());
      NACRE_TRY(check_table(path));
      const int level_to = level.level == 0 ? db_->NumberLevels(family) - 1 : level.level;
      const auto status = [&] {
        const LockGuard lock(rewriting_);
        return db_->CompactFiles(options, family, {table.name}, level_to);
      }();
      // These two mean that the table is part of another compaction, or was removed by one.
      if (!status.ok() && !status.IsAborted() && !status.IsInvalidArgument()) {
        return tl::unexpected<Error>(to_error(status, rewriting));
      }
      ++(status.ok() ? pass.rewritten : pass.busy);
    }
  }
  return pass;
}

// In format 2 every file that counts was sealed anew before the keyring. RocksDB removes tables,
// logs and manifests that it does not need, and small files it does not look at.
Result<void> RocksdbStore::remove_unneeded_small_files() {
  NACRE_ASSIGN(const EpochFormat format, keys_->epoch_format(keys_->current_epoch_number()));
  if (format == EpochFormat::one) return {};
  NACRE_ASSIGN(const auto paths, list_files_of_other_epochs(*directory_, database_folder,
                                                            keys_->current_epoch_number()));
  NACRE_ASSIGN(const auto needed, needed_files());
  for (const std::string& path : paths) {
    const std::string name = path.substr(path.rfind('/') + 1);
    const bool is_small = parse_file_name(name).file_class == FileClass::other;
    if (is_small && !needed.contains(name)) NACRE_TRY(directory_->remove(path));
  }
  return {};
}

Result<std::vector<std::string>> RocksdbStore::finish_reseal(
    const std::function<Result<void>()>& go_on) {
  std::vector<rocksdb::ColumnFamilyHandle*> all(families_.begin(), families_.end());
  all.push_back(default_family_);
  for (rocksdb::ColumnFamilyHandle* family : all) {
    for (int vain = 0;;) {
      NACRE_ASSIGN(const RewritePass pass, rewrite_tables(family, go_on));
      if (pass.rewritten + pass.busy == 0) break;
      vain = pass.rewritten > 0 ? 0 : vain + 1;
      if (vain == try_count_max) {
        return fail(ErrorCode::busy,
                    "the database had no time to write its tables anew: try again when fewer "
                    "programs write");
      }
      if (pass.busy > 0) std::this_thread::sleep_for(try_pause);
    }
  }
  // Makes RocksDB scan the folder. Only then does it delete logs of an earlier opening.
  auto looked = db_->DisableFileDeletions();
  if (looked.ok()) looked = enable_file_deletions();
  if (!looked.ok()) return tl::unexpected<Error>(to_error(looked, rewriting));
  NACRE_TRY(file_system_->reseal_files(std::string(database_folder)));
  NACRE_TRY(remove_unneeded_small_files());
  if (info_log_) NACRE_TRY(info_log_->reseal());
  NACRE_TRY(directory_->sync_directory(database_folder));
  return list_files_of_other_epochs(*directory_, database_folder, keys_->current_epoch_number());
}

}  // namespace nacre::metadata
