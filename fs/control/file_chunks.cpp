// SPDX-License-Identifier: Apache-2.0
#include "fs/control/file_chunks.h"

#include <memory>
#include <string>
#include <utility>

#include "fs/store/chunk_map.h"

namespace nacre::fs {

namespace {

using metadata::ChunkIndex;
using metadata::ChunkMapRow;
using metadata::InodeNumber;
using metadata::Table;

constexpr std::size_t row_count_max = 512;
constexpr std::size_t piece_count_max = 1024;
constexpr std::uint64_t plain_bytes_max = 64u << 20;
// Compaction may move a record between two reads, but not many times in a row.
constexpr int attempt_count_max = 3;

FileChunk chunk_of(ChunkIndex index, const ChunkMapRow& row) {
  FileChunk chunk{.first = index};
  if (row.hole) {
    chunk.kind = FileChunkKind::hole;
    chunk.count = row.hole->chunk_count;
  } else if (row.lost) {
    chunk.kind = FileChunkKind::lost;
    chunk.count = row.lost->chunk_count;
  } else if (row.chunk) {
    chunk.content_size = content_end(*row.chunk);
    for (const metadata::LostRange& range : row.chunk->lost)
      chunk.lost_size += range.size;
    if (row.chunk->base) {
      chunk.pieces.push_back(
          {.plain_size = row.chunk->base->plain_size, .location = row.chunk->base->location});
    }
    for (const metadata::ChunkPatch& patch : row.chunk->patches) {
      chunk.pieces.push_back(
          {.offset = patch.offset, .plain_size = patch.plain_size, .location = patch.location});
    }
  }
  return chunk;
}

// Opens the chunk's records. Returns false if one could not be opened.
bool open_pieces(SegmentStore& store, InodeNumber inode, const metadata::ChunkRow& row,
                 FileChunk& chunk) {
  std::vector<ReadRequest> requests;
  std::vector<std::unique_ptr<Byte[]>> buffers;
  std::vector<FilePiece*> pieces;
  const std::size_t first_patch = row.base ? 1 : 0;
  for (std::size_t i = 0; i < chunk.pieces.size(); ++i) {
    FilePiece& piece = chunk.pieces[i];
    if (!piece.location) continue;
    const bool is_patch = i >= first_patch;
    buffers.push_back(std::make_unique_for_overwrite<Byte[]>(piece.plain_size));
    requests.push_back(
        {.location = *piece.location,
         .name = {inode, chunk.first,
                  is_patch ? row.patches[i - first_patch].version : row.base->version, piece.offset,
                  is_patch ? metadata::RecordKind::patch : metadata::RecordKind::chunk},
         .out = {buffers.back().get(), piece.plain_size}});
    pieces.push_back(&piece);
  }
  if (requests.empty()) return true;
  store.read(requests);
  bool good = true;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    pieces[i]->codec = requests[i].codec;
    pieces[i]->epoch = requests[i].epoch;
    pieces[i]->result = std::move(requests[i].result);
    good = good && pieces[i]->result.has_value();
  }
  return good;
}

// If compaction changes the row in the meantime, the newer row is used.
Result<std::optional<FileChunk>> look_at_chunk(const metadata::Database& database,
                                               SegmentStore& store, InodeNumber inode,
                                               ChunkIndex index) {
  const std::string key = metadata::chunk_key(inode, index);
  std::optional<std::string> seen;
  std::optional<FileChunk> chunk;
  for (int attempt = 0; attempt < attempt_count_max; ++attempt) {
    NACRE_ASSIGN(auto value, database.get(Table::chunks, key));
    if (!value) return std::nullopt;
    if (seen == value) return chunk;
    NACRE_ASSIGN(const ChunkMapRow row, metadata::decode_chunk_map_row(*value));
    seen = std::move(value);
    chunk = chunk_of(index, row);
    if (!row.chunk || open_pieces(store, inode, *row.chunk, *chunk)) return chunk;
  }
  return chunk;
}

}  // namespace

Result<FileChunks> look_at_chunks(const metadata::Database& database, SegmentStore& store,
                                  InodeNumber inode, ChunkIndex first) {
  // The indexes are collected first, because the database may not be called while rows are visited.
  std::vector<ChunkIndex> indexes;
  NACRE_TRY(database.scan(Table::chunks, metadata::chunk_key(inode, first),
                          metadata::prefix_end(metadata::chunk_prefix(inode)),
                          [&](std::string_view key, std::string_view) {
                            const auto parts = metadata::decode_chunk_key(key);
                            if (parts) indexes.push_back(parts->index);
                            return indexes.size() <= row_count_max;
                          }));
  FileChunks result;
  std::uint64_t plain_bytes = 0;
  std::size_t piece_count = 0;
  for (const ChunkIndex index : indexes) {
    if (result.chunks.size() == row_count_max || plain_bytes >= plain_bytes_max ||
        piece_count >= piece_count_max) {
      result.next = index;
      break;
    }
    NACRE_ASSIGN(auto chunk, look_at_chunk(database, store, inode, index));
    if (!chunk) continue;  // the file was truncated in the meantime
    for (const FilePiece& piece : chunk->pieces)
      plain_bytes += piece.plain_size;
    piece_count += chunk->pieces.size();
    result.chunks.push_back(std::move(*chunk));
  }
  return result;
}

}  // namespace nacre::fs
