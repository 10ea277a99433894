// SPDX-License-Identifier: Apache-2.0
// Finds the bytes of a chunk that are lost if some of its pieces are.
#include <algorithm>
#include <utility>

#include "fs/repair/repair_parts.h"
#include "fs/store/chunk_map.h"

namespace nacre::fs {

using metadata::ChunkPatch;
using metadata::ChunkRow;
using metadata::LostRange;

namespace {

bool gives_bytes(const ChunkRow& row, const LostRange& range) {
  if (row.base && range.offset < row.base->valid_size) return true;
  return std::any_of(row.patches.begin(), row.patches.end(), [&](const ChunkPatch& patch) {
    return patch.offset < range.end() && range.offset < patch.offset + patch.valid_size;
  });
}

Result<> check_room(const ChunkRow& row) {
  if (row.patches.size() + row.lost.size() <= metadata::patch_count_max) return {};
  return fail(ErrorCode::too_big,
              "a chunk has more lost ranges than --drop-damaged can fill with zeros; nothing was "
              "changed: repair without it, then write zeros there");
}

// Adds zeros as an inlined patch, like a small write.
Result<> add_zeros(RepairContext& context, metadata::InodeNumber inode, metadata::ChunkIndex index,
                   ChunkRow& row, const LostRange& range) {
  NACRE_ASSIGN(const auto version, context.next_version());
  NACRE_TRY(context.draft.put(
      metadata::Table::inlined, metadata::inlined_key(inode, index, version, range.offset),
      std::string(range.size, '\0'), "zeros in the place of lost bytes", inode));
  row.patches.push_back({.offset = range.offset,
                         .plain_size = range.size,
                         .valid_size = range.size,
                         .version = version,
                         .location = std::nullopt});
  return {};
}

}  // namespace

ChunkRow lose_pieces(const ChunkRow& row, const IsBadPiece& is_bad,
                     std::uint32_t chunk_size_bytes) {
  ChunkRow left;
  if (row.base) {
    if (is_bad(nullptr)) {
      add_lost(left, 0, std::min(row.base->valid_size, chunk_size_bytes));
    } else {
      left.base = row.base;
    }
  }
  for (const ChunkPatch& patch : row.patches) {
    const std::uint32_t from = std::min(patch.offset, chunk_size_bytes);
    const std::uint32_t to = from + std::min(patch.valid_size, chunk_size_bytes - from);
    if (is_bad(&patch)) {
      add_lost(left, from, to);
    } else {
      erase_lost(left, from, to);
      left.patches.push_back(patch);
    }
  }
  // Bytes that were lost before take precedence over all pieces.
  for (const LostRange& range : row.lost)
    add_lost(left, range.offset, range.end());
  return left;
}

void cut_row(ChunkRow& row, std::uint32_t size) {
  if (row.base) row.base->valid_size = std::min(row.base->valid_size, size);
  std::erase_if(row.patches, [&](const ChunkPatch& patch) { return patch.offset >= size; });
  for (ChunkPatch& patch : row.patches)
    patch.valid_size = std::min(patch.valid_size, size - patch.offset);
  erase_lost(row, size, ~0u);
}

Result<std::string> finish_row(RepairContext& context, metadata::InodeNumber inode,
                               metadata::ChunkIndex index, ChunkRow row, const ChunkRow* old,
                               Verdict verdict, const std::string& why) {
  const bool drops = context.options.drop_damaged;
  if (drops) NACRE_TRY(check_room(row));
  ChunkRow news{.base = {}, .patches = {}, .lost = row.lost};
  // Bytes that were lost before are reported again if they are dropped now.
  for (const LostRange& range : old != nullptr && !drops ? old->lost : std::vector<LostRange>())
    erase_lost(news, range.offset, range.end());
  for (const LostRange& range : news.lost) {
    context.draft.add(LostBytes{.inode = inode,
                                .offset = index.value * context.chunk_size_bytes() + range.offset,
                                .size = range.size,
                                .verdict = verdict,
                                .why = why,
                                .is_dropped = drops,
                                .paths = {}});
  }
  if (drops) {
    for (const LostRange& range : std::exchange(row.lost, {})) {
      // Bytes below a lost patch are older than the patch and must not come back.
      if (gives_bytes(row, range)) NACRE_TRY(add_zeros(context, inode, index, row, range));
    }
  }
  if (!row.base && row.patches.empty() && row.lost.empty()) {
    return metadata::encode(metadata::HoleRow{1});
  }
  return metadata::encode(row);
}

}  // namespace nacre::fs
