// SPDX-License-Identifier: Apache-2.0
#include "fs/repair/database_rebuild.h"

#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "fs/check/record_index.h"
#include "fs/checkpoint/checkpoint_records.h"
#include "fs/repair/chunk_of_records.h"
#include "fs/repair/own_records.h"
#include "fs/repair/row_owner.h"
#include "fs/salvage/salvage_checkpoint.h"
#include "fs/salvage/salvage_scan.h"
#include "fs/store/chunk_map.h"
#include "fs/store/segment_table.h"
#include "fs/store/segment_walk.h"
#include "metadata/format/scrub_row.h"

namespace nacre::fs {

using metadata::CheckpointSection;
using metadata::ChunkIndex;
using metadata::InodeNumber;
using metadata::Table;

namespace {

constexpr std::size_t rebuilt_group_size_bytes = 8u << 20;
// How many numbers may have been used without leaving a trace.
constexpr std::uint64_t number_margin = 1024;
constexpr std::uint64_t session_ordinal_max =
    (1ull << (64 - metadata::record_version_session_shift)) - 1;

using RowKey = std::pair<Table, std::string>;

class Rebuild {
 public:
  Rebuild(const std::shared_ptr<metadata::BackingDirectory>& directory,
          const metadata::DatabaseRescue& rescue, const metadata::VolumeKeys& volume,
          engine::Engine& engine, const ProgressFunction& progress)
      : directory_(directory),
        rescue_(rescue),
        volume_(volume),
        engine_(engine),
        progress_(progress) {}

  Result<DatabaseReport> run(const std::shared_ptr<metadata::BackingDirectory>& view) {
    for (const Error& error : rescue_.damage())
      report_.damage.add_error(error);
    report_.may_have_lost_groups = rescue_.may_have_lost_groups();
    report_.has_manifest = rescue_.has_manifest();
    report_.lost_range_count = rescue_.lost_rows().size();
    NACRE_ASSIGN(database_,
                 metadata::Database::open(view, volume_.keys,
                                          {.create = true, .padding = volume_.superblock.padding}));
    for (std::size_t i = 0; i < metadata::table_count; ++i)
      NACRE_TRY(copy(static_cast<Table>(i)));
    if (row_count_ == 0) {
      return fail(ErrorCode::missing,
                  fmt::format("{}: no row of db/ can be read; fsck.nacre --salvage TARGET makes "
                              "the volume anew elsewhere",
                              directory_->description()));
    }
    if (report_.lost_range_count != 0) NACRE_TRY(fill());
    if (report_.lost_range_count == 0 && report_.may_have_lost_groups) NACRE_TRY(raise_numbers({}));
    NACRE_TRY(extend_files());
    NACRE_TRY(raise_committed_sizes());
    NACRE_TRY(note_keyring());
    NACRE_TRY(list_older());
    NACRE_TRY(commit());
    NACRE_TRY(database_->close());
    return std::move(report_);
  }

 private:
  struct Doubt {
    std::uint64_t sequence = 0;
    bool is_there = false;  // false: it was erased
  };

  Result<> commit() {
    pending_bytes_ = 0;
    return database_->freeze() ? database_->commit_frozen(true) : Result<>();
  }
  Result<> put(Table table, std::string_view key, std::string value) {
    pending_bytes_ += key.size() + value.size();
    database_->put(table, key, std::move(value));
    return pending_bytes_ < rebuilt_group_size_bytes ? Result<>() : commit();
  }
  Result<> put_older(Table table, std::string_view key, std::string value, RowSource source) {
    doubts_.erase({table, std::string(key)});
    older_[{table, std::string(key)}] = source;
    return put(table, key, std::move(value));
  }

  Result<> copy(Table table);
  Result<> fill();
  Result<> take_checkpoint(RecordOpener& opener, const FoundCheckpoint& checkpoint);
  Result<> take_row(Table table, std::string_view key, std::string_view value);
  Result<> take_records(FoundRecords& records, metadata::RecordVersion settled);
  Result<bool> is_covered(InodeNumber inode, ChunkIndex index);
  Result<> take_chunk(const FoundRecords& all, std::span<const FoundRecord* const> records);
  std::optional<metadata::RecordLocation> place_of(const FoundRecords& records,
                                                   const FoundRecord& record) const;
  Result<> move_rows(FoundRecords& records);
  Result<> drop_older_segments();
  Result<> raise_committed_sizes();
  Result<> take_sessions(const FoundRecords& records);
  Result<> raise_numbers(const FoundRecords& records);
  Result<> extend_files();
  Result<> note_keyring();
  Result<> list_older();
  Result<std::optional<std::uint64_t>> number(std::string_view key) {
    NACRE_ASSIGN(const auto value, database_->get(Table::system, key));
    const auto decoded = value ? metadata::decode_u64(*value) : fail(ErrorCode::missing);
    return decoded ? std::optional(*decoded) : std::nullopt;
  }
  std::set<std::string> old_keys(Table table) const {
    std::set<std::string> keys;
    for (const auto& [place, doubt] : doubts_) {
      if (place.first == table && doubt.is_there) keys.insert(place.second);
    }
    for (const auto& [place, source] : older_) {
      if (place.first == table) keys.insert(place.second);
    }
    return keys;
  }
  // Certain only where the row's number is known: RocksDB drops the numbers of rows that it moves
  // to the last level, and such a row may be as new as any.
  bool is_before_checkpoint(const Doubt& doubt) const {
    return doubt.sequence != 0 && doubt.sequence < checkpoint_sequence_;
  }
  bool is_old(Table table, const std::string& key) const {
    return doubts_.contains({table, key}) || older_.contains({table, key});
  }

  const std::shared_ptr<metadata::BackingDirectory>& directory_;
  const metadata::DatabaseRescue& rescue_;
  const metadata::VolumeKeys& volume_;
  engine::Engine& engine_;
  const ProgressFunction& progress_;
  DatabaseReport report_;
  std::unique_ptr<metadata::Database> database_;
  std::size_t pending_bytes_ = 0;
  std::uint64_t row_count_ = 0;
  std::map<RowKey, Doubt> doubts_;                    // rows of which a newer one may be lost
  std::map<RowKey, RowSource> older_;                 // rows that stand in for lost ones
  std::map<std::string, std::uint64_t> checkpoints_;  // sequences of their rows
  std::uint64_t checkpoint_sequence_ = 0;  // of the checkpoint that is used; 0: not known
};

Result<> Rebuild::copy(Table table) {
  return rescue_.scan(table, [&](const metadata::RescuedRow& row) -> Result<> {
    if (row.is_doubtful) {
      doubts_[{table, std::string(row.key)}] = {.sequence = row.sequence,
                                                .is_there = row.value.has_value()};
    }
    if (!row.value) return {};
    ++row_count_;
    if (table == Table::system && row.key.starts_with(metadata::system_key_checkpoint_prefix)) {
      checkpoints_[std::string(row.key)] = row.sequence;
    }
    if (progress_ && row_count_ % 4096 == 0) {
      progress_({.stage = "rows of db/", .unit = ProgressUnit::rows, .done = row_count_});
    }
    return put(table, row.key, std::string(*row.value));
  });
}

Result<> Rebuild::fill() {
  FindingList notes;  // damage of segments is reported by the plan
  NACRE_ASSIGN(auto records, scan_records(*directory_, *volume_.keys, engine_,
                                          volume_.superblock.chunk_size_bytes, notes, progress_));
  RecordOpener opener(*directory_, *volume_.keys, engine_, records);
  OwnRecords own(*database_, rescue_, *volume_.keys, directory_->description());
  NACRE_TRY(own.keep_known_sessions(records));
  NACRE_TRY(own.keep_proven_checkpoints(records, opener));
  NACRE_ASSIGN(const auto checkpoint, find_checkpoint(records, opener, notes));
  if (checkpoint) NACRE_TRY(own.check_history(records, *checkpoint));
  NACRE_TRY(drop_older_segments());
  if (checkpoint) NACRE_TRY(take_checkpoint(opener, *checkpoint));
  const auto settled = checkpoint ? checkpoint->root.settled : metadata::RecordVersion{};
  NACRE_TRY(take_sessions(records));
  // The checkpoint may have brought sessions, and digests of records. Its parts are not read again.
  NACRE_TRY(own.keep_known_sessions(records));
  NACRE_TRY(own.keep_proven_content(records, opener, [&](const FoundRecord& record) {
    return place_of(records, record).has_value();
  }));
  NACRE_TRY(take_records(records, settled));
  NACRE_TRY(move_rows(records));
  return raise_numbers(records);
}

Result<> Rebuild::take_checkpoint(RecordOpener& opener, const FoundCheckpoint& checkpoint) {
  report_.checkpoint_seconds = checkpoint.root.written_seconds;
  const auto known = checkpoints_.find(metadata::checkpoint_key(checkpoint.number));
  if (known != checkpoints_.end()) checkpoint_sequence_ = known->second;
  std::set<RowKey> seen;  // rows in doubt that were seen
  NACRE_TRY(checkpoint.read(
      opener,
      [&](CheckpointSection section, std::string_view key, std::string_view value) -> Result<> {
        const Table table = table_of(section);
        if (!rescue_.may_have_lost(table, key)) return {};
        // The row of a scrub is left out, so a scrub begins anew.
        if (table == Table::system && key == metadata::system_key_scrub) return {};
        if (doubts_.contains({table, std::string(key)})) seen.emplace(table, key);
        return take_row(table, key, value);
      }));
  // A row that is older than the checkpoint and not in it had been removed by then.
  for (auto doubt = doubts_.begin(); doubt != doubts_.end();) {
    const auto& [place, state] = *doubt;
    const bool is_gone = is_before_checkpoint(state) && !seen.contains(place) &&
                         place.first != Table::segments &&
                         !(place.first == Table::system &&
                           place.second.starts_with(metadata::system_key_checkpoint_prefix));
    if (is_gone && state.is_there) {
      pending_bytes_ += place.second.size();
      database_->erase(place.first, place.second);
    }
    doubt = is_gone ? doubts_.erase(doubt) : std::next(doubt);
  }
  return commit();
}

Result<> Rebuild::take_row(Table table, std::string_view key, std::string_view value) {
  NACRE_ASSIGN(const auto there, database_->get(table, key));
  const auto doubt = doubts_.find({table, std::string(key)});
  if (doubt == doubts_.end()) {
    if (there) return {};  // no newer version of the row can be lost
  } else if (!is_before_checkpoint(doubt->second)) {
    return {};  // it is newer than the checkpoint, or may be
  }
  return put_older(table, key, std::string(value), RowSource::checkpoint);
}

// Takes chunks whose rows are gone, or older than their newest record, from records. If there is a
// checkpoint, records of versions before it are named by its rows or are dead.
Result<> Rebuild::take_records(FoundRecords& records, metadata::RecordVersion settled) {
  std::vector<const FoundRecord*> newer;
  for (const FoundRecord& record : records.all) {
    if (!is_of_file(record.kind) || record.version < settled) continue;
    if (!place_of(records, record)) continue;
    if (rescue_.may_have_lost(Table::chunks, metadata::chunk_key(record.inode, record.chunk))) {
      newer.push_back(&record);
    }
  }
  std::sort(newer.begin(), newer.end(), [](const FoundRecord* a, const FoundRecord* b) {
    return std::tuple(a->inode, a->chunk, a->version) < std::tuple(b->inode, b->chunk, b->version);
  });
  for (std::size_t begin = 0, end = 0; begin < newer.size(); begin = end) {
    for (end = begin; end < newer.size() && newer[end]->inode == newer[begin]->inode &&
                      newer[end]->chunk == newer[begin]->chunk;)
      ++end;
    NACRE_TRY(take_chunk(records, std::span(newer).subspan(begin, end - begin)));
  }
  return {};
}

// Whether an intact row covers the chunk: its own, or that of a hole.
Result<bool> Rebuild::is_covered(InodeNumber inode, ChunkIndex index) {
  NACRE_ASSIGN(const auto last, database_->find_last(Table::chunks, metadata::chunk_prefix(inode),
                                                     metadata::chunk_key(inode, index)));
  if (!last || is_old(Table::chunks, last->key)) return false;
  const auto parts = metadata::decode_chunk_key(last->key);
  const auto row = metadata::decode_chunk_map_row(last->value);
  if (!parts || !row) return false;
  const std::uint64_t count = row->hole   ? row->hole->chunk_count
                              : row->lost ? row->lost->chunk_count
                                          : 1;
  return index.value - parts->index.value < count;
}

// records are those of one chunk, in the order of versions.
Result<> Rebuild::take_chunk(const FoundRecords& all, std::span<const FoundRecord* const> records) {
  const InodeNumber inode = records.front()->inode;
  const ChunkIndex index = records.front()->chunk;
  NACRE_ASSIGN(const auto owner, database_->get(Table::inodes, metadata::inode_key(inode)));
  if (!owner && !rescue_.may_have_lost(Table::inodes, metadata::inode_key(inode))) return {};
  NACRE_ASSIGN(const bool is_known, is_covered(inode, index));
  if (is_known) return {};
  const std::string key = metadata::chunk_key(inode, index);
  metadata::ChunkRow row;
  NACRE_ASSIGN(const auto there, database_->get(Table::chunks, key));
  if (const auto old = there ? metadata::decode_chunk_map_row(*there) : fail(ErrorCode::missing);
      old && old->chunk) {
    row = *old->chunk;
  }
  std::vector<PlacedRecord> placed;
  for (const FoundRecord* record : records)
    placed.push_back({record, *place_of(all, *record)});
  const auto inode_row = owner ? metadata::decode_inode_row(*owner) : fail(ErrorCode::missing);
  const std::uint64_t chunk_size = volume_.superblock.chunk_size_bytes;
  const std::uint64_t begin = index.value * chunk_size;
  const std::uint64_t file_end =
      inode_row && inode_row->size > begin ? std::min(inode_row->size - begin, chunk_size) : 0;
  if (!add_newer_records(row, placed, static_cast<std::uint32_t>(file_end))) return {};
  return put_older(Table::chunks, key, metadata::encode(row), RowSource::records);
}

// The record's place, if it is within the committed size of its segment, as far as that is known.
std::optional<metadata::RecordLocation> Rebuild::place_of(const FoundRecords& records,
                                                          const FoundRecord& record) const {
  const std::string& path = records.files[record.file];
  const auto number = segment_number_of(std::string_view(path).substr(path.rfind('/') + 1));
  if (!number) return std::nullopt;
  const auto value = database_->get(Table::segments, metadata::segment_key(*number));
  const auto row =
      value && *value ? metadata::decode_segment_row(**value) : fail(ErrorCode::missing);
  if (row && record.offset + record.stored_size > row->committed_size) return std::nullopt;
  return metadata::RecordLocation{
      .segment = *number, .offset = record.offset, .stored_size = record.stored_size};
}

// Older rows name records at their places of that time. Compaction may have moved them since, so
// the places are looked up again.
Result<> Rebuild::move_rows(FoundRecords& records) {
  for (const std::string& key : old_keys(Table::chunks)) {
    NACRE_ASSIGN(const auto value, database_->get(Table::chunks, key));
    const auto parts = metadata::decode_chunk_key(key);
    auto row = value ? metadata::decode_chunk_map_row(*value) : fail(ErrorCode::missing);
    if (!parts || !row || !row->chunk) continue;
    const auto move = [&](metadata::RecordLocation& location, metadata::RecordName name) {
      name.inode = parts->inode;
      name.chunk = parts->index;
      std::optional<metadata::RecordLocation> found;
      for (const FoundRecord& record : records.with_version(name.version)) {
        if (record.name() != name) continue;
        const auto place = place_of(records, record);
        if (place == location) return;
        if (place && !found) found = place;
      }
      if (found) location = *found;
    };
    if (auto& base = row->chunk->base) move(base->location, {.version = base->version});
    for (auto& patch : row->chunk->patches) {
      if (!patch.location) continue;
      move(*patch.location,
           {.version = patch.version, .offset = patch.offset, .kind = metadata::RecordKind::patch});
    }
    const std::string moved = metadata::encode(*row->chunk);
    if (moved != *value) NACRE_TRY(put(Table::chunks, key, moved));
  }
  return {};
}

// An older row may have a smaller committed size than the segment, and the next mount would cut off
// the rest. So the row is dropped, and the repair makes it anew from the segment's file.
Result<> Rebuild::drop_older_segments() {
  for (auto doubt = doubts_.begin(); doubt != doubts_.end();) {
    const bool is_segment = doubt->first.first == Table::segments;
    if (is_segment && doubt->second.is_there) {
      database_->erase(Table::segments, doubt->first.second);
      older_[doubt->first] = RowSource::guess;
    }
    doubt = is_segment ? doubts_.erase(doubt) : std::next(doubt);
  }
  return {};
}

// A lost group may have been the one that committed records which other rows name.
Result<> Rebuild::raise_committed_sizes() {
  std::map<std::uint64_t, std::uint64_t> ends;
  NACRE_TRY(scan_records(*database_, [&](const NamedRecord& record) {
    std::uint64_t& end = ends[record.location.segment.value];
    end = std::max(end, record.location.offset + record.location.stored_size);
  }));
  for (const auto& [number, end] : ends) {
    const std::string key = metadata::segment_key({number});
    NACRE_ASSIGN(const auto value, database_->get(Table::segments, key));
    auto row = value ? metadata::decode_segment_row(*value) : fail(ErrorCode::missing);
    if (!row || row->committed_size >= end) continue;
    const auto size = directory_->file_size(segment_path({number}));
    if (!size || *size < end) continue;
    row->committed_size = end;
    NACRE_TRY(put_older(Table::segments, key, metadata::encode(*row), RowSource::guess));
  }
  return {};
}

// Restores write sessions whose rows are gone. One that the database cannot have known stays
// unknown: db/ was put back to an older state then, which the plan reports.
Result<> Rebuild::take_sessions(const FoundRecords& records) {
  NACRE_ASSIGN(const auto next, number(metadata::system_key_next_session));
  const bool knows_next =
      next && !is_old(Table::system, std::string(metadata::system_key_next_session));
  std::map<engine::SessionSalt, std::uint64_t> ordinals;
  for (const FoundRecord& record : records.all) {
    // Most records of a session have versions of that session; some may have versions of earlier
    // ones.
    std::uint64_t& ordinal = ordinals[records.sessions[record.session]];
    ordinal = std::max(ordinal, record.version.value >> metadata::record_version_session_shift);
  }
  NACRE_ASSIGN(const auto names, directory_->list("segments"));
  for (const auto& name : names) {
    const auto segment = segment_number_of(name);
    if (!segment) continue;
    const auto file = directory_->open(segment_path(*segment), metadata::OpenMode::read);
    if (!file) continue;
    const auto header = read_segment_header(**file, volume_.keys->volume_id(), *segment);
    if (!header) continue;
    const std::string key = metadata::session_key_of(header->salt);
    const auto ordinal = ordinals.find(header->salt);
    NACRE_ASSIGN(const auto there, database_->get(Table::system, key));
    if (there || ordinal == ordinals.end() || !rescue_.may_have_lost(Table::system, key)) continue;
    if (knows_next && ordinal->second >= *next) continue;
    const metadata::SessionRow row{.ordinal = ordinal->second, .epoch = header->epoch};
    NACRE_TRY(put_older(Table::system, key, metadata::encode(row), RowSource::guess));
  }
  return {};
}

// No number may be used again. So counters are raised past all known numbers, and by a margin if
// some may be unknown. A lost group of rows may have raised a counter, too.
Result<> Rebuild::raise_numbers(const FoundRecords& records) {
  const auto raise = [&](std::string_view key, std::uint64_t least,
                         std::uint64_t most) -> Result<> {
    NACRE_ASSIGN(const auto known, number(key));
    const bool is_newest = known && !is_old(Table::system, std::string(key));
    const bool is_certain =
        known ? is_newest : !rescue_.may_have_lost(Table::system, std::string(key));
    if (is_certain && !rescue_.may_have_lost_groups()) return {};
    const std::string value =
        metadata::encode_u64(std::min(std::max(known.value_or(1), least) + number_margin, most));
    if (is_newest) return put(Table::system, key, value);
    return put_older(Table::system, key, value, RowSource::guess);
  };
  NACRE_TRY(raise(metadata::system_key_next_inode, records.inode_max + 1, UINT64_MAX));
  NACRE_TRY(raise(metadata::system_key_next_segment, records.segment_number_max + 1, UINT64_MAX));
  return raise(metadata::system_key_next_session, records.session_ordinal_max + 1,
               session_ordinal_max);
}

// If a file's row is older than those of its chunks, the file may have been longer: chunks lie
// within their file.
Result<> Rebuild::extend_files() {
  const std::uint64_t chunk_size = volume_.superblock.chunk_size_bytes;
  for (const std::string& key : old_keys(Table::inodes)) {
    NACRE_ASSIGN(const auto value, database_->get(Table::inodes, key));
    const auto inode = metadata::decode_inode_key(key);
    auto row = value ? metadata::decode_inode_row(*value) : fail(ErrorCode::missing);
    if (!inode || !row || !S_ISREG(row->mode)) continue;
    NACRE_ASSIGN(const auto last,
                 database_->find_last(Table::chunks, metadata::chunk_prefix(*inode),
                                      metadata::chunk_key(*inode, {UINT64_MAX})));
    if (!last || is_old(Table::chunks, last->key)) continue;
    const auto parts = metadata::decode_chunk_key(last->key);
    const auto map = metadata::decode_chunk_map_row(last->value);
    if (!parts || !map || !map->chunk) continue;
    const std::uint64_t end = parts->index.value * chunk_size + content_end(*map->chunk);
    if (end <= row->size) continue;
    row->size = end;
    NACRE_TRY(put(Table::inodes, key, metadata::encode(*row)));
  }
  return {};
}

// The keyring's generation is never set below one that the volume was used with.
Result<> Rebuild::note_keyring() {
  const std::string key(metadata::system_key_keyring);
  NACRE_ASSIGN(const auto known, number(key));
  const std::uint64_t generation = volume_.keyring.generation;
  // An older keyring is reported by the plan.
  if (known && (*known > generation || !is_old(Table::system, key))) return {};
  return put_older(Table::system, key, metadata::encode_u64(generation), RowSource::guess);
}

Result<> Rebuild::list_older() {
  std::map<std::tuple<std::optional<InodeNumber>, Table, RowSource>, std::uint64_t> counts;
  const auto add = [&](const RowKey& place, RowSource source) -> Result<> {
    NACRE_ASSIGN(const auto value, database_->get(place.first, place.second));
    ++counts[{inode_of(place.first, place.second, value.value_or("")), place.first, source}];
    return {};
  };
  for (const auto& [place, doubt] : doubts_) {
    if (doubt.is_there) NACRE_TRY(add(place, RowSource::older_row));
  }
  for (const auto& [place, source] : older_)
    NACRE_TRY(add(place, source));
  for (const auto& [what, count] : counts) {
    const auto& [inode, table, source] = what;
    report_.older.push_back({table, source, inode, count, {}});
  }
  return {};
}

}  // namespace

Result<DatabaseReport> rebuild_database(
    const std::shared_ptr<metadata::BackingDirectory>& directory,
    const std::shared_ptr<metadata::BackingDirectory>& view, const metadata::DatabaseRescue& rescue,
    const metadata::VolumeKeys& volume, engine::Engine& engine, const ProgressFunction& progress) {
  return Rebuild(directory, rescue, volume, engine, progress).run(view);
}

}  // namespace nacre::fs
