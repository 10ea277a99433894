// SPDX-License-Identifier: Apache-2.0
#include "fs/check/chunk_walker.h"

#include <algorithm>
#include <map>
#include <vector>

#include <fmt/format.h>

#include "fs/store/segment_table.h"
#include "fs/store/segment_walk.h"

namespace nacre::fs {

using metadata::SegmentNumber;
using metadata::SegmentRow;
using metadata::Table;

namespace {

// Joins the records of one segment with the places that rows name, both in the order of offsets.
class Join final : public SegmentVisitor {
 public:
  Join(SegmentNumber segment, std::span<const NamedRecord> named, ChunkVisitor& visitor,
       std::function<void(std::uint64_t)> passed)
      : segment_(segment), named_(named), visitor_(visitor), passed_(std::move(passed)) {}

  Result<> record(std::uint64_t offset, const engine::RecordHeader& header,
                  ByteView bytes) override {
    NACRE_TRY(skip_until(offset));
    const auto here = take_until(offset + 1);
    const auto fits = std::partition_point(here.begin(), here.end(), [&](const NamedRecord& named) {
      return named.location.stored_size < header.stored_size;
    });
    const auto past = std::find_if(fits, here.end(), [&](const NamedRecord& named) {
      return named.location.stored_size != header.stored_size;
    });
    NACRE_TRY(visitor_.record(segment_, offset, header, bytes, {fits, past}));
    for (auto named = here.begin(); named != here.end(); ++named) {
      if (named == fits) named = past;
      if (named == here.end()) break;
      NACRE_TRY(visitor_.misplaced(
          *named,
          {ErrorCode::tampered, fmt::format("a row says that this record has {} bytes, its "
                                            "header says {}",
                                            named->location.stored_size, header.stored_size)}));
    }
    return skip_until(offset + header.stored_size);
  }

  Result<> damage(std::uint64_t offset, std::uint64_t size, const Error& error) override {
    NACRE_TRY(skip_until(offset));
    return visitor_.damage(segment_, offset, size, error, take_until(offset + size));
  }

  void passed(std::uint64_t size) override { passed_(size); }

  // Reports rows that name places before offset at which no record begins.
  Result<> skip_until(std::uint64_t offset) {
    for (const auto& named : take_until(offset)) {
      NACRE_TRY(visitor_.misplaced(named, {ErrorCode::tampered,
                                           "no record begins where a row "
                                           "names one"}));
    }
    return {};
  }

  Result<> finish(std::uint64_t end) {
    NACRE_TRY(skip_until(end));
    for (const auto& named : named_) {
      NACRE_TRY(visitor_.misplaced(
          named, {ErrorCode::missing, "a row names a record beyond the end of the segment"}));
    }
    return {};
  }

 private:
  std::span<const NamedRecord> take_until(std::uint64_t offset) {
    const auto end = std::partition_point(
        named_.begin(), named_.end(),
        [&](const NamedRecord& named) { return named.location.offset < offset; });
    const std::span<const NamedRecord> taken(named_.begin(), end);
    named_ = named_.subspan(taken.size());
    return taken;
  }

  SegmentNumber segment_;
  std::span<const NamedRecord> named_;
  ChunkVisitor& visitor_;
  std::function<void(std::uint64_t)> passed_;
};

class Walker {
 public:
  Walker(metadata::BackingDirectory& directory, const engine::VolumeId& volume_id,
         ChunkVisitor& visitor, const ProgressFunction& progress)
      : directory_(directory), volume_id_(volume_id), visitor_(visitor), progress_(progress) {}

  Result<> run(const metadata::Database& database) {
    NACRE_TRY(
        database.scan(Table::segments, "", "", [&](std::string_view key, std::string_view value) {
          const auto number = metadata::decode_segment_key(key);
          const auto row = metadata::decode_segment_row(value);
          if (number && row) {
            rows_.emplace(*number, *row);
            progress_state_.total += row->committed_size;
          }
          return true;
        }));
    NACRE_ASSIGN(const auto index, RecordIndex::build(database));
    auto next = rows_.begin();
    const auto walked = index.for_each_segment(
        [&](SegmentNumber number, std::span<const NamedRecord> named) -> Result<> {
          for (; next != rows_.end() && next->first < number; ++next) {
            NACRE_TRY(walk(next->first, next->second, {}));
          }
          if (next == rows_.end() || next->first != number) {
            return give_up(
                number, {ErrorCode::missing, "rows name this segment, but it has no row"}, named);
          }
          const auto& row = next->second;
          ++next;
          return walk(number, row, named);
        });
    NACRE_TRY(walked);
    for (; next != rows_.end(); ++next)
      NACRE_TRY(walk(next->first, next->second, {}));
    return {};
  }

 private:
  Result<> walk(SegmentNumber number, const SegmentRow& row, std::span<const NamedRecord> named) {
    NACRE_TRY(visitor_.begin_segment(number, row));
    const auto path = find_segment(directory_, number, row);
    const auto file =
        path ? directory_.open(*path, metadata::OpenMode::read) : tl::unexpected(path.error());
    if (!file) {
      Error error = file.error();
      if (error.code == ErrorCode::not_found) error = {ErrorCode::missing, "the file is not there"};
      return give_up(number, error, named);
    }
    const auto size = (*file)->size();
    if (!size) return give_up(number, size.error(), named);
    if (*size < row.committed_size) {
      NACRE_TRY(visitor_.unusable_segment(
          number, {ErrorCode::missing, fmt::format("the file has {} of {} committed bytes", *size,
                                                   row.committed_size)}));
    }
    // Records have headers of their own, so a damaged header of the segment does not hide them.
    if (const auto header = read_segment_header(**file, volume_id_, number); !header) {
      NACRE_TRY(visitor_.unusable_segment(number, header.error()));
    } else if (header->salt != row.salt || header->epoch != row.epoch) {
      NACRE_TRY(
          visitor_.unusable_segment(number, {ErrorCode::rolled_back,
                                             "the file was made in another write session than its "
                                             "row says"}));
    }
    std::vector<std::uint64_t> anchors;
    anchors.reserve(named.size());
    for (const auto& record : named)
      anchors.push_back(record.location.offset);
    const SegmentBounds bounds{
        .file_size = *size, .committed_size = row.committed_size, .anchors = anchors};
    Join join(number, named, visitor_, [&](std::uint64_t bytes) { advance(bytes); });
    NACRE_ASSIGN(const auto end, walk_segment(**file, bounds, join));
    return join.finish(end);
  }

  Result<> give_up(SegmentNumber number, const Error& error, std::span<const NamedRecord> named) {
    NACRE_TRY(visitor_.unusable_segment(number, error));
    for (const auto& record : named)
      NACRE_TRY(visitor_.misplaced(record, error));
    return {};
  }

  void advance(std::uint64_t bytes) {
    progress_state_.done += bytes;
    if (progress_) progress_(progress_state_);
  }

  metadata::BackingDirectory& directory_;
  const engine::VolumeId& volume_id_;
  ChunkVisitor& visitor_;
  const ProgressFunction& progress_;
  Progress progress_state_{.stage = "segments"};
  std::map<SegmentNumber, SegmentRow> rows_;
};

}  // namespace

Result<> walk_chunks(metadata::BackingDirectory& directory, const metadata::Database& database,
                     const engine::VolumeId& volume_id, ChunkVisitor& visitor,
                     const ProgressFunction& progress) {
  return Walker(directory, volume_id, visitor, progress).run(database);
}

}  // namespace nacre::fs
