// SPDX-License-Identifier: Apache-2.0
#include "fs/salvage/salvage_tables.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "fs/check/deep_check.h"
#include "fs/check/record_index.h"
#include "fs/checkpoint/checkpoint_records.h"
#include "fs/mount/mounted.h"
#include "fs/store/chunk_map.h"
#include "fs/store/segment_store.h"
#include "gpu_engine/kdf/kdf.h"
#include "metadata/format/scrub_row.h"

namespace nacre::fs {

using metadata::CheckpointSection;
using metadata::Table;

namespace {

// The size of rows that are written together.
constexpr std::size_t row_bytes_at_once = 4u << 20;
constexpr std::size_t copy_bytes_at_once = 1u << 20;
// How many numbers the source may have used without leaving a trace.
constexpr std::uint64_t session_margin = 1024;
constexpr std::uint64_t segment_margin = 1024;
constexpr std::uint64_t session_ordinal_max =
    (1ull << (64 - metadata::record_version_session_shift)) - 1;

Result<std::uint64_t> number_in(const std::map<std::string, std::string>& rows,
                                std::string_view key) {
  const auto row = rows.find(std::string(key));
  if (row == rows.end()) {
    return fail(ErrorCode::corrupt, fmt::format("the checkpoint has no row '{}'", key));
  }
  return metadata::decode_u64(row->second);
}

// The found record that a row names, or null. If there are several, it is the one that was sealed
// in a session which the checkpoint knows: another may come from another branch of the volume's
// history.
FoundRecord* find_named(FoundRecords& records, const std::set<std::uint32_t>& known_sessions,
                        const NamedRecord& named) {
  FoundRecord* found = nullptr;
  for (FoundRecord& record : records.with_version(named.name.version)) {
    if (record.name() != named.name || record.plain_size != named.plain_size) continue;
    if (known_sessions.contains(record.session)) return &record;
    if (found == nullptr) found = &record;
  }
  return found;
}

std::set<std::uint32_t> known_sessions(const FoundCheckpoint& checkpoint,
                                       const FoundRecords& records) {
  std::set<std::uint32_t> known;
  for (std::uint32_t i = 0; i < records.sessions.size(); ++i) {
    if (checkpoint.system_rows.contains(metadata::session_key_of(records.sessions[i]))) {
      known.insert(i);
    }
  }
  return known;
}

class Rebuild {
 public:
  Rebuild(const SalvageContext& context, const FoundCheckpoint& checkpoint, FoundRecords& records,
          RecordOpener& opener)
      : context_(context), checkpoint_(checkpoint), records_(records), opener_(opener) {}

  Result<> run() {
    const auto& superblock = context_.volume.superblock;
    NACRE_ASSIGN(database_,
                 metadata::Database::open(context_.target, context_.volume.keys,
                                          {.create = true, .padding = superblock.padding}));
    NACRE_TRY(put_system_rows());
    NACRE_ASSIGN(store_, SegmentStore::open(context_.target, *database_, context_.volume.keys,
                                            context_.engine,
                                            {.chunk_size_bytes = superblock.chunk_size_bytes,
                                             .codec = superblock.codec,
                                             .level = superblock.level,
                                             .padding = superblock.padding}));
    NACRE_TRY(copy_records());
    NACRE_TRY(put_rows());
    store_->close_segments();
    store_->stage();
    NACRE_TRY(store_->sync());
    NACRE_TRY(commit(true));
    store_->committed();
    return database_->close();
  }

 private:
  Result<> commit(bool sync) {
    pending_bytes_ = 0;
    return database_->freeze() ? database_->commit_frozen(sync) : Result<>();
  }

  Result<> put(Table table, std::string_view key, std::string value) {
    pending_bytes_ += key.size() + value.size();
    database_->put(table, key, std::move(value));
    return pending_bytes_ < row_bytes_at_once ? Result<>() : commit(false);
  }

  Result<> put_number(std::string_view key, std::uint64_t least, std::uint64_t most = UINT64_MAX) {
    NACRE_ASSIGN(const std::uint64_t value, number_in(checkpoint_.system_rows, key));
    return put(Table::system, key, metadata::encode_u64(std::min(std::max(value, least), most)));
  }

  Result<> put_system_rows() {
    const auto& rows = checkpoint_.system_rows;
    for (const auto& [key, value] : rows) {
      // The row of a scrub names segments that do not exist any more.
      if (key != metadata::system_key_scrub) NACRE_TRY(put(Table::system, key, value));
    }
    NACRE_TRY(put_number(metadata::system_key_next_inode, records_.inode_max + 1));
    NACRE_ASSIGN(const auto session, number_in(rows, metadata::system_key_next_session));
    NACRE_TRY(put_number(metadata::system_key_next_session,
                         std::max(session, records_.session_ordinal_max + 1) + session_margin,
                         session_ordinal_max));
    NACRE_ASSIGN(const auto segment, number_in(rows, metadata::system_key_next_segment));
    NACRE_TRY(put_number(metadata::system_key_next_segment,
                         std::max(segment, records_.segment_number_max + 1) + segment_margin));
    NACRE_TRY(put_number(metadata::system_key_keyring, context_.volume.keyring.generation));
    has_digests_ = rows.contains(std::string(metadata::system_key_genuine));
    const auto& keys = *context_.volume.keys;
    const auto& epochs = records_.session_epochs;
    if (!has_digests_ && std::any_of(epochs.begin(), epochs.end(), [&](std::uint32_t epoch) {
          return keys.is_superseded(epoch);
        })) {
      NACRE_TRY(put(Table::system, metadata::system_key_genuine,
                    metadata::encode_u64(keys.current_epoch_number())));
    }
    return commit(true);
  }

  Result<> copy_records() {
    // In the order of the source, so that it is read sequentially.
    std::vector<FoundRecord*> named;
    Progress state{.stage = "records"};
    for (FoundRecord& record : records_.all) {
      if (!record.is_named) continue;
      named.push_back(&record);
      state.total += record.stored_size;
    }
    std::sort(named.begin(), named.end(), [](const FoundRecord* a, const FoundRecord* b) {
      return std::pair(a->file, a->offset) < std::pair(b->file, b->offset);
    });
    std::vector<FoundRecord*> batch;
    std::vector<Bytes> bytes;
    std::size_t batch_bytes = 0;
    for (FoundRecord* record : named) {
      auto sealed = opener_.read(*record);
      if (!sealed) {
        if (sealed.error().code == ErrorCode::out_of_memory) return tl::unexpected(sealed.error());
        // The record could be read a moment ago, so the medium is failing.
        context_.findings.add(
            {.verdict = verdict_of(sealed.error().code),
             .what = fmt::format("{}: {}", describe(record->name()), sealed.error().message),
             .file = records_.files[record->file],
             .offset = record->offset,
             .inode = record->inode});
        record->is_named = false;
        continue;
      }
      // Nothing else says any more which records of older epochs are genuine.
      NACRE_ASSIGN(const auto header, engine::parse_record_header(*sealed));
      if (!has_digests_ && context_.volume.keys->is_superseded(header.epoch)) {
        NACRE_TRY(put(Table::system, metadata::genuine_key_of(header.salt, header.counter),
                      metadata::encode_genuine(engine::sha256(*sealed))));
      }
      batch.push_back(record);
      batch_bytes += sealed->size();
      bytes.push_back(std::move(*sealed));
      if (batch_bytes < copy_bytes_at_once) continue;
      NACRE_TRY(append(batch, bytes));
      state.done += std::exchange(batch_bytes, 0);
      if (context_.progress) context_.progress(state);
    }
    return append(batch, bytes);
  }

  Result<> append(std::vector<FoundRecord*>& batch, std::vector<Bytes>& bytes) {
    const std::vector<ByteView> views(bytes.begin(), bytes.end());
    // If the keys of the volume were being rotated, some records are of an older epoch. They are
    // sealed anew.
    const PreparedMove prepared = store_->prepare_move(views);
    for (const auto& name : prepared.names) {
      if (!name) return tl::unexpected(name.error());  // they could be opened a moment ago
    }
    NACRE_ASSIGN(const auto appended, store_->append_sealed(prepared.records, 0, PageCache::used));
    if (!appended) return fail(ErrorCode::busy, "the epoch of the new volume changed");
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const auto& location = appended->records[i].location;
      batch[i]->segment = location.segment.value;
      batch[i]->offset = location.offset;
      batch[i]->stored_size = location.stored_size;
      store_->add_live(location);
    }
    batch.clear();
    bytes.clear();
    return {};
  }

  Result<> put_rows() {
    known_sessions_ = known_sessions(checkpoint_, records_);
    Progress state{.stage = "rows", .unit = ProgressUnit::rows};
    for (const std::uint64_t count : checkpoint_.root.row_counts)
      state.total += count;
    return checkpoint_.read(
        opener_,
        [&](CheckpointSection section, std::string_view key, std::string_view value) -> Result<> {
          if (++state.done % 4096 == 0 && context_.progress) context_.progress(state);
          if (section == CheckpointSection::system) return {};
          if (section == CheckpointSection::chunks) {
            return put(Table::chunks, key, with_new_places(key, value));
          }
          return put(table_of(section), key, std::string(value));
        });
  }

  // A lost record keeps its place in a segment that does not exist, so reading it is an error.
  std::string with_new_places(std::string_view key, std::string_view value) {
    const auto parts = metadata::decode_chunk_key(key);
    auto row = metadata::decode_chunk_map_row(value);
    if (!parts || !row || !row->chunk) return std::string(value);
    const auto move = [&](metadata::RecordLocation& location, metadata::RecordName name,
                          std::uint32_t plain_size) {
      name.inode = parts->inode;
      name.chunk = parts->index;
      const FoundRecord* record =
          find_named(records_, known_sessions_,
                     {.location = location, .name = name, .plain_size = plain_size});
      if (record == nullptr || record->segment == 0) return;
      location = {{record->segment}, record->offset, record->stored_size};
    };
    if (auto& base = row->chunk->base) {
      move(base->location, {.version = base->version}, base->plain_size);
    }
    for (auto& patch : row->chunk->patches) {
      if (!patch.location) continue;
      move(*patch.location,
           {.version = patch.version, .offset = patch.offset, .kind = metadata::RecordKind::patch},
           patch.plain_size);
    }
    return metadata::encode(*row->chunk);
  }

  const SalvageContext& context_;
  const FoundCheckpoint& checkpoint_;
  FoundRecords& records_;
  RecordOpener& opener_;
  std::unique_ptr<metadata::Database> database_;
  std::unique_ptr<SegmentStore> store_;
  std::set<std::uint32_t> known_sessions_;
  bool has_digests_ = false;  // of the records that were there when the rotation of keys began
  std::size_t pending_bytes_ = 0;
};

}  // namespace

Result<NamedRecords> mark_named(const SalvageContext& context, const FoundCheckpoint& checkpoint,
                                FoundRecords& records, RecordOpener& opener) {
  NamedRecords counts;
  const auto known = known_sessions(checkpoint, records);
  NACRE_TRY(checkpoint.read(
      opener,
      [&](CheckpointSection section, std::string_view key, std::string_view value) -> Result<> {
        if (section != CheckpointSection::chunks) return {};
        const auto parts = metadata::decode_chunk_key(key);
        const auto row = metadata::decode_chunk_map_row(value);
        if (!parts || !row || !row->chunk) return {};  // the check of the new volume reports it
        const metadata::RecordVersion newest = newest_version(*row->chunk);
        if (newest >= checkpoint.root.settled) {
          counts.newest.emplace(std::pair(parts->inode, parts->index), newest);
        }
        for_each_record(parts->inode, parts->index, *row->chunk, [&](const NamedRecord& named) {
          FoundRecord* record = find_named(records, known, named);
          if (record == nullptr) {
            ++counts.lost_count;
            context.findings.add(
                {.verdict = Verdict::missing,
                 .what = fmt::format("{} is lost: no segment has its record", describe(named.name)),
                 .inode = named.name.inode});
            return;
          }
          if (std::exchange(record->is_named, true)) return;
          ++counts.record_count;
          counts.stored_bytes += record->stored_size;
        });
        return {};
      }));
  return counts;
}

Result<> rebuild_tables(const SalvageContext& context, const FoundCheckpoint& checkpoint,
                        FoundRecords& records, RecordOpener& opener) {
  return Rebuild(context, checkpoint, records, opener).run();
}

Result<> make_empty_tables(const SalvageContext& context, const FoundRecords& records) {
  NACRE_TRY(Mounted::format(context.target, context.volume.keys, context.volume.keyring.generation,
                            Caller{}, metadata::generation_to_note(context.volume.superblock),
                            context.volume.superblock.padding));
  NACRE_ASSIGN(const auto database,
               metadata::Database::open(context.target, context.volume.keys,
                                        {.padding = context.volume.superblock.padding}));
  const auto put = [&](std::string_view key, std::uint64_t value) {
    database->put(Table::system, key, metadata::encode_u64(value));
  };
  put(metadata::system_key_next_inode, std::max(records.inode_max, metadata::root_inode.value) + 1);
  put(metadata::system_key_next_segment, records.segment_number_max + 1 + segment_margin);
  put(metadata::system_key_next_session,
      std::min(records.session_ordinal_max + 1 + session_margin, session_ordinal_max));
  database->freeze();
  NACRE_TRY(database->commit_frozen(true));
  return database->close();
}

}  // namespace nacre::fs
