// SPDX-License-Identifier: Apache-2.0
// Tells how a file of a mounted volume is stored: its chunks, and the records of each. The codec of
// a record is sealed in it, so each record is read and opened.
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
  std::uint32_t plain_size = 0;  // plain bytes in the record
  // Empty: the bytes are in a row of the database.
  std::optional<metadata::RecordLocation> location;
  engine::Codec codec = engine::Codec::none;
  std::uint32_t epoch = 0;
  Result<> result = {};  // why the record cannot be opened; codec and epoch are then not set
};

enum class FileChunkKind : std::uint8_t { stored, hole, lost };

// One row: a chunk, or a run of chunks that are holes or lost.
struct FileChunk {
  metadata::ChunkIndex first;
  std::uint64_t count = 1;
  FileChunkKind kind = FileChunkKind::stored;
  std::uint32_t content_size = 0;  // for a stored chunk: the end of the last piece
  std::uint32_t lost_size = 0;     // how many of these bytes are known to be lost
  std::vector<FilePiece> pieces;
};

struct FileChunks {
  std::vector<FileChunk> chunks;
  std::optional<metadata::ChunkIndex> next;  // where to go on; empty: there are no more rows
};

// Returns the rows of an inode from a chunk on, at most 512 rows and 64 MiB of plain bytes, which
// fit into one reply. Data that is not stored yet has no row. An inode without rows gives an empty
// result. Errors are those of the database. Thread-safe; may run while the file is in use.
Result<FileChunks> look_at_chunks(const metadata::Database& database, SegmentStore& store,
                                  metadata::InodeNumber inode, metadata::ChunkIndex first);

}  // namespace nacre::fs
