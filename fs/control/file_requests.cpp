// SPDX-License-Identifier: Apache-2.0
#include "fs/control/file_requests.h"

#include <optional>
#include <string>

#include <nlohmann/json.hpp>

namespace nacre::fs {

namespace {

using nlohmann::json;

std::optional<std::uint64_t> number(const json& message, const char* name) {
  const auto at = message.find(name);
  if (at == message.end() || !at->is_number_unsigned()) return std::nullopt;
  return at->get<std::uint64_t>();
}

json piece_json(const FilePiece& piece) {
  json result = {{"offset", piece.offset}, {"plain_bytes", piece.plain_size}};
  if (!piece.location) {
    result["inlined"] = true;
    return result;
  }
  result["segment"] = piece.location->segment.value;
  result["segment_offset"] = piece.location->offset;
  result["stored_bytes"] = piece.location->stored_size;
  if (piece.result) {
    result["codec"] = engine::to_string(piece.codec);
    result["epoch"] = piece.epoch;
  } else {
    result["damage"] = to_string(piece.result.error().code);
  }
  return result;
}

json chunk_json(const FileChunk& chunk) {
  constexpr const char* kinds[] = {"stored", "hole", "lost"};
  json result = {{"chunk", chunk.first.value},
                 {"chunk_count", chunk.count},
                 {"kind", kinds[static_cast<std::size_t>(chunk.kind)]}};
  if (chunk.kind != FileChunkKind::stored) return result;
  result["content_bytes"] = chunk.content_size;
  if (chunk.lost_size > 0) result["lost_bytes"] = chunk.lost_size;
  auto& pieces = result["pieces"] = json::array();
  for (const FilePiece& piece : chunk.pieces)
    pieces.push_back(piece_json(piece));
  return result;
}

}  // namespace

Result<json> handle_file(ControlHandler& handler, const MountDescription& description,
                         const json& message) {
  const auto inode = number(message, "inode");
  if (!inode) return fail(ErrorCode::invalid_argument, "the request names no inode");
  NACRE_ASSIGN(
      const FileChunks file,
      handler.look_at_file(metadata::InodeNumber{*inode},
                           metadata::ChunkIndex{number(message, "first_chunk").value_or(0)}));
  json result = {{"chunk_size_bytes", description.chunk_size_bytes}, {"chunks", json::array()}};
  for (const FileChunk& chunk : file.chunks)
    result["chunks"].push_back(chunk_json(chunk));
  if (file.next) result["next_chunk"] = file.next->value;
  return result;
}

}  // namespace nacre::fs
