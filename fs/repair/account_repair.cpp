// SPDX-License-Identifier: Apache-2.0
// Repairs values that follow from other rows: data bytes of files, live bytes of segments, counters
// and totals. Also repairs the two copies of superblock and keyring.
#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <vector>

#include <fmt/format.h>

#include "fs/check/record_index.h"
#include "fs/repair/repair_parts.h"
#include "fs/store/chunk_map.h"
#include "fs/store/segment_table.h"
#include "fs/store/segment_walk.h"
#include "metadata/backing/two_copies.h"

namespace nacre::fs {

using metadata::InodeNumber;
using metadata::SegmentNumber;
using metadata::Table;

namespace {

constexpr std::size_t copy_size_bytes_max = 16u << 20;

struct Sums {
  std::map<std::uint64_t, std::uint64_t> data_bytes;  // by inode
  std::map<std::uint64_t, std::uint64_t> live_bytes;  // by segment
};

Result<Sums> sum_chunks(const RepairContext& context) {
  Sums sums;
  NACRE_TRY(context.scan(Table::chunks, [&](std::string_view key, std::string_view value) {
    const auto parts = metadata::decode_chunk_key(key);
    const auto row = metadata::decode_chunk_map_row(value);
    if (!parts || !row) return;
    std::uint64_t& data_bytes = sums.data_bytes[parts->inode.value];
    if (row->lost) data_bytes += row->lost->chunk_count * context.chunk_size_bytes();
    if (!row->chunk) return;
    data_bytes += content_end(*row->chunk);
  }));
  NACRE_ASSIGN(const auto index, RecordIndex::build(context.database()));
  NACRE_TRY(index.for_each_segment(
      [&](SegmentNumber number, std::span<const NamedRecord> named) -> Result<> {
        for (const NamedRecord& record : named)
          sums.live_bytes[number.value] += record.location.stored_size;
        return {};
      }));
  return sums;
}

// Totals of the volume: data bytes and the count of inodes.
struct Totals {
  std::uint64_t data_bytes = 0;
  std::uint64_t inode_count = 0;
  std::uint64_t inode_max = 0;
};

Result<Totals> repair_data_bytes(RepairContext& context, const Sums& sums) {
  Totals totals;
  std::vector<std::pair<InodeNumber, metadata::InodeRow>> changed;
  NACRE_TRY(context.scan(Table::inodes, [&](std::string_view key, std::string_view value) {
    const auto number = metadata::decode_inode_key(key);
    auto row = metadata::decode_inode_row(value);
    if (!number || !row) return;
    ++totals.inode_count;
    totals.inode_max = number->value;
    std::uint64_t data_bytes = row->data_bytes;
    // An orphan that was being erased has lost rows at its start. The orphan goes with its count.
    if (!S_ISREG(row->mode)) {
      data_bytes = 0;
    } else if (row->link_count != 0) {
      const auto sum = sums.data_bytes.find(number->value);
      data_bytes = sum == sums.data_bytes.end() ? 0 : sum->second;
    }
    if (S_ISREG(row->mode)) totals.data_bytes += data_bytes;
    if (data_bytes == row->data_bytes) return;
    row->data_bytes = data_bytes;
    changed.emplace_back(*number, std::move(*row));
  }));
  for (const auto& [number, row] : changed) {
    NACRE_TRY(context.draft.put(
        Table::inodes, metadata::inode_key(number), metadata::encode(row),
        fmt::format("inode {} counted another number of data bytes than its rows", number.value),
        number));
  }
  return totals;
}

// Returns the highest number in use.
Result<std::uint64_t> repair_live_bytes(RepairContext& context, const Sums& sums) {
  std::map<std::uint64_t, metadata::SegmentRow> rows;
  NACRE_TRY(context.scan(Table::segments, [&](std::string_view key, std::string_view value) {
    const auto number = metadata::decode_segment_key(key);
    const auto row = metadata::decode_segment_row(value);
    if (number && row) rows.emplace(number->value, *row);
  }));
  for (auto& [number, row] : rows) {
    const SegmentNumber segment{number};
    const std::string key = metadata::segment_key(segment);
    const auto sum = sums.live_bytes.find(number);
    const std::uint64_t live_bytes = sum == sums.live_bytes.end() ? 0 : sum->second;
    if (live_bytes == 0) {
      NACRE_ASSIGN(const auto path, find_segment(context.directory, segment, row));
      const auto size = context.directory.file_size(path);
      const bool is_gone = size ? *size < metadata::segment_header_size_bytes
                                : size.error().code == ErrorCode::not_found;
      if (is_gone) {
        NACRE_TRY(context.draft.erase(
            Table::segments, key,
            fmt::format("segment {} is gone, and nothing in it can be had", number)));
        continue;
      }
    }
    if (live_bytes == row.live_bytes) continue;
    const std::string why = fmt::format("segment {} counted {} live bytes, rows name {}", number,
                                        row.live_bytes, live_bytes);
    row.live_bytes = live_bytes;
    NACRE_TRY(context.draft.put(Table::segments, key, metadata::encode(row), why));
  }
  return rows.empty() ? 0 : rows.rbegin()->first;
}

// Sets a number of the system table to value, or raises it to value if it is lower.
Result<> repair_number(RepairContext& context, std::string_view name, std::uint64_t value,
                       bool is_least) {
  NACRE_ASSIGN(const auto stored, context.database().get(Table::system, name));
  const auto number = stored ? metadata::decode_u64(*stored) : fail(ErrorCode::missing);
  if (number && (is_least ? *number >= value : *number == value)) return {};
  return context.draft.put(
      Table::system, std::string(name), metadata::encode_u64(value),
      number ? fmt::format("'{}' was {}", name, *number) : fmt::format("'{}' was not there", name));
}

Result<std::uint64_t> highest_session(RepairContext& context) {
  std::uint64_t highest = 0;
  std::vector<std::string> bad;
  NACRE_TRY(context.scan(Table::system, [&](std::string_view key, std::string_view value) {
    constexpr std::string_view prefix = metadata::system_key_session_prefix;
    if (!key.starts_with(prefix)) return;
    const auto row = metadata::decode_session_row(value);
    if (!row || key.size() != prefix.size() + sizeof(engine::SessionSalt)) {
      bad.emplace_back(key);
    } else {
      highest = std::max(highest, row->ordinal);
    }
  }));
  for (const auto& key : bad)
    NACRE_TRY(context.draft.erase(Table::system, key, "the row of a write session makes no sense"));
  // A version that a row names came from a session. The session's number must not be used again,
  // even if the session has no row.
  NACRE_TRY(context.scan(Table::chunks, [&](std::string_view, std::string_view value) {
    const auto row = metadata::decode_chunk_map_row(value);
    if (!row || !row->chunk) return;
    const auto note = [&](metadata::RecordVersion version) {
      highest = std::max(highest, version.value >> metadata::record_version_session_shift);
    };
    if (row->chunk->base) note(row->chunk->base->version);
    for (const auto& patch : row->chunk->patches)
      note(patch.version);
  }));
  return highest;
}

Result<std::uint64_t> highest_segment_file(RepairContext& context, std::uint64_t highest) {
  NACRE_ASSIGN(const auto names, context.directory.list("segments"));
  for (const auto& name : names) {
    if (const auto number = segment_number_of(name)) highest = std::max(highest, number->value);
  }
  return highest;
}

// Writes the text of the valid copy to both copies.
Result<> repair_copy(RepairContext& context, std::string_view name,
                     const std::function<Result<std::uint64_t>(ByteView)>& generation_of) {
  NACRE_ASSIGN(const auto chosen,
               metadata::read_copies(context.directory, name, copy_size_bytes_max, generation_of));
  if (chosen.warnings.empty()) return {};
  for (const std::string& path : {std::string(name), metadata::copy_name(name)}) {
    auto text = metadata::read_file(context.directory, path, copy_size_bytes_max);
    if (text && *text == chosen.text) continue;
    const bool is_missing = !text && text.error().code == ErrorCode::not_found;
    if (!text && !is_missing) {
      context.leave(Verdict::unreadable, text.error().message, path);
      continue;
    }
    context.draft.add(FileEdit{.path = path,
                               .before = is_missing ? std::nullopt : std::optional(*text),
                               .after = chosen.text},
                      chosen.warnings.front().message);
  }
  return {};
}

}  // namespace

Result<> repair_accounts(RepairContext& context) {
  NACRE_ASSIGN(const Sums sums, sum_chunks(context));
  NACRE_ASSIGN(const Totals totals, repair_data_bytes(context, sums));
  NACRE_ASSIGN(const std::uint64_t segment_row_max, repair_live_bytes(context, sums));
  NACRE_ASSIGN(const std::uint64_t segment_max, highest_segment_file(context, segment_row_max));
  NACRE_ASSIGN(const std::uint64_t session_max, highest_session(context));
  NACRE_TRY(repair_number(context, metadata::system_key_inode_count, totals.inode_count, false));
  NACRE_TRY(repair_number(context, metadata::system_key_data_bytes, totals.data_bytes, false));
  NACRE_TRY(repair_number(context, metadata::system_key_next_inode, totals.inode_max + 1, true));
  NACRE_TRY(repair_number(context, metadata::system_key_next_segment, segment_max + 1, true));
  NACRE_TRY(repair_number(context, metadata::system_key_next_session, session_max + 1, true));
  // An older superblock or keyring is reported by the check, because a newer one must be put back.
  NACRE_ASSIGN(const auto superblock,
               context.database().get(Table::system, metadata::system_key_superblock));
  if (superblock && !metadata::decode_u64(*superblock)) {
    NACRE_TRY(repair_number(context, metadata::system_key_superblock,
                            context.volume.superblock.generation, false));
  }
  NACRE_ASSIGN(const auto generation,
               context.database().get(Table::system, metadata::system_key_keyring));
  if (generation && metadata::decode_u64(*generation)) return {};
  return repair_number(context, metadata::system_key_keyring, context.volume.keyring.generation,
                       false);
}

Result<> repair_copies(RepairContext& context) {
  NACRE_TRY(
      repair_copy(context, metadata::superblock_file, [](ByteView text) -> Result<std::uint64_t> {
        NACRE_ASSIGN(const auto parsed, metadata::parse_superblock(text));
        return parsed.claims.generation;
      }));
  return repair_copy(context, metadata::keyring_file, [](ByteView text) -> Result<std::uint64_t> {
    NACRE_ASSIGN(const auto parsed, metadata::parse_keyring(text));
    return parsed.claims.generation;
  });
}

}  // namespace nacre::fs
