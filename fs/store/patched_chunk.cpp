// SPDX-License-Identifier: Apache-2.0
#include "fs/store/patched_chunk.h"

#include <bit>

#include "fs/store/chunk_map.h"

namespace nacre::fs {

using metadata::ChunkPatch;
using metadata::ChunkRow;

namespace {

// A chunk with this many patches is merged.
constexpr std::size_t patch_count_to_merge = 8;
// If the patches have at least the size of the chunk's content divided by this, they are merged,
// however few they are.
constexpr std::uint64_t merge_share = 4;

bool overlaps(const ChunkPatch& patch, std::uint32_t from, std::uint32_t to) {
  return patch.offset < to && from < patch.offset + patch.plain_size;
}

}  // namespace

std::size_t count_parts(const ChunkRow& row) {
  if (row.base || row.patches.empty()) return 0;
  const std::uint32_t size = row.patches.front().plain_size;
  if (size < part_size_bytes_min || !std::has_single_bit(size)) return 0;
  std::size_t count = 0;
  for (const ChunkPatch& patch : row.patches) {
    if (!patch.location || patch.offset != count * size || patch.plain_size > size) break;
    ++count;
    if (patch.plain_size < size) break;
  }
  return count;
}

void add_patch(ChunkRow& row, const ChunkPatch& patch) {
  const auto is_over_it = [&](const ChunkPatch& other) {
    return overlaps(other, patch.offset, patch.offset + patch.plain_size);
  };
  auto place = row.patches.end();
  if (!row.base && std::none_of(row.patches.begin(), row.patches.end(), is_over_it)) {
    place = std::find_if(row.patches.begin(), row.patches.end(),
                         [&](const ChunkPatch& other) { return other.offset > patch.offset; });
  }
  row.patches.insert(place, patch);
}

std::optional<ChunkRow> row_of_range(const ChunkRow& row, std::uint32_t from, std::uint32_t to) {
  if (row.base) return std::nullopt;
  ChunkRow needed;
  std::uint64_t size = 0, needed_size = 0;
  for (const ChunkPatch& patch : row.patches) {
    size += patch.plain_size;
    if (!overlaps(patch, from, to)) continue;
    needed_size += patch.plain_size;
    needed.patches.push_back(patch);
  }
  if (needed_size * 2 >= size) return std::nullopt;
  return needed;
}

bool is_worth_merging(const ChunkRow& row) {
  const std::size_t part_count = count_parts(row);
  const std::size_t count = row.patches.size() - part_count;
  std::uint64_t patched = 0;
  for (std::size_t i = part_count; i < row.patches.size(); ++i)
    patched += row.patches[i].valid_size;
  return count > 0 && (count >= patch_count_to_merge || patched * merge_share >= content_end(row));
}

}  // namespace nacre::fs
