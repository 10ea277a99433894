// SPDX-License-Identifier: Apache-2.0
#include "fs/repair/chunk_of_records.h"

#include <algorithm>

#include "fs/store/chunk_map.h"

namespace nacre::fs {

using metadata::ChunkPatch;
using metadata::ChunkRow;

namespace {

// Lays the patch over all other pieces; those that it covers wholly are dropped. If the row is
// full, the bytes of the patch become lost, so that older bytes do not show in their place.
void add(ChunkRow& row, const ChunkPatch& patch) {
  const std::uint32_t end = patch.offset + patch.plain_size;
  std::erase_if(row.patches, [&](const ChunkPatch& under) {
    return patch.offset <= under.offset && under.offset + under.valid_size <= end;
  });
  if (row.patches.size() == metadata::patch_count_max) {
    add_lost(row, patch.offset, end);
    return;
  }
  row.patches.push_back(patch);
  erase_lost(row, patch.offset, end);
}

}  // namespace

bool add_newer_records(ChunkRow& row, std::span<const PlacedRecord> records,
                       std::uint32_t file_end) {
  metadata::RecordVersion newest = newest_version(row);
  const bool said_nothing = !row.base && row.patches.empty() && row.lost.empty();
  if (said_nothing) {
    std::uint32_t end = file_end;
    for (const auto& [record, location] : records)
      end = std::max(end, record->patch_offset + record->plain_size);
    row = lost_chunk(end);
  }
  bool is_changed = false;
  for (const auto& [record, location] : records) {
    if (record->version <= newest) continue;
    newest = record->version;
    is_changed = true;
    if (record->kind == metadata::RecordKind::chunk) {
      row = {.base = metadata::ChunkBase{.location = location,
                                         .version = record->version,
                                         .plain_size = record->plain_size,
                                         .valid_size = record->plain_size}};
    } else {
      add(row, {.offset = record->patch_offset,
                .plain_size = record->plain_size,
                .valid_size = record->plain_size,
                .version = record->version,
                .location = location});
    }
  }
  return is_changed;
}

}  // namespace nacre::fs
