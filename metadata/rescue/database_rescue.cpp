// SPDX-License-Identifier: Apache-2.0
#include "metadata/rescue/database_rescue.h"

#include <algorithm>
#include <array>
#include <map>
#include <queue>
#include <set>

#include <fmt/format.h>
#include <rocksdb/write_batch.h>

#include "metadata/rescue/log_rescue.h"
#include "metadata/rescue/manifest_edits.h"
#include "metadata/rescue/row_cursor.h"
#include "metadata/rescue/table_rescue.h"
#include "metadata/rescue/unnamed_tables.h"
#include "metadata/sealed_fs/file_header.h"
#include "metadata/sealed_fs/frame_file.h"
#include "metadata/sealed_fs/page_file.h"
#include "metadata/sealed_fs/recovery_check.h"
#include "metadata/tables/rocksdb_store.h"

namespace nacre::metadata {

namespace {

constexpr std::uint64_t any_sequence = UINT64_MAX;

std::string database_path_of(std::string_view name) {
  return fmt::format("{}/{}", database_folder, name);
}

std::optional<Table> table_named(std::string_view name) {
  for (std::size_t i = 0; i < table_count; ++i) {
    if (to_string(static_cast<Table>(i)) == name) return static_cast<Table>(i);
  }
  return std::nullopt;
}

// Families are made in the order of the tables, after RocksDB's own.
std::optional<Table> table_of_family(std::uint32_t family) {
  if (family == 0 || family > table_count) return std::nullopt;
  return static_cast<Table>(family - 1);
}

std::string key_behind(std::string key) {
  key.push_back('\0');
  return key;
}

struct Source {
  std::unique_ptr<TableRescue> file;
  std::optional<Table> table;
};

// The rows of a log's groups, by table.
class GroupRows final : public rocksdb::WriteBatch::Handler {
 public:
  explicit GroupRows(std::array<VersionedRows, table_count>& rows) : rows_(rows) {}
  void begin(std::uint64_t sequence) { sequence_ = sequence; }

  rocksdb::Status PutCF(std::uint32_t family, const rocksdb::Slice& key,
                        const rocksdb::Slice& value) override {
    return add(family, key, value.ToString());
  }
  rocksdb::Status DeleteCF(std::uint32_t family, const rocksdb::Slice& key) override {
    return add(family, key, std::nullopt);
  }
  void LogData(const rocksdb::Slice&) override {}

  std::map<std::uint32_t, std::uint64_t> first_logs;
  std::uint64_t log = 0;

 private:
  rocksdb::Status add(std::uint32_t family, const rocksdb::Slice& key,
                      std::optional<std::string> value) {
    const std::uint64_t sequence = sequence_++;
    const auto table = table_of_family(family);
    const auto first = first_logs.find(family);
    if (!table || (first != first_logs.end() && log < first->second)) return {};
    rows_[static_cast<std::size_t>(*table)].push_back(
        {.key = key.ToString(), .sequence = sequence, .value = std::move(value)});
    return {};
  }

  std::array<VersionedRows, table_count>& rows_;
  std::uint64_t sequence_ = 0;
};

class Rescue final : public DatabaseRescue {
 public:
  Rescue(std::shared_ptr<BackingDirectory> directory, std::shared_ptr<const KeyTree> keys)
      : directory_(std::move(directory)), keys_(std::move(keys)) {}

  Result<void> read() {
    NACRE_ASSIGN(names_, directory_->list(database_folder));
    const auto checked = check_before_recovery(*directory_, database_folder, *keys_, false);
    if (!checked) {
      if (checked.error().code == ErrorCode::out_of_memory) return tl::unexpected(checked.error());
      damage_.push_back(checked.error());
    }
    NACRE_TRY(check_small_files());
    NACRE_TRY(read_logs());
    NACRE_TRY(find_manifest());
    NACRE_TRY(read_groups());
    return read_tables();
  }

  const std::vector<Error>& damage() const override { return damage_; }
  const std::vector<LostRows>& lost_rows() const override { return lost_; }
  bool may_have_lost_groups() const override { return may_have_lost_groups_; }
  bool has_manifest() const override { return manifest_.has_value(); }
  Result<void> scan(Table table,
                    const std::function<Result<void>(const RescuedRow&)>& visit) const override;

 private:
  using Log = NumberedLog;

  Result<void> check_small_files();
  Result<void> read_logs();
  void check_links(const Log& log, std::uint64_t done_log);
  void note_other_branch(const std::string& name);
  Result<void> find_manifest();
  Result<void> try_manifest(const std::string& name);
  Result<void> refuse_manifest(const std::string& name, std::string_view why);
  Result<void> read_groups();
  Result<void> read_tables();
  Result<void> read_table(const std::string& name, const LiveTable* known);
  Result<void> read_unknown_tables(const UnnamedTables* unnamed);
  Result<bool> may_stand_in_for_lost(const std::string& name, const UnnamedTables& unnamed);
  Result<void> survey(const Source& source, const LiveTable* known);
  void add_damage(const Error& error) {
    // The check of logs and manifest may have reported it already.
    const bool is_told = std::any_of(damage_.begin(), damage_.end(), [&](const Error& told) {
      return told.message == error.message;
    });
    if (!is_told) damage_.push_back(error);
  }
  void lose(std::optional<Table> table, std::string from, std::string to,
            std::uint64_t sequence_max, const std::string& file) {
    lost_.push_back({.table = table,
                     .from = std::move(from),
                     .to = std::move(to),
                     .sequence_max = sequence_max,
                     .file = file});
  }

  const std::shared_ptr<BackingDirectory> directory_;
  const std::shared_ptr<const KeyTree> keys_;
  std::vector<std::string> names_;
  std::vector<Error> damage_;
  std::vector<LostRows> lost_;
  std::vector<Log> logs_;  // those that count, oldest first
  bool may_have_lost_groups_ = false;
  std::optional<ManifestContent> manifest_;
  std::uint64_t manifest_number_ = 0;
  std::vector<Source> sources_;
  std::array<VersionedRows, table_count> group_rows_;
};

Result<void> Rescue::check_small_files() {
  for (const auto& name : names_) {
    if (name != "IDENTITY" && !name.starts_with("OPTIONS-")) continue;
    if (name.ends_with(".dbtmp")) continue;
    const auto content = read_frames(*directory_, database_path_of(name), *keys_);
    if (content) continue;
    if (content.error().code == ErrorCode::out_of_memory) return tl::unexpected(content.error());
    add_damage(content.error());
  }
  return {};
}

void Rescue::note_other_branch(const std::string& name) {
  may_have_lost_groups_ = true;
  add_damage({ErrorCode::tampered,
              database_path_of(name) + ": the file is of another branch of the volume's history"});
}

Result<void> Rescue::read_logs() {
  std::uint64_t done_log = 0;
  for (const auto& name : names_) {
    const FileName parsed = parse_file_name(name);
    if (parsed.file_class != FileClass::log) continue;
    NACRE_ASSIGN(auto content, rescue_log(*directory_, database_path_of(name), *keys_));
    if (content.witness) done_log = std::max(done_log, content.witness->done_log);
    logs_.push_back({.number = parsed.number, .content = std::move(content)});
  }
  std::erase_if(logs_, [&](const Log& log) { return log.number <= done_log; });
  std::sort(logs_.begin(), logs_.end(),
            [](const Log& a, const Log& b) { return a.number < b.number; });
  for (const std::uint64_t number : drop_logs_of_other_branches(logs_))
    note_other_branch(fmt::format("{:06}.log", number));
  may_have_lost_groups_ = may_have_lost_groups_ || logs_.empty();
  for (const Log& log : logs_) {
    for (const Error& error : log.content.damage)
      add_damage(error);
    check_links(log, done_log);
  }
  return {};
}

// Checks what the log lacks, and what it says of the log before it.
void Rescue::check_links(const Log& log, std::uint64_t done_log) {
  const auto& witness = log.content.witness;
  if (log.content.lost_bytes != 0 || (!witness && !log.content.damage.empty())) {
    may_have_lost_groups_ = true;
  }
  if (!witness || witness->previous_log <= done_log) return;
  const auto before = std::find_if(logs_.begin(), logs_.end(), [&](const Log& other) {
    return other.number == witness->previous_log;
  });
  if (before == logs_.end() || before->content.frame_count < witness->previous_frames) {
    may_have_lost_groups_ = true;
  }
}

// Finds the manifest that CURRENT names, or else the newest one. It counts only if it is whole.
Result<void> Rescue::find_manifest() {
  const auto current = read_frames(*directory_, database_path_of("CURRENT"), *keys_);
  if (current) {
    std::string_view name = as_text(current->plain);
    if (name.ends_with('\n')) name.remove_suffix(1);
    return try_manifest(std::string(name));
  }
  if (current.error().code == ErrorCode::out_of_memory) return tl::unexpected(current.error());
  std::string newest;
  std::uint64_t newest_number = 0;
  for (const auto& name : names_) {
    const FileName parsed = parse_file_name(name);
    if (parsed.file_class != FileClass::manifest || parsed.number < newest_number) continue;
    newest = name;
    newest_number = parsed.number;
  }
  if (newest.empty()) return {};
  return try_manifest(newest);
}

Result<void> Rescue::try_manifest(const std::string& name) {
  const auto read = rescue_log(*directory_, database_path_of(name), *keys_);
  if (!read) {
    if (read.error().code == ErrorCode::out_of_memory) return tl::unexpected(read.error());
    return {};  // it is missing, which the check has reported
  }
  for (const Error& error : read->damage)
    add_damage(error);
  if (!read->damage.empty()) return {};
  // If one of several frames that were synced together is bad, they may pass for a torn end, since
  // nothing says in which order they reached the medium. But CURRENT names a manifest only once all
  // rows of the state that it begins with are there, so a hole or a cut in these is damage.
  if (read->lost_bytes != 0) return refuse_manifest(name, "a frame before its last one is damaged");
  const std::uint64_t number = parse_file_name(name).number;
  for (const Log& log : logs_) {
    if (!log.content.witness) continue;
    const LogWitness& known = *log.content.witness;
    if (known.manifest > number) return {};
    if (known.manifest == number && known.manifest_frames > read->frame_count) return {};
  }
  auto content = read_manifest_edits(read->records);
  if (!content || !has_all_families(*content, table_count)) {
    return refuse_manifest(name, "it lacks a part of the state that it begins with");
  }
  manifest_ = std::move(content);
  manifest_number_ = number;
  if (is_of_their_branch(*read, logs_)) return {};
  note_other_branch(fmt::format("{:06}.log", logs_.back().number));
  logs_.clear();
  return {};
}

Result<void> Rescue::refuse_manifest(const std::string& name, std::string_view why) {
  add_damage({ErrorCode::corrupt, fmt::format("{}: {}", database_path_of(name), why)});
  return {};
}

Result<void> Rescue::read_groups() {
  GroupRows groups(group_rows_);
  if (manifest_) groups.first_logs = manifest_->first_logs;
  for (Log& log : logs_) {
    groups.log = log.number;
    for (const std::string& record : log.content.records) {
      if (record.size() < sizeof(std::uint64_t)) continue;
      groups.begin(load_le<std::uint64_t>(reinterpret_cast<const Byte*>(record.data())));
      const auto status = rocksdb::WriteBatch(record).Iterate(&groups);
      if (!status.ok()) {
        add_damage({ErrorCode::corrupt,
                    fmt::format("{}: a group of rows makes no sense",
                                database_path_of(fmt::format("{:06}.log", log.number)))});
      }
    }
    log.content.records = {};
  }
  for (auto& rows : group_rows_) {
    std::sort(rows.begin(), rows.end(), [](const VersionedRow& a, const VersionedRow& b) {
      return a.key != b.key ? a.key < b.key : a.sequence > b.sequence;
    });
  }
  return {};
}

Result<void> Rescue::read_tables() {
  if (!manifest_) return read_unknown_tables(nullptr);
  const UnnamedTables unnamed(*manifest_, manifest_number_, names_);
  if (unnamed.may_be_lost()) NACRE_TRY(read_unknown_tables(&unnamed));
  for (const auto& [number, table] : manifest_->tables)
    NACRE_TRY(read_table(fmt::format("{:06}.sst", number), &table));
  return {};
}

// unnamed: null if there is no manifest.
Result<void> Rescue::read_unknown_tables(const UnnamedTables* unnamed) {
  for (const auto& name : names_) {
    const FileName parsed = parse_file_name(name);
    if (parsed.file_class != FileClass::table) continue;
    if (unnamed != nullptr && !unnamed->is_newer(parsed.number)) {
      NACRE_ASSIGN(const bool may_stand_in, may_stand_in_for_lost(name, *unnamed));
      if (!may_stand_in) continue;
    }
    NACRE_TRY(read_table(name, nullptr));
  }
  return {};
}

// A table that cannot be read costs nothing: what it may hold counts as lost with the tables that
// are missing.
Result<bool> Rescue::may_stand_in_for_lost(const std::string& name, const UnnamedTables& unnamed) {
  const auto file = TableRescue::open(*directory_, database_path_of(name), *keys_);
  if (file) return unnamed.may_stand_in(parse_file_name(name).number, **file);
  if (file.error().code == ErrorCode::out_of_memory) return tl::unexpected(file.error());
  return false;
}

Result<void> Rescue::read_table(const std::string& name, const LiveTable* known) {
  const std::string path = database_path_of(name);
  Source source;
  if (known != nullptr) {
    source.table = table_of_family(known->family);
    const auto family = manifest_->families.find(known->family);
    if (family != manifest_->families.end()) source.table = table_named(family->second);
    if (!source.table) return {};  // RocksDB's own, which is empty
  }
  auto file = TableRescue::open(*directory_, path, *keys_);
  if (file && known != nullptr && known->salt && (*file)->salt() != *known->salt) {
    file = fail(ErrorCode::tampered,
                path +
                    ": the file is not the table that the manifest names: it is of another "
                    "branch of the volume's history");
  }
  if (!file) {
    if (file.error().code == ErrorCode::out_of_memory) return tl::unexpected(file.error());
    const bool is_missing = file.error().code == ErrorCode::not_found;
    add_damage(is_missing ? Error{ErrorCode::missing, path + ": the file is missing"}
                          : file.error());
    // The rows count as lost even if the manifest may have lost the entry by which newer tables
    // replaced this one: one of the newer tables may be lost as well, and nothing would show that.
    if (known != nullptr) {
      lose(source.table, known->smallest, key_behind(known->largest), known->sequence_max, path);
    } else {
      lose(std::nullopt, {}, {}, any_sequence, path);
    }
    return {};
  }
  source.file = std::move(*file);
  bool is_damaged = false;
  NACRE_TRY(source.file->check_pages([&](const Error& error) {
    is_damaged = true;
    add_damage(error);
  }));
  if (!is_damaged) {
    const auto whole = PageReader::open(*directory_, path, *keys_);
    if (!whole) add_damage(whole.error());
  }
  if (known == nullptr) {
    source.table = table_named(source.file->family());
    if (!source.table) {
      // It is unknown to which table these rows belong.
      if (source.file->family() != "default") lose(std::nullopt, {}, {}, any_sequence, path);
      return {};
    }
  }
  NACRE_TRY(survey(source, known));
  sources_.push_back(std::move(source));
  return {};
}

// Notes which keys of the file cannot be read.
Result<void> Rescue::survey(const Source& source, const LiveTable* known) {
  const TableRescue& file = *source.file;
  const std::uint64_t sequence_max = known != nullptr ? known->sequence_max : any_sequence;
  // The first key that may not have been read.
  std::string from = known != nullptr ? known->smallest : std::string();
  bool is_lost = false;
  std::string last;
  for (std::size_t i = 0; i < file.block_count(); ++i) {
    const auto rows = file.read_block(i);
    if (!rows) {
      if (rows.error().code == ErrorCode::out_of_memory) return tl::unexpected(rows.error());
      is_lost = true;
      continue;
    }
    if (is_lost) {
      // The newest row of a key comes first, and may have been in the block before.
      const std::string& next = rows->front().key;
      lose(source.table, from, file.may_split_keys() ? key_behind(next) : next, sequence_max,
           file.path());
    }
    is_lost = false;
    last = rows->back().key;
    from = key_behind(last);
  }
  const bool has_end = known != nullptr && last == known->largest;
  is_lost = is_lost || (!file.knows_all_blocks() && !has_end);
  if (!is_lost) return {};
  lose(source.table, from, known != nullptr ? key_behind(known->largest) : std::string(),
       sequence_max, file.path());
  return {};
}

Result<void> Rescue::scan(Table table,
                          const std::function<Result<void>(const RescuedRow&)>& visit) const {
  std::vector<std::unique_ptr<RowCursor>> cursors;
  cursors.push_back(std::make_unique<RowCursor>(group_rows_[static_cast<std::size_t>(table)]));
  for (const Source& source : sources_) {
    if (source.table == table) cursors.push_back(std::make_unique<RowCursor>(*source.file));
  }
  std::priority_queue<RowCursor*, std::vector<RowCursor*>, decltype(&comes_after)> heap(
      &comes_after);
  for (const auto& cursor : cursors) {
    NACRE_ASSIGN(const bool has_row, cursor->next());
    if (has_row) heap.push(cursor.get());
  }
  std::optional<std::string> last;
  while (!heap.empty()) {
    RowCursor* cursor = heap.top();
    heap.pop();
    const VersionedRow& row = cursor->row();
    if (!last || *last != row.key) {
      last = row.key;
      RescuedRow found{.key = row.key, .sequence = row.sequence};
      if (row.value) found.value = *row.value;
      found.is_doubtful = std::any_of(lost_.begin(), lost_.end(), [&](const LostRows& lost) {
        return lost.sequence_max > row.sequence && lost.covers(table, row.key);
      });
      NACRE_TRY(visit(found));
    }
    NACRE_ASSIGN(const bool has_row, cursor->next());
    if (has_row) heap.push(cursor);
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<DatabaseRescue>> DatabaseRescue::open(
    std::shared_ptr<BackingDirectory> directory, std::shared_ptr<const KeyTree> keys) {
  auto rescue = std::make_unique<Rescue>(std::move(directory), std::move(keys));
  NACRE_TRY(rescue->read());
  return rescue;
}

}  // namespace nacre::metadata
