// SPDX-License-Identifier: Apache-2.0
// The repair of rows that name records. The deep check walks the segments, and each piece of a
// chunk that it cannot open is lost.
//
// A damaged stretch of a segment gets a header and a checksum that fit it, and keeps its other
// bytes: it becomes a record that no row names and no key opens. So all checksums of the segment
// are right again, also for a reader without keys, and a walk passes the stretch reliably.
#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "fs/check/deep_check.h"
#include "fs/repair/repair_parts.h"
#include "fs/store/segment_table.h"
#include "gpu_engine/checksum/crc32.h"
#include "metadata/format/checkpoint.h"

namespace nacre::fs {

using metadata::ChunkPatch;
using metadata::ChunkRow;
using metadata::RecordKind;
using metadata::SegmentNumber;
using metadata::SegmentRow;
using metadata::Table;

namespace {

// The counter of such a record. No session reaches it with its first salt.
constexpr std::uint32_t filler_counter = ~0u;

struct BadPiece {
  metadata::RecordName name;
  metadata::RecordLocation location;
  Verdict verdict = Verdict::rot;
  std::string why;
};

struct Stretch {
  SegmentNumber segment;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
};

class RecordRepair final : public ChunkVisitor {
 public:
  explicit RecordRepair(RepairContext& context)
      : context_(context), keys_(context.database(), context.volume.keys) {}

  Result<> run() {
    NACRE_TRY(find_known_sessions());
    NACRE_ASSIGN(deep_, DeepCheck::create(context_.engine, keys_, DeepCheckMode::open, findings_));
    deep_->on_bad_record([this](const NamedRecord& named, Verdict verdict, std::string_view what) {
      if (is_of_file(named.name.kind)) {
        bad_[{named.name.inode, named.name.chunk}].push_back(
            {named.name, named.location, verdict, std::string(what)});
      } else if (verdict != Verdict::unreadable) {
        bad_checkpoints_.emplace(named.name.inode.value, what);
      }
    });
    NACRE_TRY(walk_chunks(context_.directory, context_.database(),
                          context_.volume.keys->volume_id(), *this, context_.progress));
    deep_->finish();
    for (const auto& [chunk, pieces] : bad_)
      NACRE_TRY(lose(chunk.first, chunk.second, pieces));
    for (const Stretch& stretch : stretches_)
      NACRE_TRY(fill(stretch));
    for (const auto& [number, why] : bad_checkpoints_) {
      NACRE_TRY(context_.draft.erase(
          Table::system, metadata::checkpoint_key(metadata::CheckpointNumber{number}),
          fmt::format("a checkpoint names a bad record, and is of no use without it: {}", why)));
    }
    return enter_sessions();
  }

  Result<> begin_segment(SegmentNumber number, const SegmentRow& row) override {
    rows_.emplace(number, row);
    return deep_->begin_segment(number, row);
  }
  Result<> record(SegmentNumber segment, std::uint64_t offset, const engine::RecordHeader& header,
                  ByteView bytes, std::span<const NamedRecord> named) override {
    note_session(header, named);
    return deep_->record(segment, offset, header, bytes, named);
  }
  Result<> damage(SegmentNumber segment, std::uint64_t offset, std::uint64_t size,
                  const Error& error, std::span<const NamedRecord> named) override {
    if (verdict_of(error.code) == Verdict::unreadable) {
      context_.leave(Verdict::unreadable,
                     fmt::format("{} bytes at offset {} cannot be read ({}). They may come back: "
                                 "copy the volume to a sound disk and repair it there",
                                 size, offset, error.message),
                     segment_path(segment));
    } else {
      stretches_.push_back({segment, offset, size});
    }
    return deep_->damage(segment, offset, size, error, named);
  }
  Result<> misplaced(const NamedRecord& named, const Error& error) override {
    return deep_->misplaced(named, error);
  }
  Result<> unusable_segment(SegmentNumber number, const Error& error) override {
    return deep_->unusable_segment(number, error);
  }

 private:
  void note_session(const engine::RecordHeader& header, std::span<const NamedRecord> named);
  Result<> lose(metadata::InodeNumber inode, metadata::ChunkIndex index,
                const std::vector<BadPiece>& pieces);
  Result<> fill(Stretch stretch);
  Result<> fill(const Stretch& stretch, const std::string& path, metadata::BackingFile& file,
                const SegmentRow& row);
  Result<> find_known_sessions();
  Result<> enter_sessions();
  Result<> enter_sessions_of_rows();

  RepairContext& context_;
  RecordKeys keys_;
  std::unique_ptr<DeepCheck> deep_;
  FindingList findings_;  // their content is in the plan
  std::map<std::pair<metadata::InodeNumber, metadata::ChunkIndex>, std::vector<BadPiece>> bad_;
  std::map<std::uint64_t, std::string> bad_checkpoints_;  // by number
  std::vector<Stretch> stretches_;
  std::map<SegmentNumber, SegmentRow> rows_;
  struct Session {
    metadata::SessionRow row;
    NamedRecord witness;
  };
  std::set<engine::SessionSalt> known_salts_;  // sessions that have a row
  std::set<std::uint64_t> known_ordinals_;
  // Sessions without a row that belong to the volume, by ordinal.
  std::map<engine::SessionSalt, std::map<std::uint64_t, Session>> sessions_;
};

Result<> RecordRepair::lose(metadata::InodeNumber inode, metadata::ChunkIndex index,
                            const std::vector<BadPiece>& pieces) {
  const std::string key = metadata::chunk_key(inode, index);
  NACRE_ASSIGN(const auto value, context_.database().get(Table::chunks, key));
  if (!value) return {};
  NACRE_ASSIGN(const auto decoded, metadata::decode_chunk_map_row(*value));
  if (!decoded.chunk) return {};
  const ChunkRow& old = *decoded.chunk;
  const auto bad_at = [&](const std::optional<metadata::RecordLocation>& location,
                          metadata::RecordVersion version, std::uint32_t offset, RecordKind kind) {
    return std::any_of(pieces.begin(), pieces.end(), [&](const BadPiece& piece) {
      return piece.verdict != Verdict::unreadable && location == piece.location &&
             piece.name.version == version && piece.name.offset == offset &&
             piece.name.kind == kind;
    });
  };
  ChunkRow row = lose_pieces(
      old,
      [&](const ChunkPatch* patch) {
        return patch == nullptr
                   ? bad_at(old.base->location, old.base->version, 0, RecordKind::chunk)
                   : bad_at(patch->location, patch->version, patch->offset, RecordKind::patch);
      },
      context_.chunk_size_bytes());
  const BadPiece& first = pieces.front();
  if (metadata::encode(row) == metadata::encode(old)) {
    context_.leave(first.verdict, fmt::format("{}: {}", describe(first.name), first.why),
                   segment_path(first.location.segment));
    return {};
  }
  const std::string why = fmt::format("{} offset {}: {}", segment_path(first.location.segment),
                                      first.location.offset, first.why);
  NACRE_ASSIGN(auto after,
               finish_row(context_, inode, index, std::move(row), &old, first.verdict, why));
  return context_.draft.put(
      Table::chunks, key, std::move(after),
      fmt::format("chunk {} of inode {} names a bad record: {}", index.value, inode.value, why),
      inode);
}

Result<> RecordRepair::fill(Stretch stretch) {
  const auto row = rows_.find(stretch.segment);
  if (row == rows_.end()) return {};
  NACRE_ASSIGN(const std::string path,
               find_segment(context_.directory, stretch.segment, row->second));
  NACRE_ASSIGN(const auto file, context_.directory.open(path, metadata::OpenMode::read));
  constexpr std::uint64_t least = engine::record_size_bytes_min;
  if (stretch.size < least) {
    if (stretch.offset + stretch.size == row->second.committed_size) {
      row->second.committed_size = stretch.offset;
      return context_.draft.put(
          Table::segments, metadata::segment_key(stretch.segment), metadata::encode(row->second),
          fmt::format("segment {} ends within a record", stretch.segment.value));
    }
    context_.leave(Verdict::rot,
                   fmt::format("{} damaged bytes at offset {} are too few to be put right; no file "
                               "uses them",
                               stretch.size, stretch.offset),
                   path);
    return {};
  }
  while (stretch.size != 0) {
    Stretch part = stretch;
    part.size = std::min<std::uint64_t>(part.size, engine::record_size_bytes_max);
    const std::uint64_t rest = stretch.size - part.size;
    if (rest != 0 && rest < least) part.size -= least;
    NACRE_TRY(fill(part, path, *file, row->second));
    stretch.offset += part.size;
    stretch.size -= part.size;
  }
  return {};
}

Result<> RecordRepair::fill(const Stretch& stretch, const std::string& path,
                            metadata::BackingFile& file, const SegmentRow& row) {
  Bytes bytes(stretch.size);
  NACRE_ASSIGN(const auto got, file.read(stretch.offset, bytes));
  if (got != bytes.size()) {
    return fail(ErrorCode::io, fmt::format("{}: the file became shorter", path));
  }
  engine::RecordHeader header{.magic = engine::record_magic,
                              .version = engine::record_version,
                              .reserved_a = 0,
                              .reserved_b = 0,
                              .stored_size = static_cast<std::uint32_t>(stretch.size),
                              .epoch = row.epoch,
                              .salt = row.salt,
                              .counter = filler_counter,
                              .crc32 = 0};
  Bytes after(engine::record_header_size_bytes);
  store_le(after.data(), header);
  const std::uint32_t head =
      engine::crc32(0, ByteView(after).first(engine::record_aad_header_size_bytes));
  header.crc32 = engine::crc32(head, ByteView(bytes).subspan(engine::record_header_size_bytes));
  store_le(after.data(), header);
  bytes.resize(after.size());
  context_.draft.add(
      BytesEdit{.path = path, .offset = stretch.offset, .before = bytes, .after = after},
      fmt::format("{} damaged bytes get the header of a record that nobody names", stretch.size));
  return {};
}

// Notes a session whose row is gone. A record has the session's salt and epoch, and the row that
// names the record has the session's number in its version. Some records may have versions of other
// sessions.
void RecordRepair::note_session(const engine::RecordHeader& header,
                                std::span<const NamedRecord> named) {
  if (named.empty() || !is_of_file(named.front().name.kind) || known_salts_.contains(header.salt))
    return;
  const std::uint64_t ordinal =
      named.front().name.version.value >> metadata::record_version_session_shift;
  if (!sessions_.contains(header.salt)) {
    // If the session of this ordinal has a row, the record is from another branch of the volume's
    // history, and it must not be made genuine by a new row.
    if (ordinal == 0 || known_ordinals_.contains(ordinal)) return;
    keys_.admit(header.salt, header.epoch);
  }
  sessions_[header.salt].try_emplace(
      ordinal,
      Session{.row = {.ordinal = ordinal, .epoch = header.epoch}, .witness = named.front()});
}

Result<> RecordRepair::find_known_sessions() {
  constexpr std::string_view prefix = metadata::system_key_session_prefix;
  NACRE_TRY(context_.scan(Table::system, [&](std::string_view key, std::string_view value) {
    if (!key.starts_with(prefix)) return;
    const auto row = metadata::decode_session_row(value);
    if (!row) return;
    known_ordinals_.insert(row->ordinal);
    engine::SessionSalt salt;
    if (key.size() != prefix.size() + salt.size()) return;
    std::copy_n(key.begin() + prefix.size(), salt.size(), salt.begin());
    known_salts_.insert(salt);
  }));
  // A segment's row proves that the session which made the segment belongs to the volume.
  return context_.scan(Table::segments, [&](std::string_view, std::string_view value) {
    const auto row = metadata::decode_segment_row(value);
    if (!row || known_salts_.contains(row->salt)) return;
    keys_.admit(row->salt, row->epoch);
    sessions_.try_emplace(row->salt);
  });
}

Result<> RecordRepair::enter_sessions() {
  for (const auto& [salt, sessions] : sessions_) {
    // Most records have versions of their own session; the others have versions of earlier
    // sessions.
    const auto session = std::find_if(sessions.rbegin(), sessions.rend(), [&](const auto& one) {
      const auto& name = one.second.witness.name;
      return one.first != 0 && !known_ordinals_.contains(one.first) &&
             !bad_.contains({name.inode, name.chunk});
    });
    if (session == sessions.rend()) continue;
    known_ordinals_.insert(session->first);
    NACRE_TRY(context_.draft.put(
        Table::system, metadata::session_key_of(salt), metadata::encode(session->second.row),
        fmt::format("write session {} had no row: made anew from its records", session->first)));
  }
  return enter_sessions_of_rows();
}

// A session of which all content lies in rows has left its salt nowhere. It gets a new one, which
// no record has.
Result<> RecordRepair::enter_sessions_of_rows() {
  std::set<std::uint64_t> unknown;
  NACRE_TRY(context_.scan(Table::chunks, [&](std::string_view key, std::string_view value) {
    const auto place = metadata::decode_chunk_key(key);
    const auto row = metadata::decode_chunk_map_row(value);
    if (!place || !row || !row->chunk || bad_.contains({place->inode, place->index})) return;
    for (const auto& patch : row->chunk->patches) {
      const std::uint64_t ordinal = patch.version.value >> metadata::record_version_session_shift;
      if (!patch.location && ordinal != 0 && !known_ordinals_.contains(ordinal)) {
        unknown.insert(ordinal);
      }
    }
  }));
  for (const std::uint64_t ordinal : unknown) {
    engine::SessionSalt salt;
    context_.draw.fill(salt);
    const metadata::SessionRow row{.ordinal = ordinal,
                                   .epoch = context_.volume.keys->current_epoch_number()};
    NACRE_TRY(context_.draft.put(
        Table::system, metadata::session_key_of(salt), metadata::encode(row),
        fmt::format("write session {} had no row: made anew, since rows hold its content",
                    ordinal)));
  }
  return {};
}

}  // namespace

Result<> repair_records(RepairContext& context) {
  return RecordRepair(context).run();
}

}  // namespace nacre::fs
