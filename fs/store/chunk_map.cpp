// SPDX-License-Identifier: Apache-2.0
// Lookups and changes of chunk rows; holes are split and joined here.
#include "fs/store/chunk_map.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include <fmt/format.h>

namespace nacre::fs {

using metadata::ChunkMapRow;
using metadata::ChunkPatch;
using metadata::ChunkRow;
using metadata::Table;

namespace {

// Mixes a number into a hash (the finalizer of MurmurHash3).
std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash ^= value + 0x9E3779B97F4A7C15ull + (hash << 6) + (hash >> 2);
  hash = (hash ^ (hash >> 33)) * 0xFF51AFD7ED558CCDull;
  hash = (hash ^ (hash >> 33)) * 0xC4CEB9FE1A85EC53ull;
  return hash ^ (hash >> 33);
}

// Versions are never used twice, so they and the sizes tell the content; a record that moves to
// another segment keeps its version.
std::uint64_t tag_of(const ChunkRow& row) {
  std::uint64_t tag = row.patches.size();
  if (row.base) tag = mix(mix(tag, row.base->version.value), row.base->valid_size);
  for (const ChunkPatch& patch : row.patches) {
    tag = mix(mix(tag, patch.version.value), std::uint64_t{patch.offset} << 32 | patch.valid_size);
  }
  return tag;
}

MappedChunk mapped_of(ChunkRow row, std::string_view value) {
  const std::uint64_t tag = tag_of(row);
  return MappedChunk{
      .row = std::move(row), .tag = tag, .place = std::hash<std::string_view>{}(value)};
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
  return end;
}

Result<MappedChunk> ChunkMap::find(InodeNumber inode, ChunkIndex index) const {
  NACRE_ASSIGN(auto value, database_.get(Table::chunks, metadata::chunk_key(inode, index)));
  if (value) {
    NACRE_ASSIGN(auto row, metadata::decode_chunk_map_row(*value));
    if (row.chunk) return mapped_of(std::move(*row.chunk), *value);
    return MappedChunk{.hole = true, .run = row.hole->chunk_count};
  }
  NACRE_ASSIGN(auto hole, hole_before(inode, index));
  if (!hole || hole->first + hole->count <= index.value) return no_row(inode, index.value);
  return MappedChunk{.hole = true, .run = hole->first + hole->count - index.value};
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
    std::uint64_t index;
    std::uint64_t hole_count;  // 0: a chunk
    MappedChunk chunk;
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
          rows.push_back(Row{parts->index.value, 0, mapped_of(std::move(*row->chunk), value)});
        } else {
          rows.push_back(Row{parts->index.value, row->hole->chunk_count, {}});
        }
        return true;
      }));
  NACRE_TRY(bad);
  const auto append_hole = [&](std::uint64_t hole_end) {
    const std::uint64_t end = std::min(hole_end, first.value + count);
    for (std::uint64_t at = first.value + chunks.size(); at < end; ++at) {
      chunks.push_back(MappedChunk{.hole = true, .run = hole_end - at});
    }
  };
  if (rows.empty() || rows.front().index != first.value) {
    // Only a hole that began earlier can cover the first chunks.
    NACRE_ASSIGN(auto hole, hole_before(inode, first));
    if (hole) append_hole(hole->first + hole->count);
  }
  for (Row& row : rows) {
    if (first.value + chunks.size() != row.index) break;  // a gap, or two rows over one chunk
    if (row.hole_count == 0) {
      chunks.push_back(std::move(row.chunk));
    } else {
      append_hole(row.index + row.hole_count);
    }
  }
  if (chunks.size() < count) return no_row(inode, first.value + chunks.size());
  return chunks;
}

Result<std::optional<ChunkMap::Hole>> ChunkMap::hole_before(InodeNumber inode,
                                                            ChunkIndex index) const {
  if (index.value == 0) return std::nullopt;
  NACRE_ASSIGN(auto last,
               database_.find_last(Table::chunks, metadata::chunk_prefix(inode),
                                   metadata::chunk_key(inode, ChunkIndex{index.value - 1})));
  if (!last) return std::nullopt;
  NACRE_ASSIGN(auto parts, metadata::decode_chunk_key(last->key));
  NACRE_ASSIGN(auto row, metadata::decode_chunk_map_row(last->value));
  if (!row.hole || parts.index.value + row.hole->chunk_count < index.value) return std::nullopt;
  return Hole{parts.index.value, row.hole->chunk_count};
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

void ChunkMap::put_chunk(InodeNumber inode, ChunkIndex index, const ChunkRow& row, bool is_new) {
  const std::string key = metadata::chunk_key(inode, index);
  if (is_new) {
    database_.put_new(Table::chunks, key, metadata::encode(row));
  } else {
    database_.put(Table::chunks, key, metadata::encode(row));
  }
}

void ChunkMap::put_hole(InodeNumber inode, std::uint64_t first, std::uint64_t count) {
  database_.put(Table::chunks, metadata::chunk_key(inode, ChunkIndex{first}),
                metadata::encode(metadata::HoleRow{count}));
}

Result<std::int64_t> ChunkMap::set_chunk(InodeNumber inode, ChunkIndex index, const ChunkRow& row,
                                         bool is_new) {
  std::int64_t change = content_end(row);
  const ChunkRow* old_row = nullptr;
  ChunkMapRow old;
  if (!is_new) {
    NACRE_ASSIGN(auto value, database_.get(Table::chunks, metadata::chunk_key(inode, index)));
    if (value) {
      NACRE_ASSIGN(old, metadata::decode_chunk_map_row(*value));
      if (old.chunk) {
        old_row = &*old.chunk;
        change -= content_end(*old_row);
      } else if (old.hole->chunk_count > 1) {
        put_hole(inode, index.value + 1, old.hole->chunk_count - 1);
      }
    } else {
      NACRE_ASSIGN(auto hole, hole_before(inode, index));
      if (!hole || hole->first + hole->count <= index.value) return no_row(inode, index.value);
      put_hole(inode, hole->first, index.value - hole->first);
      const std::uint64_t end = hole->first + hole->count;
      if (end > index.value + 1) put_hole(inode, index.value + 1, end - index.value - 1);
    }
  }
  // What the row names comes alive before what it replaces dies.
  if (row.base && !keeps_record(old_row, row.base->location)) store_.add_live(row.base->location);
  for (const ChunkPatch& patch : row.patches) {
    if (patch.location && !keeps_record(old_row, *patch.location)) store_.add_live(*patch.location);
  }
  if (old_row != nullptr) release(inode, index, *old_row, &row);
  put_chunk(inode, index, row, is_new);
  return change;
}

Result<std::int64_t> ChunkMap::set_hole(InodeNumber inode, ChunkIndex first, std::uint64_t count) {
  if (count == 0) return 0;
  std::int64_t change = 0;
  std::uint64_t begin = first.value;
  std::uint64_t end = begin + count;
  NACRE_ASSIGN(auto before, hole_before(inode, first));
  if (before) {
    begin = before->first;
    end = std::max(end, before->first + before->count);
  }
  std::vector<std::uint64_t> replaced;
  Result<> bad;
  NACRE_TRY(database_.scan(Table::chunks, metadata::chunk_key(inode, first),
                           metadata::chunk_key(inode, ChunkIndex{first.value + count}),
                           [&](std::string_view key, std::string_view value) {
                             const auto parts = metadata::decode_chunk_key(key);
                             const auto row = metadata::decode_chunk_map_row(value);
                             if (!parts || !row) {
                               bad = tl::unexpected(parts ? row.error() : parts.error());
                               return false;
                             }
                             replaced.push_back(parts->index.value);
                             if (row->hole)
                               end = std::max(end, parts->index.value + row->hole->chunk_count);
                             return true;
                           }));
  NACRE_TRY(bad);
  for (const std::uint64_t index : replaced) {
    const std::string key = metadata::chunk_key(inode, ChunkIndex{index});
    NACRE_ASSIGN(auto value, database_.get(Table::chunks, key));
    if (!value) return no_row(inode, index);
    NACRE_ASSIGN(auto row, metadata::decode_chunk_map_row(*value));
    if (row.chunk) {
      change -= content_end(*row.chunk);
      release(inode, ChunkIndex{index}, *row.chunk, nullptr);
    }
    database_.erase(Table::chunks, key);
  }
  put_hole(inode, begin, end - begin);
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
    if (row.chunk) {
      NACRE_ASSIGN(auto parts, metadata::decode_chunk_key(key));
      change -= content_end(*row.chunk);
      release(inode, parts.index, *row.chunk, nullptr);
    }
    database_.erase(Table::chunks, key);
  }
  if (count == 0) return change;
  NACRE_ASSIGN(auto before, hole_before(inode, ChunkIndex{count}));
  if (before) {
    if (before->first + before->count > count)
      put_hole(inode, before->first, count - before->first);
    return change;
  }
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
  NACRE_ASSIGN(auto trimmed, set_chunk(inode, last, row, false));
  return change + trimmed;
}

Result<bool> ChunkMap::erase(InodeNumber inode, std::size_t row_count_max) {
  std::vector<std::pair<std::string, ChunkMapRow>> rows;
  Result<> bad;
  bool more = false;
  const std::string prefix = metadata::chunk_prefix(inode);
  NACRE_TRY(database_.scan(Table::chunks, prefix, metadata::prefix_end(prefix),
                           [&](std::string_view key, std::string_view value) {
                             if (rows.size() == row_count_max) {
                               more = true;
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
    if (row.chunk) {
      NACRE_ASSIGN(auto parts, metadata::decode_chunk_key(key));
      release(inode, parts.index, *row.chunk, nullptr);
    }
    database_.erase(Table::chunks, key);
  }
  return !more;
}

}  // namespace nacre::fs
