// SPDX-License-Identifier: Apache-2.0
// Puts a chunk's row in order when there is time for it: inlined bytes become records, and
// where is_worth_merging() patches become one base with what they lie over. The content stays.
#pragma once

#include "fs/cache/file_cache.h"
#include "fs/cache/file_data.h"

namespace nacre::fs {

// Draws versions together with the row, seals without holding a lock, and changes the row only if
// it is still the same then; if not, its records are dead, and older than what changed it. True:
// the row is another one. stale when the file is going; the errors of reading the chunk and of
// SegmentStore::append().
Result<bool> tidy_chunk(FileCache& cache, FileData& file, ChunkIndex index);

}  // namespace nacre::fs
