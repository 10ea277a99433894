// SPDX-License-Identifier: Apache-2.0
// RocksDB's column families, and how it is opened, written and closed.
#include "metadata/tables/rocksdb_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "metadata/sealed_fs/epoch_switch.h"
#include "metadata/sealed_fs/file_header.h"
#include "metadata/sealed_fs/recovery_check.h"
#include "metadata/sealed_fs/status.h"
#include "metadata/tables/rocksdb_options.h"

namespace nacre::metadata {
namespace {

constexpr std::string_view opening = "opening the database";
constexpr std::string_view writing = "writing a transaction group";
constexpr std::string_view flushing = "flushing the database";

rocksdb::Slice slice_of(std::string_view text) {
  return {text.data(), text.size()};
}

class NullLogger final : public rocksdb::Logger {
 public:
  using Logger::Logv;
  void Logv(const char*, va_list) override {}
};

// Checks what RocksDB would report only as text.
Result<void> check_presence(BackingDirectory& directory, const DatabaseOptions& options) {
  const std::string current = fmt::format("{}/CURRENT", database_folder);
  NACRE_ASSIGN(const bool exists, directory.exists(current));
  if (exists && options.create) {
    return fail(ErrorCode::exists,
                fmt::format("{}: there is a database already", directory.description()));
  }
  if (!exists && !options.create) {
    return fail(ErrorCode::missing, fmt::format("{}: the file is missing", current));
  }
  return {};
}

template <typename Unwanted>
Result<void> remove_where(BackingDirectory& directory, Unwanted is_unwanted) {
  NACRE_ASSIGN(const auto names, directory.list(database_folder));
  bool removed = false;
  for (const auto& name : names) {
    if (!is_unwanted(name)) continue;
    NACRE_TRY(directory.remove(fmt::format("{}/{}", database_folder, name)));
    removed = true;
  }
  return removed ? directory.sync_directory(database_folder) : Result<void>();
}
// Whether this is a file that RocksDB meant to rename and did not. RocksDB uses a new name each
// time and never looks at the old ones. They are removed before RocksDB opens, when no other code
// makes any, and the sync keeps their removal apart from the renames that follow.
bool is_unfinished(std::string_view name) {
  return name.ends_with(".dbtmp");
}

// What is kept free for rows on a full disk is a sixteenth of the disk, if that is less than 64 MiB
// (fs/store/ballast.h). The log and a flush of the rows in it must fit into that several times.
std::uint64_t fitting_buffer(std::uint64_t bytes, BackingDirectory& directory) {
  constexpr std::uint64_t least = 1u << 20;
  constexpr std::uint64_t share = 128;
  const auto space = directory.space();
  if (!space) return bytes;
  return std::min(bytes, std::max(least, space->total_bytes / share));
}

}  // namespace

Result<std::unique_ptr<RocksdbStore>> RocksdbStore::open(
    std::shared_ptr<BackingDirectory> directory, std::shared_ptr<const KeyTree> keys,
    const DatabaseOptions& options) {
  if (options.create && options.read_only) {
    return fail(ErrorCode::invalid_argument, "a database cannot be created for reading only");
  }
  if (options.create) {
    NACRE_TRY(directory->make_directory(database_folder));
    NACRE_TRY(directory->sync_directory(""));
  }
  NACRE_TRY(check_presence(*directory, options));
  std::unique_ptr<RocksdbStore> store(new RocksdbStore);
  store->directory_ = directory;
  store->keys_ = keys;
  store->file_system_ =
      std::make_shared<SealedFileSystem>(directory, keys, options.read_only, options.padding);
  bool has_arrived = false;
  if (!options.create) {
    NACRE_TRY(
        settle_epoch_switch(*directory, std::string(database_folder), *keys, options.read_only));
    NACRE_TRY(store->file_system_->recover(database_folder));
    NACRE_ASSIGN(has_arrived, has_arrived_log(*directory, database_folder, *keys));
    if (!options.read_only) NACRE_TRY(remove_where(*directory, is_unfinished));
  }
  // A compaction that does not fit would repeatedly take the room that flushes need.
  store->file_system_->refuse_tables_if([store = store.get()] {
    const auto bytes = BackgroundErrors::compacted_bytes();
    return bytes && !store->has_room(*bytes + store->write_buffer_bytes_);
  });
  store->background_ = std::make_shared<BackgroundErrors>([directory](const std::string& path) {
    const std::string name = path.substr(path.rfind('/') + 1);
    return directory->file_size(fmt::format("{}/{}", database_folder, name)).value_or(0);
  });
  store->env_ = rocksdb::NewCompositeEnv(store->file_system_);

  rocksdb::DBOptions db_options = database_options(options, store->env_.get());
  db_options.listeners.push_back(store->background_);
  db_options.file_checksum_gen_factory = store->file_system_->table_salts();
  store->write_buffer_bytes_ = fitting_buffer(options.write_buffer_bytes, *directory);
  if (options.read_only) {
    db_options.info_log = std::make_shared<NullLogger>();
  } else {
    store->info_log_ = std::make_shared<InfoLog>(std::move(directory), keys,
                                                 std::string(database_folder), options.padding);
    db_options.info_log = store->info_log_;
  }
  const auto families = family_descriptors(options);
  const std::string path(database_folder);
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  rocksdb::DB* db = nullptr;
  const rocksdb::Status status =
      options.read_only ? rocksdb::DB::OpenForReadOnly(db_options, path, families, &handles, &db)
                        : rocksdb::DB::Open(db_options, path, families, &handles, &db);
  if (!status.ok()) return tl::unexpected<Error>(to_error(status, opening));
  store->db_.reset(db);
  store->default_family_ = handles[0];
  std::copy(handles.begin() + 1, handles.end(), store->families_.begin());
  if (!options.create && store->file_system_->logs_read() == 0 && !has_arrived) {
    return fail(ErrorCode::missing,
                "db: the write-ahead log is missing, and with it the last changes");
  }
  // This opening has made its log by now.
  if (!options.create && !options.read_only)
    NACRE_TRY(remove_where(*store->directory_, is_arriving_log));
  return store;
}

RocksdbStore::~RocksdbStore() {
  release_families();
}

void RocksdbStore::release_families() {
  if (db_ == nullptr || default_family_ == nullptr) return;
  for (auto*& handle : families_) {
    db_->DestroyColumnFamilyHandle(handle);
    handle = nullptr;
  }
  db_->DestroyColumnFamilyHandle(default_family_);
  default_family_ = nullptr;
}

std::uint64_t RocksdbStore::last_sequence() const {
  return db_->GetLatestSequenceNumber();
}

Result<std::optional<std::string>> RocksdbStore::get(Table table, std::string_view key) const {
  rocksdb::PinnableSlice value;
  const auto status = db_->Get(rocksdb::ReadOptions(), family(table), slice_of(key), &value);
  if (status.ok()) return std::optional<std::string>(value.ToString());
  if (status.IsNotFound()) return std::optional<std::string>();
  return tl::unexpected<Error>(to_error(status, fmt::format("reading {}", to_string(table))));
}

std::vector<Result<std::optional<std::string>>> RocksdbStore::get_many(
    Table table, std::span<const rocksdb::Slice> keys) const {
  std::vector<rocksdb::PinnableSlice> values(keys.size());
  std::vector<rocksdb::Status> statuses(keys.size());
  db_->MultiGet(rocksdb::ReadOptions(), family(table), keys.size(), keys.data(), values.data(),
                statuses.data(), /*sorted_input=*/true);
  std::vector<Result<std::optional<std::string>>> rows;
  rows.reserve(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (statuses[i].ok()) {
      rows.emplace_back(values[i].ToString());
    } else if (statuses[i].IsNotFound()) {
      rows.emplace_back(std::nullopt);
    } else {
      // If blocks that were read together fail, each key is read by itself.
      rows.push_back(get(table, keys[i].ToStringView()));
    }
  }
  return rows;
}

std::unique_ptr<rocksdb::Iterator> RocksdbStore::iterate(Table table, const rocksdb::Slice* lower,
                                                         const rocksdb::Slice* upper) const {
  rocksdb::ReadOptions options;
  options.iterate_lower_bound = lower;
  options.iterate_upper_bound = upper;
  return std::unique_ptr<rocksdb::Iterator>(db_->NewIterator(options, family(table)));
}

Result<void> RocksdbStore::try_write(rocksdb::WriteBatch& batch, bool sync, Retry retry) {
  if (needs_resume_) {
    const auto resumed = resume();
    if (!resumed.ok()) return tl::unexpected<Error>(to_error(resumed, writing));
    needs_resume_ = false;
  } else if (background_->met_no_space()) {
    resume_background();
  }
  const bool is_group = retry == Retry::same_batch;
  if (!is_group || !has_group_) {
    // The log may lack an earlier batch, which must be written first.
    if (log_owes_) NACRE_TRY(settle_log(sync));
    NACRE_TRY(flush_when_full());
    rocksdb::WriteOptions options;
    options.sync = sync;
    const auto status = db_->Write(options, &batch);
    if (!status.ok()) return tl::unexpected<Error>(to_error(status, writing));
    buffered_bytes_ += batch.GetDataSize();
    log_owes_ = true;
    if (is_group) has_group_ = true;
  }
  NACRE_TRY(settle_log(sync));
  if (is_group) has_group_ = false;
  return {};
}

Result<void> RocksdbStore::settle_log(bool sync) {
  NACRE_TRY(file_system_->settle_log(sync));
  log_owes_ = false;
  return {};
}

rocksdb::Status RocksdbStore::flush_families() {
  while (!background_->begin_flush()) {
    const auto resumed = resume();
    if (!resumed.ok()) return resumed;
  }
  rocksdb::FlushOptions options;
  options.wait = true;
  // Otherwise the flush would wait for a compaction that may be waiting for the flush.
  options.allow_write_stall = true;
  std::vector<rocksdb::ColumnFamilyHandle*> all(families_.begin(), families_.end());
  all.push_back(default_family_);
  const auto status = db_->Flush(options, all);
  background_->end_flush();
  if (status.ok()) buffered_bytes_ = 0;
  return status;
}

// The error that stops RocksDB may not have reached it yet, and a compaction that still runs may
// add another. Once RocksDB is stopped, it begins nothing. After a failed flush it rests for a
// second.
void RocksdbStore::wait_until_at_rest() const {
  using Properties = rocksdb::DB::Properties;
  for (const auto& property :
       {Properties::kNumRunningCompactions, Properties::kNumRunningFlushes}) {
    std::uint64_t count = 0;
    while (db_->GetIntProperty(property, &count) && count > 0)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

// RocksDB is asked only if it has an error to recover from: BackgroundErrors says why.
rocksdb::Status RocksdbStore::resume() {
  const LockGuard lock(rewriting_);
  if (!background_->has_error()) return rocksdb::Status::OK();
  bool waited = false;
  do {
    waited = background_->has_stopped();
    if (waited) wait_until_at_rest();
  } while (!background_->begin_resume(waited));
  const auto status = db_->Resume();
  background_->end_resume(status.ok());
  return status;
}

// A row takes about twice as much memory in a memtable as in a batch.
Result<void> RocksdbStore::flush_when_full() {
  if (buffered_bytes_ < write_buffer_bytes_ / 2) return {};
  const auto status = flush_families();
  if (!status.ok()) return tl::unexpected<Error>(to_error(status, flushing));
  return {};
}

bool RocksdbStore::has_room(std::uint64_t bytes) const {
  const auto space = directory_->space();
  return !space || space->available_bytes >= bytes;
}

// Resuming writes tables, so it waits for room. If it fails, the next write tries it again; this
// write then fails by itself if it needs the room.
void RocksdbStore::resume_background() {
  if (has_room(2 * write_buffer_bytes_)) resume().PermitUncheckedError();
}

Result<void> RocksdbStore::write(rocksdb::WriteBatch& batch, bool sync, Retry retry) {
  if (failure_) return tl::unexpected<Error>(*failure_);
  return note(try_write(batch, sync, retry));
}

Result<void> RocksdbStore::note(Result<void> result) {
  if (result) return result;
  if (result.error().code == ErrorCode::no_space) {
    needs_resume_ = true;
  } else {
    failure_ = result.error();
  }
  return result;
}

Result<void> RocksdbStore::flush() {
  if (failure_) return tl::unexpected<Error>(*failure_);
  return note([&]() -> Result<void> {
    if (needs_resume_) {
      const auto resumed = resume();
      if (!resumed.ok()) return tl::unexpected<Error>(to_error(resumed, flushing));
      needs_resume_ = false;
    }
    auto status = flush_families();
    // An earlier flush may have failed on a full disk that has room again.
    if (!status.ok() && resume().ok()) status = flush_families();
    if (!status.ok()) return tl::unexpected<Error>(to_error(status, flushing));
    return settle_log(true);
  }());
}

Result<void> RocksdbStore::close() {
  release_families();
  const auto status = db_->Close();
  if (!status.ok()) return tl::unexpected<Error>(to_error(status, "closing the database"));
  return {};
}

Result<std::set<std::string>> RocksdbStore::needed_files() const {
  std::vector<std::string> live;
  std::uint64_t manifest_size = 0;
  const auto status = db_->GetLiveFiles(live, &manifest_size, false);
  if (!status.ok()) return tl::unexpected<Error>(to_error(status, "listing the database's files"));
  std::set<std::string> needed = {"IDENTITY"};
  for (const auto& path : live) {
    needed.insert(path.substr(path.find_first_not_of('/')));
  }
  NACRE_ASSIGN(const auto names, directory_->list(database_folder));
  for (const auto& name : names) {
    if (parse_file_name(name).file_class == FileClass::log) needed.insert(name);
  }
  return needed;
}

// RocksDB 9 takes no argument, and does what false did before.
rocksdb::Status RocksdbStore::enable_file_deletions() {
  return [](auto& db) {
    if constexpr (requires { db.EnableFileDeletions(false); }) {
      return db.EnableFileDeletions(false);
    } else {
      return db.EnableFileDeletions();
    }
  }(*db_);
}

std::uint64_t RocksdbStore::table_file_bytes() const {
  std::uint64_t sum = 0;
  for (auto* handle : families_) {
    std::uint64_t value = 0;
    if (handle != nullptr &&
        db_->GetIntProperty(handle, rocksdb::DB::Properties::kTotalSstFilesSize, &value)) {
      sum += value;
    }
  }
  return sum;
}

}  // namespace nacre::metadata
