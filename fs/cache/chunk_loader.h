// SPDX-License-Identifier: Apache-2.0
// Turns chunk rows into content: reads and opens base and patches, and assembles them.
#pragma once

#include <span>
#include <vector>

#include "fs/cache/chunk_cache.h"
#include "fs/store/chunk_map.h"
#include "metadata/tables/database.h"

namespace nacre::fs {

struct ChunkToLoad {
  InodeNumber inode;
  ChunkIndex index;
  const metadata::ChunkRow* row;  // borrowed
  // The caller does not need the bytes before it; the content is undefined there.
  std::uint32_t from = 0;
};

// Returns one result for each chunk, in order. All records are read together. Bytes that a row
// calls lost are zeros in the content, so a caller must look at the row before it passes them on.
// Errors of a result: out_of_memory; corrupt or missing for the row and inlined bytes; those of
// SegmentStore::read().
std::vector<Result<SharedContent>> load_chunks(metadata::Database& database, SegmentStore& store,
                                               std::uint32_t chunk_size_bytes,
                                               std::span<const ChunkToLoad> chunks);

}  // namespace nacre::fs
