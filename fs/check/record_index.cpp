// SPDX-License-Identifier: Apache-2.0
#include "fs/check/record_index.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "metadata/format/checkpoint.h"

namespace nacre::fs {

using metadata::SegmentNumber;
using metadata::Table;

namespace {

void visit_checkpoint(metadata::CheckpointNumber number, const metadata::CheckpointRow& row,
                      const std::function<void(const NamedRecord&)>& visit) {
  visit({.location = row.root.location,
         .name = metadata::root_name(number, row.root.version),
         .plain_size = row.root.plain_size});
  for (std::uint64_t i = 0; i < row.parts.size(); ++i) {
    const auto& part = row.parts[i];
    visit({.location = part.location,
           .name = metadata::part_name(number, i, part.version),
           .plain_size = part.plain_size});
  }
}

}  // namespace

Result<> scan_records(const metadata::Database& database,
                      const std::function<void(const NamedRecord&)>& visit) {
  const std::string_view prefix = metadata::system_key_checkpoint_prefix;
  NACRE_TRY(database.scan(Table::system, prefix, metadata::prefix_end(prefix),
                          [&](std::string_view key, std::string_view value) {
                            const auto number = metadata::decode_checkpoint_key(key);
                            const auto row = metadata::decode_checkpoint_row(value);
                            if (number && row) visit_checkpoint(*number, *row, visit);
                            return true;
                          }));
  return database.scan(Table::chunks, "", "", [&](std::string_view key, std::string_view value) {
    const auto parts = metadata::decode_chunk_key(key);
    const auto row = metadata::decode_chunk_map_row(value);
    if (parts && row && row->chunk) for_each_record(parts->inode, parts->index, *row->chunk, visit);
    return true;
  });
}

void for_each_record(metadata::InodeNumber inode, metadata::ChunkIndex index,
                     const metadata::ChunkRow& row,
                     const std::function<void(const NamedRecord&)>& visit) {
  if (row.base) {
    visit({.location = row.base->location,
           .name = {.inode = inode, .chunk = index, .version = row.base->version},
           .plain_size = row.base->plain_size});
  }
  for (const auto& patch : row.patches) {
    if (!patch.location) continue;
    visit({.location = *patch.location,
           .name = {.inode = inode,
                    .chunk = index,
                    .version = patch.version,
                    .offset = patch.offset,
                    .kind = metadata::RecordKind::patch},
           .plain_size = patch.plain_size});
  }
}

Result<RecordIndex> RecordIndex::build(const metadata::Database& database,
                                       std::uint64_t record_count_max) {
  RecordIndex index(database, record_count_max);
  NACRE_TRY(scan_records(database, [&](const NamedRecord& record) {
    ++index.counts_[record.location.segment];
    ++index.record_count_;
  }));
  return index;
}

Result<> RecordIndex::for_each_segment(const Visit& visit) const {
  for (auto first = counts_.begin(); first != counts_.end();) {
    // The segments from first to last whose records fit into memory; at least one.
    auto last = first;
    std::uint64_t count = 0;
    while (last != counts_.end() && (last == first || count + last->second <= record_count_max_)) {
      count += last->second;
      ++last;
    }
    const SegmentNumber from = first->first;
    const SegmentNumber through = std::prev(last)->first;
    std::vector<NamedRecord> records;
    records.reserve(count);
    NACRE_TRY(scan_records(*database_, [&](const NamedRecord& record) {
      const auto segment = record.location.segment;
      if (from <= segment && segment <= through) records.push_back(record);
    }));
    std::sort(records.begin(), records.end(),
              [](const NamedRecord& a, const NamedRecord& b) { return a.location < b.location; });
    for (auto begin = records.begin(); begin != records.end();) {
      const auto segment = begin->location.segment;
      const auto end = std::find_if(begin, records.end(), [&](const NamedRecord& record) {
        return record.location.segment != segment;
      });
      NACRE_TRY(visit(segment, std::span<const NamedRecord>(begin, end)));
      begin = end;
    }
    first = last;
  }
  return {};
}

}  // namespace nacre::fs
