// SPDX-License-Identifier: Apache-2.0
#include "fs/space/compaction.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "fs/store/segment_table.h"
#include "fs/store/segment_walk.h"
#include "gpu_engine/base/check.h"

namespace nacre::fs {

using metadata::ChunkPatch;
using metadata::ChunkRow;
using metadata::RecordKind;

namespace {

// Rows that are changed under one hold of a file's locks.
constexpr std::size_t rows_at_once_max = 32;
// The number of files for which a pass remembers dead chunks.
constexpr std::size_t dead_file_count_max = 4096;

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

// Whether the error is not about the current record, so that it ends the whole pass.
bool ends_pass(ErrorCode code) {
  return code == ErrorCode::io || code == ErrorCode::no_space || code == ErrorCode::read_only ||
         code == ErrorCode::out_of_memory || code == ErrorCode::cancelled;
}

class Pass final : public SegmentVisitor {
 public:
  Pass(SegmentStore& store, const ChunkMap& map, RowKeeper& keeper, const Victim& victim,
       const Pace& pace, Mover& mover)
      : store_(store), map_(map), keeper_(keeper), victim_(victim), pace_(pace), mover_(mover) {}

  // Returns true if the whole segment was moved. False means that the walk must do it.
  Result<bool> move_directly();
  Result<> walk();
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

  Result<> record(std::uint64_t offset, const engine::RecordHeader&, ByteView bytes) override {
    if (held_.size() + bytes.size() > mover_.batch_bytes) NACRE_TRY(finish_batch());
    batch_.push_back(
        Record{RecordLocation{victim_.number, offset, static_cast<std::uint32_t>(bytes.size())},
               held_.size()});
    held_.insert(held_.end(), bytes.begin(), bytes.end());
    return {};
  }
  // Something failed to open, and genuine records may lie within it.
  Result<> judge(const engine::RecordHeader& header, ByteView record) override {
    return is_judging_ ? store_.authenticate(header, record) : Result<>();
  }
  Result<> damage(std::uint64_t offset, std::uint64_t, const Error& error) override {
    note_damage(offset, error);
    return {};
  }
  Result<> gave_up(std::uint64_t) override {
    has_given_up_ = true;
    return {};
  }
  void passed(std::uint64_t) override {}

  void note_damage(std::uint64_t offset, const Error& error) {
    if (outcome_.damaged_records++ > 0) return;
    outcome_.first_damage = {
        error.code, fmt::format("{} offset {}: {}", segment_path(victim_.number), offset,
                                error.message.empty() ? to_string(error.code) : error.message)};
  }
  void note_taken_for_another(const RecordLocation& location) {
    note_damage(location.offset,
                {ErrorCode::tampered, "the record is not the one that its row names"});
  }
  Result<> finish_batch();
  Result<std::vector<ByteView>> read_batch(std::uint64_t offset);
  Result<bool> is_live(const Record& record, const RecordName& name);
  // Chunks of one file whose rows name no record of this segment. They never will again, because
  // dead records stay dead and the segment gets no new ones.
  struct DeadChunks {
    std::uint64_t first = 0, end = 0;
  };
  bool is_known_dead(const RecordName& name) const;
  void note_dead(InodeNumber inode, const DeadChunks& chunks);
  Result<> switch_rows(std::vector<Move>& moves);
  // Returns how many of the batch's records were moved: all, unless prepared has fewer. Empty if an
  // epoch began between opening the records and appending them.
  template <typename Prepare>
  Result<std::optional<std::size_t>> move_batch(Prepare prepare);

  SegmentStore& store_;
  const ChunkMap& map_;
  RowKeeper& keeper_;
  const Victim& victim_;
  const Pace& pace_;
  Mover& mover_;
  bool is_judging_ = false;
  bool has_given_up_ = false;
  bool ask_before_ = true;  // rows are asked what is alive before anything is appended
  Bytes held_;
  std::vector<Record> batch_;
  std::uint64_t appended_bytes_ = 0;  // of the batch
  std::map<InodeNumber, DeadChunks> dead_;
  CompactionOutcome outcome_;
};

bool Pass::is_known_dead(const RecordName& name) const {
  const auto found = dead_.find(name.inode);
  return found != dead_.end() && found->second.first <= name.chunk.value &&
         name.chunk.value < found->second.end;
}

void Pass::note_dead(InodeNumber inode, const DeadChunks& chunks) {
  if (dead_.size() == dead_file_count_max) dead_.clear();
  dead_.insert_or_assign(inode, chunks);
}

// If a chunk has no row of its own, finding the row that covers it means walking back over erased
// rows. These are hundreds of thousands after a large file was deleted, truncated or punched. So
// the result is remembered for all records to which it applies.
Result<bool> Pass::is_live(const Record& record, const RecordName& name) {
  // Records of checkpoints are never moved, because all records of their segments die at once.
  if (!is_of_file(name.kind) || is_known_dead(name)) return false;
  const auto fail_or_note = [&](const Error& error) -> Result<bool> {
    if (ends_pass(error.code)) return tl::unexpected(error);
    note_damage(record.location.offset, error);
    return false;
  };
  const auto own = map_.find_own(name.inode, name.chunk);
  if (!own) return fail_or_note(own.error());
  if (*own) {
    const Naming naming = naming_of(**own, record.location, name);
    if (naming == Naming::other_one) note_taken_for_another(record.location);
    return naming == Naming::this_one;
  }
  constexpr std::uint64_t end_of_all = std::numeric_limits<std::uint64_t>::max();
  if (keeper_.is_going(name.inode)) {
    // Records that the file's rows still name die with these rows, without being moved.
    note_dead(name.inode, {0, end_of_all});
    return false;
  }
  const auto covering = map_.find(name.inode, name.chunk);
  if (covering) {
    const std::uint64_t end = name.chunk.value + (covering->hole ? covering->run : 1);
    note_dead(name.inode, {name.chunk.value, end});
  } else if (covering.error().code == ErrorCode::missing) {
    note_dead(name.inode, {name.chunk.value, end_of_all});  // the file is gone or shorter
  } else {
    return fail_or_note(covering.error());
  }
  return false;
}

Result<> Pass::finish_batch() {
  if (batch_.empty()) return {};
  std::vector<ByteView> records;
  records.reserve(batch_.size());
  for (const Record& record : batch_)
    records.push_back(ByteView(held_).subspan(record.held_at, record.location.stored_size));
  for (bool moved = false; !moved;) {
    NACRE_ASSIGN(const auto count, move_batch([&] { return store_.prepare_move(records); }));
    moved = count.has_value();
  }
  const std::uint64_t bytes = held_.size() + appended_bytes_;
  appended_bytes_ = 0;
  batch_.clear();
  held_.clear();
  return pace_(bytes);
}

Result<> Pass::walk() {
  is_judging_ = true;
  SegmentBounds bounds{.file_size = victim_.size, .committed_size = victim_.size, .anchors = {}};
  NACRE_TRY(walk_segment(*victim_.file, bounds, *this));
  NACRE_TRY(finish_batch());
  if (!has_given_up_ || !mover_.named_places) return {};
  // What is left out now, no row names.
  NACRE_ASSIGN(const auto places, mover_.named_places(victim_.number));
  bounds.anchors = places;
  NACRE_TRY(walk_segment(*victim_.file, bounds, *this));
  return finish_batch();
}

// Reads whole records from offset on into the mover's memory. Empty if something else lies there.
Result<std::vector<ByteView>> Pass::read_batch(std::uint64_t offset) {
  const MutableByteView memory = mover_.memory->input();
  const auto size = static_cast<std::size_t>(
      std::min<std::uint64_t>({victim_.size - offset, memory.size(),
                               std::max(mover_.batch_bytes, engine::record_size_bytes_max)}));
  const MutableByteView bytes = memory.first(size);
  std::vector<ByteView> records;
  const auto got = victim_.file->read(offset, bytes);
  if (!got || *got < size) return records;
  for (std::size_t at = 0; at < size;) {
    const ByteView rest = bytes.subspan(at);
    const auto header = engine::check_record_header(rest);
    if (!header) break;
    records.push_back(rest.first(header->stored_size));
    at += header->stored_size;
  }
  return records;
}

Result<bool> Pass::move_directly() {
  const auto live = static_cast<double>(std::max<std::int64_t>(victim_.segment->live_bytes, 0));
  ask_before_ = live < (1 - reclaimable_share_min) * static_cast<double>(victim_.size);
  std::uint64_t offset = metadata::segment_header_size_bytes;
  while (offset < victim_.size) {
    NACRE_ASSIGN(const auto records, read_batch(offset));
    if (records.empty()) break;
    batch_.clear();
    for (std::uint64_t at = offset; const ByteView& record : records) {
      const auto size = static_cast<std::uint32_t>(record.size());
      batch_.push_back(Record{RecordLocation{victim_.number, at, size}, 0});
      at += size;
    }
    std::optional<std::size_t> count;
    while (!count) {
      NACRE_ASSIGN(count, move_batch([&] { return store_.prepare_move(records, *mover_.memory); }));
    }
    if (*count == 0) break;
    const Record& last = batch_[*count - 1];
    const std::uint64_t end = last.location.offset + last.location.stored_size;
    const std::uint64_t bytes = end - offset + std::exchange(appended_bytes_, 0);
    offset = end;
    NACRE_TRY(pace_(bytes));
  }
  batch_.clear();
  ask_before_ = true;
  const bool is_smooth = offset >= victim_.size && outcome_.damaged_records == 0;
  if (!is_smooth) outcome_.damaged_records = 0;  // the walk finds and reports the damage
  return is_smooth;
}

template <typename Prepare>
Result<std::optional<std::size_t>> Pass::move_batch(Prepare prepare) {
  const PreparedMove prepared = prepare();
  const auto& names = prepared.names;
  std::vector<Move> moves;
  std::vector<ByteView> live;
  moves.reserve(names.size());
  live.reserve(names.size());
  std::uint64_t bytes = 0;
  NACRE_CHECK(names.size() <= batch_.size() && prepared.records.size() == names.size(),
              "{} records are prepared for {} of {}", prepared.records.size(), names.size(),
              batch_.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!names[i]) {
      if (ends_pass(names[i].error().code)) return tl::unexpected(names[i].error());
      note_damage(batch_[i].location.offset, names[i].error());
      continue;
    }
    bool is_wanted = is_of_file(names[i]->kind);
    if (ask_before_) {
      NACRE_ASSIGN(is_wanted, is_live(batch_[i], *names[i]));
    }
    if (!is_wanted) continue;
    moves.push_back(Move{.name = *names[i], .from = batch_[i].location, .to = {}});
    live.push_back(prepared.records[i]);
    bytes += prepared.records[i].size();
  }
  // This keeps the records' segment until the rows name the records.
  NACRE_ASSIGN(const auto appended, store_.append_sealed(live, mover_.lane, mover_.page_cache));
  if (!appended) return std::nullopt;
  for (std::size_t i = 0; i < moves.size(); ++i)
    moves[i].to = appended->records[i].location;
  appended_bytes_ = bytes;
  NACRE_TRY(switch_rows(moves));
  return names.size();
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
        const Naming naming = naming_of(row, move.from, move.name);
        if (naming == Naming::other_one) note_taken_for_another(move.from);
        if (naming != Naming::this_one) return std::nullopt;
        ++outcome_.moved_records;
        outcome_.moved_bytes += move.to.stored_size;
        return moved(row, move.from, move.to);
      };
      changes.push_back(RowChange{.index = moves[last].name.chunk, .apply = apply});
    }
    // A file that is being deleted takes its rows with it.
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
                                          Mover& mover) {
  Pass pass(store, map, keeper, victim, pace, mover);
  if (mover.memory != nullptr) {
    NACRE_ASSIGN(const bool is_done, pass.move_directly());
    if (is_done) return pass.outcome();
  }
  NACRE_TRY(pass.walk());
  return pass.outcome();
}

bool note_outcome(SegmentStore& store, const Victim& victim, const CompactionOutcome& outcome) {
  const bool is_immovable = outcome.damaged_records > 0 && victim.segment->live_bytes > 0;
  store.note_compacted(victim, is_immovable);
  if (is_immovable) {
    spdlog::error(
        "{}; {} such places in {}, which stays as it is: run fsck.nacre --deep to see which files "
        "are hit",
        outcome.first_damage.message, outcome.damaged_records, segment_path(victim.number));
  }
  return is_immovable;
}

}  // namespace nacre::fs
