// SPDX-License-Identifier: Apache-2.0
// See compaction.h.
#include "fs/store/compaction.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "fs/store/segment_table.h"
#include "fs/store/segment_walk.h"

namespace nacre::fs {

using metadata::ChunkPatch;
using metadata::ChunkRow;
using metadata::RecordKind;

namespace {

// Rows that are changed under one hold of a file's locks.
constexpr std::size_t rows_at_once_max = 32;

enum class Naming : std::uint8_t {
  none,       // the row does not name this place: the record is dead
  this_one,   // it names the place as this record's
  other_one,  // it names the place, but as another record's
};

Naming naming_of(const ChunkRow& row, const RecordLocation& location, const RecordName& name) {
  if (row.base && row.base->location == location) {
    const bool same = name.kind == RecordKind::chunk && row.base->version == name.version;
    return same ? Naming::this_one : Naming::other_one;
  }
  for (const ChunkPatch& patch : row.patches) {
    if (patch.location != location) continue;
    const bool same = name.kind == RecordKind::patch && patch.version == name.version &&
                      patch.offset == name.offset;
    return same ? Naming::this_one : Naming::other_one;
  }
  return Naming::none;
}

ChunkRow moved(ChunkRow row, const RecordLocation& from, const RecordLocation& to) {
  if (row.base && row.base->location == from) row.base->location = to;
  for (ChunkPatch& patch : row.patches) {
    if (patch.location == from) patch.location = to;
  }
  return row;
}

// Errors that say nothing about the record in hand and end the whole pass.
bool ends_pass(ErrorCode code) {
  return code == ErrorCode::io || code == ErrorCode::no_space || code == ErrorCode::read_only ||
         code == ErrorCode::out_of_memory || code == ErrorCode::cancelled;
}

class Pass final : public SegmentVisitor {
 public:
  Pass(SegmentStore& store, const ChunkMap& map, RowKeeper& keeper, const Victim& victim,
       const Pace& pace, std::size_t batch_bytes)
      : store_(store),
        map_(map),
        keeper_(keeper),
        victim_(victim),
        pace_(pace),
        batch_bytes_(batch_bytes) {}

  Result<> record(std::uint64_t offset, const engine::RecordHeader&, ByteView bytes) override {
    if (held_.size() + bytes.size() > batch_bytes_) NACRE_TRY(finish_batch());
    batch_.push_back(
        Record{RecordLocation{victim_.number, offset, static_cast<std::uint32_t>(bytes.size())},
               held_.size()});
    held_.insert(held_.end(), bytes.begin(), bytes.end());
    return {};
  }
  Result<> damage(std::uint64_t offset, std::uint64_t, const Error& error) override {
    note_damage(offset, error);
    return {};
  }
  void passed(std::uint64_t) override {}

  Result<> finish_batch();
  CompactionOutcome outcome() const { return outcome_; }

 private:
  struct Record {
    RecordLocation location;
    std::size_t held_at;  // where its bytes are in held_
  };
  struct Move {
    RecordName name;
    RecordLocation from, to;
  };

  ByteView bytes_of(const Record& record) const {
    return ByteView(held_).subspan(record.held_at, record.location.stored_size);
  }
  void note_damage(std::uint64_t offset, const Error& error) {
    if (outcome_.damaged_records++ > 0) return;
    outcome_.first_damage = {
        error.code, fmt::format("{} offset {}: {}", segment_path(victim_.number), offset,
                                error.message.empty() ? to_string(error.code) : error.message)};
  }
  Result<bool> is_live(const Record& record, const RecordName& name);
  Result<> switch_rows(std::vector<Move>& moves);
  Result<bool> move_batch();

  SegmentStore& store_;
  const ChunkMap& map_;
  RowKeeper& keeper_;
  const Victim& victim_;
  const Pace& pace_;
  const std::size_t batch_bytes_;
  Bytes held_;
  std::vector<Record> batch_;
  std::uint64_t appended_bytes_ = 0;  // of the batch
  CompactionOutcome outcome_;
};

Result<bool> Pass::is_live(const Record& record, const RecordName& name) {
  // Those of checkpoints are never moved: all that is in their segments dies at once.
  if (!is_of_file(name.kind)) return false;
  const auto mapped = map_.find(name.inode, name.chunk);
  if (!mapped) {
    if (ends_pass(mapped.error().code)) return tl::unexpected(mapped.error());
    if (mapped.error().code != ErrorCode::missing) {  // else: the file is gone or shorter
      note_damage(record.location.offset, mapped.error());
    }
    return false;
  }
  if (mapped->hole) return false;
  const Naming naming = naming_of(mapped->row, record.location, name);
  if (naming == Naming::other_one) {
    note_damage(record.location.offset,
                {ErrorCode::tampered, "the record is not the one that its row names"});
  }
  return naming == Naming::this_one;
}

Result<> Pass::finish_batch() {
  if (batch_.empty()) return {};
  for (bool moved = false; !moved;) {
    NACRE_ASSIGN(moved, move_batch());
  }
  const std::uint64_t bytes = held_.size() + appended_bytes_;
  appended_bytes_ = 0;
  batch_.clear();
  held_.clear();
  return pace_(bytes);
}

// False: an epoch began between opening the records and appending them.
Result<bool> Pass::move_batch() {
  std::vector<ByteView> records;
  records.reserve(batch_.size());
  for (const Record& record : batch_)
    records.push_back(bytes_of(record));
  const PreparedMove prepared = store_.prepare_move(records);
  const auto& names = prepared.names;
  std::vector<Move> moves;
  std::vector<ByteView> live;
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < batch_.size(); ++i) {
    if (!names[i]) {
      if (ends_pass(names[i].error().code)) return tl::unexpected(names[i].error());
      note_damage(batch_[i].location.offset, names[i].error());
      continue;
    }
    NACRE_ASSIGN(const bool is_live_now, is_live(batch_[i], *names[i]));
    if (!is_live_now) continue;
    moves.push_back(Move{.name = *names[i], .from = batch_[i].location, .to = {}});
    live.push_back(prepared.records[i]);
    bytes += prepared.records[i].size();
  }
  // Kept until the rows name the records: their segment is pinned meanwhile.
  NACRE_ASSIGN(const auto appended, store_.append_sealed(live));
  if (!appended) return false;
  for (std::size_t i = 0; i < moves.size(); ++i)
    moves[i].to = appended->records[i].location;
  appended_bytes_ = bytes;
  NACRE_TRY(switch_rows(moves));
  return true;
}

Result<> Pass::switch_rows(std::vector<Move>& moves) {
  std::stable_sort(moves.begin(), moves.end(), [](const Move& a, const Move& b) {
    return std::pair(a.name.inode, a.name.chunk) < std::pair(b.name.inode, b.name.chunk);
  });
  for (std::size_t first = 0; first < moves.size();) {
    const InodeNumber inode = moves[first].name.inode;
    std::vector<RowChange> changes;
    std::size_t last = first;
    for (; last < moves.size() && moves[last].name.inode == inode &&
           changes.size() < rows_at_once_max;
         ++last) {
      const auto apply = [this,
                          &move = moves[last]](const ChunkRow& row) -> std::optional<ChunkRow> {
        if (naming_of(row, move.from, move.name) != Naming::this_one) return std::nullopt;
        ++outcome_.moved_records;
        outcome_.moved_bytes += move.to.stored_size;
        return moved(row, move.from, move.to);
      };
      changes.push_back(RowChange{.index = moves[last].name.chunk, .apply = apply});
    }
    // A file that goes takes its rows with it.
    if (const auto changed = keeper_.change_rows(inode, changes);
        !changed && changed.error().code != ErrorCode::stale) {
      if (ends_pass(changed.error().code)) return tl::unexpected(changed.error());
      note_damage(moves[first].from.offset, changed.error());
    }
    first = last;
  }
  return {};
}

}  // namespace

Result<CompactionOutcome> compact_segment(SegmentStore& store, const ChunkMap& map,
                                          RowKeeper& keeper, const Victim& victim, const Pace& pace,
                                          std::size_t batch_bytes) {
  Pass pass(store, map, keeper, victim, pace, batch_bytes);
  NACRE_TRY(
      walk_segment(*victim.file, {.file_size = victim.size, .committed_size = victim.size}, pass));
  NACRE_TRY(pass.finish_batch());
  return pass.outcome();
}

}  // namespace nacre::fs
