// SPDX-License-Identifier: Apache-2.0
// Turns the whole content of a chunk into records: one record, or several parts if it does not
// compress (patched_chunk.h). A sample of the content recognizes noise; otherwise the file's
// previous chunk decides. Without a codec all content goes in parts, so that the lengths of records
// depend only on sizes (COMPRESSION.md).
#pragma once

#include <span>
#include <vector>

#include "fs/cache/file_cache.h"
#include "fs/cache/file_data.h"

namespace nacre::fs {

// Appends the requests to seal plain, at least one; plain is borrowed. Returns the row that will
// name the records, base or patches, still without locations and versions.
metadata::ChunkRow seal_whole(FileCache& cache, const FileData& file, ChunkIndex index,
                              ByteView plain, std::vector<SealRequest>& requests);

// Enters the sealed records of these requests, in their order, into the row. The file notes how
// small they are.
void name_records(metadata::ChunkRow& row, FileData& file, std::span<const SealedRecord> records);

}  // namespace nacre::fs
