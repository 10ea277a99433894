// SPDX-License-Identifier: Apache-2.0
// The repair of the table segments and of the segments' headers, before records are read. Lost rows
// are made anew from the files.
#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "fs/check/record_index.h"
#include "fs/repair/repair_parts.h"
#include "fs/store/segment_table.h"
#include "fs/store/segment_walk.h"
#include "metadata/format/checkpoint.h"

namespace nacre::fs {

using metadata::SegmentNumber;
using metadata::SegmentRow;
using metadata::Table;

namespace {

class IgnoreRecords final : public SegmentVisitor {
 public:
  Result<> record(std::uint64_t, const engine::RecordHeader&, ByteView) override { return {}; }
  Result<> damage(std::uint64_t, std::uint64_t, const Error&) override { return {}; }
  void passed(std::uint64_t) override {}
};

class SegmentRepair {
 public:
  explicit SegmentRepair(RepairContext& context) : context_(context) {}

  Result<> run() {
    NACRE_TRY(erase_checkpoints_without_sense());
    NACRE_TRY(read_rows());
    NACRE_TRY(make_missing_rows());
    for (auto& [number, row] : rows_)
      NACRE_TRY(repair(number, row));
    return check_other_files();
  }

 private:
  Result<> erase_checkpoints_without_sense();
  Result<> read_rows();
  Result<> make_missing_rows();
  Result<> make_row(SegmentNumber number, std::span<const NamedRecord> named);
  Result<> repair(SegmentNumber number, SegmentRow& row);
  Result<> take_session_of_file(SegmentNumber number, SegmentRow& row);
  Result<> repair_header(SegmentNumber number, const SegmentRow& row, const std::string& path,
                         metadata::BackingFile& file);
  Result<> check_other_files();

  RepairContext& context_;
  std::map<SegmentNumber, SegmentRow> rows_;
};

Result<> SegmentRepair::erase_checkpoints_without_sense() {
  std::vector<std::string> bad;
  NACRE_TRY(context_.scan(Table::system, [&](std::string_view key, std::string_view value) {
    if (!key.starts_with(metadata::system_key_checkpoint_prefix)) return;
    if (!metadata::decode_checkpoint_key(key) || !metadata::decode_checkpoint_row(value)) {
      bad.emplace_back(key);
    }
  }));
  for (const auto& key : bad)
    NACRE_TRY(context_.draft.erase(Table::system, key, "the row of a checkpoint makes no sense"));
  return {};
}

Result<> SegmentRepair::read_rows() {
  std::vector<std::string> bad;
  NACRE_TRY(context_.scan(Table::segments, [&](std::string_view key, std::string_view value) {
    const auto number = metadata::decode_segment_key(key);
    const auto row = metadata::decode_segment_row(value);
    if (number && row) {
      rows_.emplace(*number, *row);
    } else {
      bad.emplace_back(key);
    }
  }));
  for (const auto& key : bad)
    NACRE_TRY(context_.draft.erase(Table::segments, key, "the row of a segment makes no sense"));
  return {};
}

Result<> SegmentRepair::make_missing_rows() {
  NACRE_ASSIGN(const auto index, RecordIndex::build(context_.database()));
  std::map<SegmentNumber, std::vector<NamedRecord>> missing;
  NACRE_TRY(index.for_each_segment(
      [&](SegmentNumber number, std::span<const NamedRecord> named) -> Result<> {
        if (!rows_.contains(number)) missing[number].assign(named.begin(), named.end());
        return {};
      }));
  for (const auto& [number, named] : missing)
    NACRE_TRY(make_row(number, named));
  return {};
}

// Makes the row of a segment that chunks name, from the good records in its file.
Result<> SegmentRepair::make_row(SegmentNumber number, std::span<const NamedRecord> named) {
  const std::string path = segment_path(number);
  const auto file = context_.directory.open(path, metadata::OpenMode::read);
  if (!file) return {};  // its records are reported as missing
  const auto header = read_segment_header(**file, context_.volume.keys->volume_id(), number);
  const auto size = (*file)->size();
  if (!header || !size) return {};
  std::vector<std::uint64_t> anchors;
  for (const auto& record : named)
    anchors.push_back(record.location.offset);
  IgnoreRecords ignore;
  const SegmentBounds bounds{.file_size = *size, .committed_size = {}, .anchors = anchors};
  NACRE_ASSIGN(const auto end, walk_segment(**file, bounds, ignore));
  const SegmentRow row{.committed_size = end, .epoch = header->epoch, .salt = header->salt};
  rows_.emplace(number, row);
  return context_.draft.put(
      Table::segments, metadata::segment_key(number), metadata::encode(row),
      fmt::format("segment {} had no row: made anew from its file", number.value));
}

Result<> SegmentRepair::repair(SegmentNumber number, SegmentRow& row) {
  const SegmentRow before = row;
  NACRE_ASSIGN(const auto session,
               context_.database().get(Table::system, metadata::session_key_of(row.salt)));
  if (session) {
    const auto known = metadata::decode_session_row(*session);
    if (known) row.epoch = known->epoch;
  } else {
    NACRE_TRY(take_session_of_file(number, row));
  }
  const auto path = find_segment(context_.directory, number, row);
  const auto file = path ? context_.directory.open(*path, metadata::OpenMode::read)
                         : tl::unexpected(path.error());
  if (file) {
    const auto size = (*file)->size();
    if (!size) {
      context_.leave(Verdict::unreadable, size.error().message, *path);
    } else if (*size < metadata::segment_header_size_bytes) {
      // Nothing of the segment is left. Its row is removed when no chunk names it any more.
      Bytes bytes(*size);
      NACRE_TRY((*file)->read(0, bytes));
      context_.draft.add(FileEdit{.path = *path, .before = bytes, .after = {}},
                         "the segment ends within its header");
    } else {
      row.committed_size = std::min(row.committed_size, *size);
      NACRE_TRY(repair_header(number, row, *path, **file));
    }
  } else if (file.error().code != ErrorCode::not_found && file.error().code != ErrorCode::missing) {
    context_.leave(Verdict::unreadable, file.error().message, segment_path(number));
  }
  row.committed_size =
      std::max<std::uint64_t>(row.committed_size, metadata::segment_header_size_bytes);
  const std::string value = metadata::encode(row);
  if (value == metadata::encode(before)) return {};
  return context_.draft.put(
      Table::segments, metadata::segment_key(number), value,
      row.committed_size == before.committed_size
          ? fmt::format("segment {} named another write session than its file", number.value)
          : fmt::format("segment {} has {} of {} committed bytes", number.value, row.committed_size,
                        before.committed_size));
}

// If the row names no known session, it gets the session in the file's header, if that is known.
Result<> SegmentRepair::take_session_of_file(SegmentNumber number, SegmentRow& row) {
  const auto file = context_.directory.open(segment_path(number), metadata::OpenMode::read);
  if (!file) return {};
  const auto header = read_segment_header(**file, context_.volume.keys->volume_id(), number);
  if (!header) return {};
  NACRE_ASSIGN(const auto session,
               context_.database().get(Table::system, metadata::session_key_of(header->salt)));
  if (!session) return {};
  row.salt = header->salt;
  row.epoch = header->epoch;
  return {};
}

Result<> SegmentRepair::repair_header(SegmentNumber number, const SegmentRow& row,
                                      const std::string& path, metadata::BackingFile& file) {
  const auto header = read_segment_header(file, context_.volume.keys->volume_id(), number);
  if (header && header->salt == row.salt && header->epoch == row.epoch) return {};
  if (!header && verdict_of(header.error().code) == Verdict::unreadable) {
    context_.leave(Verdict::unreadable, header.error().message, path);
    return {};
  }
  BytesEdit edit{.path = path, .before = Bytes(metadata::segment_header_size_bytes), .after = {}};
  NACRE_TRY(file.read(0, edit.before));
  const auto right =
      metadata::encode(metadata::SegmentHeader{.volume_id = context_.volume.keys->volume_id(),
                                               .segment = number,
                                               .salt = row.salt,
                                               .epoch = row.epoch});
  edit.after.assign(right.begin(), right.end());
  context_.draft.add(std::move(edit), header ? "the header is that of another write session"
                                             : header.error().message);
  return {};
}

// Checks files that no row names. The next mount removes those that an unclean stop left. A segment
// of an unknown session may hold data of a newer db/ than the present one, so it is reported.
Result<> SegmentRepair::check_other_files() {
  NACRE_ASSIGN(const auto names, context_.directory.list("segments"));
  for (const std::string& name : names) {
    const auto number = segment_number_of(name);
    if (!number || rows_.contains(*number)) continue;
    const std::string path = segment_path(*number);
    const auto file = context_.directory.open(path, metadata::OpenMode::read);
    if (!file) {
      context_.leave(Verdict::unreadable, file.error().message, path);
      continue;
    }
    const auto header = read_segment_header(**file);
    if (!header) continue;
    if (header->volume_id != context_.volume.keys->volume_id()) {
      context_.leave(Verdict::tampered,
                     "the segment comes from another volume: move this file away", path);
      continue;
    }
    NACRE_ASSIGN(const auto session,
                 context_.database().get(Table::system, metadata::session_key_of(header->salt)));
    if (!session) {
      context_.leave(Verdict::rolled_back,
                     "the segment belongs to a write session that the database does not know: db/ "
                     "is older than it. Put the newest db/ back, or move this file away",
                     path);
    }
  }
  return {};
}

}  // namespace

Result<> repair_segment_rows(RepairContext& context) {
  return SegmentRepair(context).run();
}

}  // namespace nacre::fs
