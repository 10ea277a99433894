// SPDX-License-Identifier: Apache-2.0
// How the whole content of a chunk becomes records: one, or where it does not compress several
// parts (patched_chunk.h). A sample tells what is plainly noise, and what a sample does not tell
// the file's chunk before it does. Without a codec all content goes in parts: then the lengths of
// records depend on sizes alone (COMPRESSION.md).
#pragma once

#include <span>
#include <vector>

#include "fs/cache/file_cache.h"
#include "fs/cache/file_data.h"

namespace nacre::fs {

// Appends what is to be sealed (at least one record; plain is borrowed) and returns the row that
// will name it: base or patches, without location and version yet.
metadata::ChunkRow seal_whole(FileCache& cache, const FileData& file, ChunkIndex index,
                              ByteView plain, std::vector<SealRequest>& requests);

// What these requests have become, in their order; the file remembers how small that is.
void name_records(metadata::ChunkRow& row, FileData& file, std::span<const SealedRecord> records);

}  // namespace nacre::fs
