// SPDX-License-Identifier: Apache-2.0
// Turns chunk rows into content: reads and opens base and patches, and puts them together.
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
  // Nobody looks at what lies before it, and the content's bytes there are undefined.
  std::uint32_t from = 0;
};

// One result a chunk, in order. All records are read in one go. Where a row says that bytes are
// lost the content is zeros: who hands it out looks at the row first. out_of_memory.
std::vector<Result<SharedContent>> load_chunks(metadata::Database& database, SegmentStore& store,
                                               std::uint32_t chunk_size_bytes,
                                               std::span<const ChunkToLoad> chunks);

}  // namespace nacre::fs
