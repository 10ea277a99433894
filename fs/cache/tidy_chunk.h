// SPDX-License-Identifier: Apache-2.0
// Tidies a chunk's row when there is time: inlined bytes become records, and, if
// is_worth_merging(), patches and their base become one new base. The content stays the same.
#pragma once

#include "fs/cache/file_cache.h"
#include "fs/cache/file_data.h"

namespace nacre::fs {

// Draws versions together with the row, seals without holding a lock, and changes the row only if
// it is still the same. If it is not, the new records are dead, and older than the change. Returns
// whether the row was changed. Errors: stale if the file is deleted; those of reading the chunk and
// of SegmentStore::append().
Result<bool> tidy_chunk(FileCache& cache, FileData& file, ChunkIndex index);

}  // namespace nacre::fs
