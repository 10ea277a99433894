// SPDX-License-Identifier: Apache-2.0
// The structure check of the table segments: files, headers, sessions, live counts, and the places
// that chunk rows name.
#include <limits>
#include <map>

#include <fmt/format.h>

#include "fs/check/deep_check.h"
#include "fs/check/record_index.h"
#include "fs/check/structure_parts.h"
#include "fs/store/segment_table.h"
#include "fs/store/segment_walk.h"

namespace nacre::fs {

using metadata::SegmentNumber;
using metadata::SegmentRow;
using metadata::Table;

namespace {

constexpr std::uint64_t record_size_bytes_min =
    engine::record_header_size_bytes + sizeof(engine::RecordBodyHeader);

std::string describe_place(const metadata::RecordLocation& location) {
  return fmt::format("{} offset {}", segment_path(location.segment), location.offset);
}

}  // namespace

Result<> StructureCheck::check_segments() {
  std::map<SegmentNumber, SegmentRow> rows;
  NACRE_TRY(scan(Table::segments, [&](std::string_view key, std::string_view value) {
    const auto number = metadata::decode_segment_key(key);
    const auto row = metadata::decode_segment_row(value);
    if (!number || !row) {
      return undecodable(Table::segments, key, number ? row.error() : number.error());
    }
    ++counts_.segment_count;
    segment_number_max_ = std::max(segment_number_max_, number->value);
    rows.emplace(*number, *row);
    const auto session = system_.sessions.find(row->salt);
    if (session == system_.sessions.end()) {
      problem(Verdict::rolled_back, fmt::format("segment {} belongs to a write session that the "
                                                "database does not know",
                                                number->value));
    } else if (session->second.epoch != row->epoch) {
      wrong(fmt::format("segment {} has epoch {}, its write session {}", number->value, row->epoch,
                        session->second.epoch));
    }
  }));

  NACRE_ASSIGN(const auto index, RecordIndex::build(context_.database));
  counts_.record_count = index.record_count();
  std::map<SegmentNumber, std::uint64_t> live;
  const auto walked = index.for_each_segment([&](SegmentNumber number,
                                                 std::span<const NamedRecord> named) -> Result<> {
    const auto row = rows.find(number);
    std::uint64_t& live_bytes = live[number];
    const NamedRecord* before = nullptr;
    std::uint64_t before_end = metadata::segment_header_size_bytes;
    for (const auto& record : named) {
      const auto& location = record.location;
      const auto inode =
          is_of_file(record.name.kind) ? std::optional(record.name.inode) : std::nullopt;
      live_bytes += location.stored_size;
      if (row == rows.end()) {
        problem(
            Verdict::missing,
            fmt::format("a row names {}, but there is no such segment", describe_place(location)),
            inode);
        continue;
      }
      const std::uint64_t committed = row->second.committed_size;
      if (location.offset > committed || location.stored_size > committed - location.offset) {
        problem(Verdict::missing,
                fmt::format("a row names {} bytes at {}, but only {} bytes are committed",
                            location.stored_size, describe_place(location), committed),
                inode);
        continue;
      }
      if (location.offset < before_end || location.stored_size < record_size_bytes_min) {
        wrong(before == nullptr || location.stored_size < record_size_bytes_min
                  ? fmt::format("a row names {} bytes at {}: no record can lie there",
                                location.stored_size, describe_place(location))
                  : fmt::format("rows of {} and {} name overlapping records at {}",
                                describe(before->name), describe(record.name),
                                describe_place(location)),
              inode);
      }
      before = &record;
      before_end = location.offset + location.stored_size;
    }
    return {};
  });
  NACRE_TRY(walked);
  for (const auto& [number, row] : rows) {
    const auto found = live.find(number);
    const std::uint64_t live_bytes = found == live.end() ? 0 : found->second;
    counts_.live_bytes += live_bytes;
    if (row.live_bytes != live_bytes) {
      wrong(fmt::format("segment {} counts {} live bytes, rows name {}", number.value,
                        row.live_bytes, live_bytes));
    }
  }
  check_segment_files(rows);
  return {};
}

// The number of a segment that an interrupted backup has copied under this name, if the row of that
// number matches the file.
std::optional<SegmentNumber> StructureCheck::arriving_segment_of(
    std::string_view name, const std::map<SegmentNumber, SegmentRow>& rows) {
  if (!name.ends_with(arriving_suffix)) return std::nullopt;
  name.remove_suffix(std::string_view(".new").size());
  const auto number = segment_number_of(name);
  const auto row = number ? rows.find(*number) : rows.end();
  if (row == rows.end()) return std::nullopt;
  const auto path = find_segment(context_.directory, *number, row->second);
  if (!path || *path != arriving_segment_path(*number)) return std::nullopt;
  context_.findings.add({.severity = Severity::note,
                         .what = "from a backup that was interrupted: the next one, or a mount, "
                                 "gives it its name",
                         .file = *path});
  return number;
}

void StructureCheck::check_segment_files(const std::map<SegmentNumber, SegmentRow>& rows) {
  const auto names = context_.directory.list("segments");
  if (!names) {
    context_.findings.add_error(names.error(), "segments");
    return;
  }
  std::map<SegmentNumber, bool> files;
  for (const auto& name : *names) {
    if (const auto number = segment_number_of(name)) {
      files[*number] = true;
    } else if (const auto coming = arriving_segment_of(name, rows)) {
      files[*coming] = true;
    } else {
      context_.findings.add({.severity = Severity::note,
                             .what = "this file is no part of the volume",
                             .file = "segments/" + name});
    }
  }
  for (const auto& [number, row] : rows) {
    if (files.erase(number) != 0) {
      check_segment_header(number, row);
    } else {
      context_.findings.add(
          {.verdict = Verdict::missing,
           .what = fmt::format("the segment is gone, with {} bytes of live data", row.live_bytes),
           .file = segment_path(number)});
    }
  }
  for (const auto& [number, present] : files)
    check_unknown_segment(number);
}

void StructureCheck::check_segment_header(SegmentNumber number, const SegmentRow& row) {
  const std::string path =
      find_segment(context_.directory, number, row).value_or(segment_path(number));
  const auto file = context_.directory.open(path, metadata::OpenMode::read);
  if (!file) return context_.findings.add_error(file.error(), path);
  const auto size = (*file)->size();
  if (!size) return context_.findings.add_error(size.error(), path);
  if (*size < row.committed_size) {
    context_.findings.add(
        {.verdict = Verdict::missing,
         .what = fmt::format("the file has {} of {} committed bytes", *size, row.committed_size),
         .file = path,
         .offset = *size});
  } else if (*size > row.committed_size) {
    context_.findings.add({.severity = Severity::note,
                           .what = fmt::format("{} bytes beyond the last commit: the next mount "
                                               "cuts them off",
                                               *size - row.committed_size),
                           .file = path,
                           .offset = row.committed_size});
  }
  const auto header = read_segment_header(**file, context_.volume_id, number);
  if (!header) return context_.findings.add_error(header.error(), path, 0);
  if (header->salt != row.salt || header->epoch != row.epoch) {
    context_.findings.add({.verdict = Verdict::rolled_back,
                           .what = "the file was made in another write session than its row says",
                           .file = path,
                           .offset = 0});
  }
}

// An unclean stop leaves segments that no commit names, with or without a header; the next mount
// removes them. If a segment was made in no session of this volume, a mount refuses the volume.
void StructureCheck::check_unknown_segment(SegmentNumber number) {
  const std::string path = segment_path(number);
  const auto file = context_.directory.open(path, metadata::OpenMode::read);
  if (!file) return context_.findings.add_error(file.error(), path);
  const auto header = read_segment_header(**file);
  if (header && header->volume_id != context_.volume_id) {
    context_.findings.add({.verdict = Verdict::tampered,
                           .what = "the segment comes from another volume: move this file away",
                           .file = path});
    return;
  }
  if (header && !system_.sessions.contains(header->salt)) {
    context_.findings.add({.verdict = Verdict::rolled_back,
                           .what = "the segment belongs to a write session that the database does "
                                   "not know: db/ was put back to an older state. Put the newest "
                                   "db/ back, or move this file away",
                           .file = path});
    return;
  }
  context_.findings.add({.severity = Severity::note,
                         .what = "no commit names this segment: the next mount removes it",
                         .file = path});
}

}  // namespace nacre::fs
