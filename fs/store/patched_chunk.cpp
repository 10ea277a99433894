// SPDX-License-Identifier: Apache-2.0
// See patched_chunk.h.
#include "fs/store/patched_chunk.h"

#include "fs/store/chunk_map.h"

namespace nacre::fs {

namespace {

// A chunk with that many patches is merged.
constexpr std::size_t patch_count_to_merge = 8;
// Patches of at least this share of the chunk's content are merged however few they are.
constexpr std::uint64_t merge_share = 4;

}  // namespace

bool is_worth_merging(const metadata::ChunkRow& row) {
  if (row.patches.empty()) return false;
  std::uint64_t patched = 0;
  for (const metadata::ChunkPatch& patch : row.patches)
    patched += patch.valid_size;
  return row.patches.size() >= patch_count_to_merge || patched * merge_share >= content_end(row);
}

}  // namespace nacre::fs
