// SPDX-License-Identifier: Apache-2.0
// How a file of a mounted volume is stored: its chunks, and of each the records that hold it. What
// a record is packed with is sealed with it, so each record is read and opened.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "fs/store/segment_store.h"
#include "metadata/tables/database.h"

namespace nacre::fs {

// The base of a chunk, or a patch over it.
struct FilePiece {
  std::uint32_t offset = 0;      // within the chunk
  std::uint32_t plain_size = 0;  // as in the record
  // None: the bytes are a row of the database.
  std::optional<metadata::RecordLocation> location;
  engine::Codec codec = engine::Codec::none;
  std::uint32_t epoch = 0;
  Result<> result = {};  // why the record cannot be opened; then codec and epoch say nothing
};

enum class FileChunkKind : std::uint8_t { stored, hole, lost };

// One row: a chunk, or a run of chunks that are holes or lost.
struct FileChunk {
  metadata::ChunkIndex first;
  std::uint64_t count = 1;
  FileChunkKind kind = FileChunkKind::stored;
  std::uint32_t content_size = 0;  // of a stored one: bytes up to the last that a piece gives
  std::uint32_t lost_size = 0;     // of these, bytes that are known to be lost
  std::vector<FilePiece> pieces;
};

struct FileChunks {
  std::vector<FileChunk> chunks;
  std::optional<metadata::ChunkIndex> next;  // where to go on; none: that was the last
};

// The rows of an inode from a chunk on, as many as are worth one reply: at most 512 rows, 64 MiB of
// plain bytes. What is not stored yet is not there. Errors are the database's; of an inode without
// rows there are none. Thread-safe; beside everything else that goes on.
Result<FileChunks> look_at_chunks(const metadata::Database& database, SegmentStore& store,
                                  metadata::InodeNumber inode, metadata::ChunkIndex first);

}  // namespace nacre::fs
