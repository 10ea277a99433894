// SPDX-License-Identifier: Apache-2.0
// Lookups and changes of chunk rows; holes are split and joined here.
#include "fs/store/chunk_map.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "gpu_engine/base/check.h"

namespace nacre::fs {

using metadata::ChunkMapRow;
using metadata::ChunkPatch;
using metadata::ChunkRow;
using metadata::LostRange;
using metadata::Table;

namespace {

// The run of a row that covers several chunks.
template <typename Run>
Run run_of(std::uint64_t first, const ChunkMapRow& row) {
  return row.lost ? Run{first, row.lost->chunk_count, true}
                  : Run{first, row.hole->chunk_count, false};
}

MappedChunk mapped_row(ChunkRow row) {
  return MappedChunk{.row = std::move(row), .has_own_row = true};
}

tl::unexpected<Error> no_row(InodeNumber inode, std::uint64_t index) {
  return fail(
      ErrorCode::missing,
      fmt::format("chunk {} of inode {}: the chunk map has no row for it", index, inode.value));
}

bool keeps_record(const ChunkRow* keep, const RecordLocation& location) {
  if (keep == nullptr) return false;
  if (keep->base && keep->base->location == location) return true;
  return std::any_of(keep->patches.begin(), keep->patches.end(),
                     [&](const ChunkPatch& patch) { return patch.location == location; });
}

bool keeps_inlined(const ChunkRow* keep, const ChunkPatch& patch) {
  return keep != nullptr &&
         std::any_of(keep->patches.begin(), keep->patches.end(), [&](const ChunkPatch& other) {
           return !other.location && other.version == patch.version && other.offset == patch.offset;
         });
}

}  // namespace

std::uint32_t content_end(const ChunkRow& row) {
  std::uint32_t end = row.base ? row.base->valid_size : 0;
  for (const ChunkPatch& patch : row.patches) {
    end = std::max(end, patch.offset + patch.valid_size);
  }
  return row.lost.empty() ? end : std::max(end, row.lost.back().end());
}

RecordVersion newest_version(const ChunkRow& row) {
  RecordVersion newest = row.base ? row.base->version : RecordVersion{};
  for (const ChunkPatch& patch : row.patches)
    newest = std::max(newest, patch.version);
  return newest;
}

void add_lost(ChunkRow& row, std::uint32_t from, std::uint32_t to) {
  if (from >= to) return;
  LostRange added{from, to - from};
  std::vector<LostRange> all;
  for (const LostRange& range : row.lost) {
    if (range.end() < added.offset || added.end() < range.offset) {
      all.push_back(range);
      continue;
    }
    const std::uint32_t offset = std::min(added.offset, range.offset);
    added = {offset, std::max(added.end(), range.end()) - offset};
  }
  all.insert(std::upper_bound(all.begin(), all.end(), added), added);
  row.lost = std::move(all);
}

void erase_lost(ChunkRow& row, std::uint32_t from, std::uint32_t to) {
  std::vector<LostRange> left;
  for (const LostRange& range : row.lost) {
    if (range.end() <= from || to <= range.offset) {
      left.push_back(range);
      continue;
    }
    if (range.offset < from) left.push_back({range.offset, from - range.offset});
    if (to < range.end()) left.push_back({to, range.end() - to});
  }
  row.lost = std::move(left);
}

bool is_lost(const ChunkRow& row, std::uint32_t from, std::uint32_t to) {
  return std::any_of(row.lost.begin(), row.lost.end(), [&](const LostRange& range) {
    return range.offset < to && from < range.end();
  });
}

ChunkRow lost_chunk(std::uint32_t size) {
  return ChunkRow{.base = {}, .patches = {}, .lost = {LostRange{0, size}}};
}

Result<MappedChunk> ChunkMap::find(InodeNumber inode, ChunkIndex index) const {
  NACRE_ASSIGN(auto value, database_.get(Table::chunks, metadata::chunk_key(inode, index)));
  if (value) {
    NACRE_ASSIGN(auto row, metadata::decode_chunk_map_row(*value));
    if (row.chunk) return mapped_row(std::move(*row.chunk));
    return mapped_of(run_of<Run>(index.value, row), index.value);
  }
  NACRE_ASSIGN(auto run, run_before(inode, index));
  if (!run || run->end() <= index.value) return no_row(inode, index.value);
  return mapped_of(*run, index.value);
}

Result<std::optional<ChunkRow>> ChunkMap::find_own(InodeNumber inode, ChunkIndex index) const {
  NACRE_ASSIGN(auto value, database_.get(Table::chunks, metadata::chunk_key(inode, index)));
  if (!value) return std::nullopt;
  NACRE_ASSIGN(auto row, metadata::decode_chunk_map_row(*value));
  return std::move(row.chunk);
}

MappedChunk ChunkMap::mapped_of(const Run& run, std::uint64_t index) const {
  if (!run.is_lost) return MappedChunk{.hole = true, .run = run.end() - index};
  return MappedChunk{.row = lost_chunk(chunk_size_bytes_)};
}

// The bytes that the run's chunks in [first, end) add to the file's data bytes.
std::int64_t ChunkMap::data_bytes_of(const Run& run, std::uint64_t first, std::uint64_t end) const {
  if (!run.is_lost) return 0;
  const std::uint64_t count = std::min(end, run.end()) - std::max(first, run.first);
  return static_cast<std::int64_t>(count * chunk_size_bytes_);
}

Result<std::vector<MappedChunk>> ChunkMap::find_range(InodeNumber inode, ChunkIndex first,
                                                      std::uint64_t count) const {
  std::vector<MappedChunk> chunks;
  chunks.reserve(count);
  if (count == 1) {
    NACRE_ASSIGN(auto chunk, find(inode, first));
    chunks.push_back(std::move(chunk));
    return chunks;
  }
  struct Row {
    Run run;
    // None: the row stands for the whole run.
    std::optional<MappedChunk> chunk;
  };
  std::vector<Row> rows;
  Result<> bad;
  NACRE_TRY(database_.scan(
      Table::chunks, metadata::chunk_key(inode, first),
      metadata::chunk_key(inode, ChunkIndex{first.value + count}),
      [&](std::string_view key, std::string_view value) {
        const auto parts = metadata::decode_chunk_key(key);
        auto row = metadata::decode_chunk_map_row(value);
        if (!parts || !row) {
          bad = tl::unexpected(parts ? row.error() : parts.error());
          return false;
        }
        if (row->chunk) {
          rows.push_back({{parts->index.value, 1}, mapped_row(std::move(*row->chunk))});
        } else {
          rows.push_back({run_of<Run>(parts->index.value, *row), {}});
        }
        return true;
      }));
  NACRE_TRY(bad);
  const auto append_run = [&](const Run& run) {
    const std::uint64_t end = std::min(run.end(), first.value + count);
    for (std::uint64_t at = first.value + chunks.size(); at < end; ++at) {
      chunks.push_back(mapped_of(run, at));
    }
  };
  if (rows.empty() || rows.front().run.first != first.value) {
    // Only a run that began earlier can cover the first chunks.
    NACRE_ASSIGN(auto run, run_before(inode, first));
    if (run) append_run(*run);
  }
  for (Row& row : rows) {
    if (first.value + chunks.size() != row.run.first) break;  // a gap, or two rows over one chunk
    if (row.chunk) {
      chunks.push_back(std::move(*row.chunk));
    } else {
      append_run(row.run);
    }
  }
  if (chunks.size() < count) return no_row(inode, first.value + chunks.size());
  NACRE_CHECK(chunks.size() == count, "{} rows were found for {} chunks", chunks.size(), count);
  return chunks;
}

Result<std::optional<ChunkMap::Run>> ChunkMap::run_before(InodeNumber inode,
                                                          ChunkIndex index) const {
  if (index.value == 0) return std::nullopt;
  NACRE_ASSIGN(auto last,
               database_.find_last(Table::chunks, metadata::chunk_prefix(inode),
                                   metadata::chunk_key(inode, ChunkIndex{index.value - 1})));
  if (!last) return std::nullopt;
  NACRE_ASSIGN(auto parts, metadata::decode_chunk_key(last->key));
  NACRE_ASSIGN(auto row, metadata::decode_chunk_map_row(last->value));
  if (row.chunk) return std::nullopt;
  const Run run = run_of<Run>(parts.index.value, row);
  if (run.end() < index.value) return std::nullopt;
  return run;
}

void ChunkMap::release(InodeNumber inode, ChunkIndex index, const ChunkRow& row,
                       const ChunkRow* keep) {
  if (row.base && !keeps_record(keep, row.base->location)) store_.remove_live(row.base->location);
  for (const ChunkPatch& patch : row.patches) {
    if (patch.location) {
      if (!keeps_record(keep, *patch.location)) store_.remove_live(*patch.location);
    } else if (!keeps_inlined(keep, patch)) {
      database_.erase(Table::inlined,
                      metadata::inlined_key(inode, index, patch.version, patch.offset));
    }
  }
}

std::int64_t ChunkMap::put_chunk(InodeNumber inode, ChunkIndex index, const ChunkRow* old,
                                 const ChunkRow& row, bool is_new) {
  NACRE_CHECK(!row.base || row.base->valid_size <= row.base->plain_size,
              "a row has {} of a base's {} bytes", row.base->valid_size, row.base->plain_size);
  for (const ChunkPatch& patch : row.patches) {
    NACRE_CHECK(patch.valid_size <= patch.plain_size, "a row has {} of a patch's {} bytes",
                patch.valid_size, patch.plain_size);
  }
  // The row is put first: if there is no memory for it, the old row stands and its records stay
  // alive.
  const std::string key = metadata::chunk_key(inode, index);
  if (is_new) {
    database_.put_new(Table::chunks, key, metadata::encode(row));
  } else {
    database_.put(Table::chunks, key, metadata::encode(row));
  }
  // The records that the row names come alive before those that it replaces die.
  if (row.base && !keeps_record(old, row.base->location)) store_.add_live(row.base->location);
  for (const ChunkPatch& patch : row.patches) {
    if (patch.location && !keeps_record(old, *patch.location)) store_.add_live(*patch.location);
  }
  if (old != nullptr) release(inode, index, *old, &row);
  return std::int64_t{content_end(row)} - (old == nullptr ? 0 : std::int64_t{content_end(*old)});
}

void ChunkMap::put_run(InodeNumber inode, const Run& run) {
  if (run.count == 0) return;
  database_.put(Table::chunks, metadata::chunk_key(inode, ChunkIndex{run.first}),
                run.is_lost ? metadata::encode(metadata::LostRow{run.count})
                            : metadata::encode(metadata::HoleRow{run.count}));
}

void ChunkMap::cut_run(InodeNumber inode, const Run& run, std::uint64_t first, std::uint64_t end) {
  if (run.first < first) {
    put_run(inode, {run.first, first - run.first, run.is_lost});
  } else {
    database_.erase(Table::chunks, metadata::chunk_key(inode, ChunkIndex{run.first}));
  }
  if (run.end() > end) put_run(inode, {end, run.end() - end, run.is_lost});
}

Result<std::int64_t> ChunkMap::set_chunk(InodeNumber inode, ChunkIndex index, const ChunkRow& row,
                                         bool is_new) {
  if (is_new) return put_chunk(inode, index, nullptr, row, true);
  NACRE_ASSIGN(auto value, database_.get(Table::chunks, metadata::chunk_key(inode, index)));
  ChunkMapRow old;
  if (value) {
    NACRE_ASSIGN(old, metadata::decode_chunk_map_row(*value));
    if (old.chunk) return put_chunk(inode, index, &*old.chunk, row, false);
  }
  const auto run =
      value ? Result<std::optional<Run>>(run_of<Run>(index.value, old)) : run_before(inode, index);
  if (!run) return tl::unexpected(run.error());
  if (!*run || (*run)->end() <= index.value) return no_row(inode, index.value);
  cut_run(inode, **run, index.value, index.value + 1);
  return put_chunk(inode, index, nullptr, row, false) -
         data_bytes_of(**run, index.value, index.value + 1);
}

Result<std::int64_t> ChunkMap::replace_chunk(InodeNumber inode, ChunkIndex index,
                                             const MappedChunk& old, const ChunkRow& row) {
  if (!old.has_own_row) return set_chunk(inode, index, row, false);
  return put_chunk(inode, index, &old.row, row, false);
}

Result<std::int64_t> ChunkMap::set_hole(InodeNumber inode, ChunkIndex first, std::uint64_t count) {
  if (count == 0) return 0;
  std::int64_t change = 0;
  Run hole{first.value, count};
  const std::uint64_t end = hole.end();
  // Holes that reach into this one, or end where it begins, become part of it. Of lost chunks only
  // those within it go.
  const auto absorb = [&](const Run& run) {
    if (run.is_lost) {
      if (run.end() <= first.value) return;
      change -= data_bytes_of(run, first.value, end);
      cut_run(inode, run, first.value, end);
      return;
    }
    database_.erase(Table::chunks, metadata::chunk_key(inode, ChunkIndex{run.first}));
    const std::uint64_t joined_end = std::max(hole.end(), run.end());
    hole.first = std::min(hole.first, run.first);
    hole.count = joined_end - hole.first;
  };
  NACRE_ASSIGN(auto before, run_before(inode, first));
  if (before) absorb(*before);
  std::vector<std::uint64_t> replaced;
  Result<> bad;
  NACRE_TRY(database_.scan(Table::chunks, metadata::chunk_key(inode, first),
                           metadata::chunk_key(inode, ChunkIndex{end}),
                           [&](std::string_view key, std::string_view value) {
                             const auto parts = metadata::decode_chunk_key(key);
                             const auto row = metadata::decode_chunk_map_row(value);
                             if (!parts || !row) {
                               bad = tl::unexpected(parts ? row.error() : parts.error());
                               return false;
                             }
                             replaced.push_back(parts->index.value);
                             return true;
                           }));
  NACRE_TRY(bad);
  for (const std::uint64_t index : replaced) {
    const std::string key = metadata::chunk_key(inode, ChunkIndex{index});
    NACRE_ASSIGN(auto value, database_.get(Table::chunks, key));
    if (!value) return no_row(inode, index);
    NACRE_ASSIGN(auto row, metadata::decode_chunk_map_row(*value));
    if (!row.chunk) {
      absorb(run_of<Run>(index, row));
      continue;
    }
    change -= content_end(*row.chunk);
    database_.erase(Table::chunks, key);
    release(inode, ChunkIndex{index}, *row.chunk, nullptr);
  }
  put_run(inode, hole);
  return change;
}

Result<std::int64_t> ChunkMap::truncate(InodeNumber inode, std::uint64_t size) {
  const std::uint64_t count = chunk_count(size);
  std::int64_t change = 0;
  std::vector<std::pair<std::string, ChunkMapRow>> cut;
  Result<> bad;
  NACRE_TRY(database_.scan(Table::chunks, metadata::chunk_key(inode, ChunkIndex{count}),
                           metadata::prefix_end(metadata::chunk_prefix(inode)),
                           [&](std::string_view key, std::string_view value) {
                             auto row = metadata::decode_chunk_map_row(value);
                             if (!row) {
                               bad = tl::unexpected(row.error());
                               return false;
                             }
                             cut.emplace_back(std::string(key), std::move(*row));
                             return true;
                           }));
  NACRE_TRY(bad);
  for (const auto& [key, row] : cut) {
    NACRE_ASSIGN(auto parts, metadata::decode_chunk_key(key));
    database_.erase(Table::chunks, key);
    if (row.chunk) {
      change -= content_end(*row.chunk);
      release(inode, parts.index, *row.chunk, nullptr);
    } else if (row.lost) {
      change -= static_cast<std::int64_t>(row.lost->chunk_count * chunk_size_bytes_);
    }
  }
  if (count == 0) return change;
  NACRE_ASSIGN(auto before, run_before(inode, ChunkIndex{count}));
  if (before && before->end() > count) {
    change -= data_bytes_of(*before, count, before->end());
    cut_run(inode, *before, count, before->end());
  }
  if (before && !before->is_lost) return change;
  // The last chunk that stays keeps only what lies before the new end.
  const auto keep = static_cast<std::uint32_t>(size - (count - 1) * chunk_size_bytes_);
  if (keep == chunk_size_bytes_) return change;
  const ChunkIndex last{count - 1};
  NACRE_ASSIGN(auto mapped, find(inode, last));
  if (mapped.hole || content_end(mapped.row) <= keep) return change;
  ChunkRow row = mapped.row;
  if (row.base) row.base->valid_size = std::min(row.base->valid_size, keep);
  std::erase_if(row.patches, [&](const ChunkPatch& patch) { return patch.offset >= keep; });
  for (ChunkPatch& patch : row.patches) {
    patch.valid_size = std::min(patch.valid_size, keep - patch.offset);
  }
  erase_lost(row, keep, chunk_size_bytes_);
  NACRE_ASSIGN(auto trimmed, replace_chunk(inode, last, mapped, row));
  return change + trimmed;
}

Result<std::optional<ChunkIndex>> ChunkMap::erase(InodeNumber inode, ChunkIndex from,
                                                  std::size_t row_count_max) {
  std::vector<std::pair<std::string, ChunkMapRow>> rows;
  Result<> bad;
  std::optional<std::string> next;
  NACRE_TRY(database_.scan(Table::chunks, metadata::chunk_key(inode, from),
                           metadata::prefix_end(metadata::chunk_prefix(inode)),
                           [&](std::string_view key, std::string_view value) {
                             if (rows.size() == row_count_max) {
                               next = key;
                               return false;
                             }
                             auto row = metadata::decode_chunk_map_row(value);
                             if (!row) {
                               bad = tl::unexpected(row.error());
                               return false;
                             }
                             rows.emplace_back(std::string(key), std::move(*row));
                             return true;
                           }));
  NACRE_TRY(bad);
  for (const auto& [key, row] : rows) {
    NACRE_ASSIGN(auto parts, metadata::decode_chunk_key(key));
    database_.erase(Table::chunks, key);
    if (row.chunk) {
      release(inode, parts.index, *row.chunk, nullptr);
    }
  }
  if (!next) return std::nullopt;
  NACRE_ASSIGN(const auto parts, metadata::decode_chunk_key(*next));
  return parts.index;
}

}  // namespace nacre::fs
