// SPDX-License-Identifier: Apache-2.0
// Punching holes. Chunks that lie in the range whole lose their rows. Of a chunk at its edge the
// content is looked at: people punch in pieces that are smaller than a chunk, and when the last of
// them is gone nothing but zeros is left, which need no row either.
#include <algorithm>
#include <utility>

#include "fs/cache/file_cache.h"
#include "fs/cache/file_data.h"

namespace nacre::fs {

using metadata::ChunkPatch;
using metadata::ChunkRow;

struct FileData::Edge {
  std::uint64_t index = 0;
  std::uint32_t from = 0, to = 0;     // within the chunk
  std::optional<MappedChunk> mapped;  // where the map has a row for it
  std::optional<ChunkRow> cut;        // the row without the range, where a row can say that
  bool may_be_zeros = false;          // as far as one sees without reading
  std::optional<Bytes> stored;        // what the row gives, where that was read
};

namespace {

bool is_zeros(ByteView bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](Byte byte) { return byte == 0; });
}

// Outside [from, to).
bool is_zeros_outside(const DirtyChunk& dirty, std::uint32_t from, std::uint32_t to) {
  return std::all_of(
      dirty.pieces().begin(), dirty.pieces().end(), [&](const DirtyChunk::Piece& piece) {
        const ByteView bytes = piece.bytes;
        const std::uint32_t before = std::clamp(from, piece.offset, piece.end()) - piece.offset;
        const std::uint32_t after = std::clamp(to, piece.offset, piece.end()) - piece.offset;
        return is_zeros(bytes.first(before)) && is_zeros(bytes.subspan(after));
      });
}

// The row without [from, to): none where a record gives bytes on both sides of what is cut.
std::optional<ChunkRow> row_without(const ChunkRow& row, std::uint32_t from, std::uint32_t to) {
  if (is_lost(row, from, to)) return std::nullopt;
  ChunkRow cut = row;
  if (cut.base && cut.base->valid_size > from) {
    if (cut.base->valid_size > to) return std::nullopt;
    cut.base->valid_size = from;
    if (from == 0) cut.base.reset();
  }
  std::erase_if(cut.patches, [&](const ChunkPatch& patch) {
    return from <= patch.offset && patch.offset + patch.valid_size <= to;
  });
  for (ChunkPatch& patch : cut.patches) {
    const std::uint32_t end = patch.offset + patch.valid_size;
    if (end <= from || to <= patch.offset) continue;
    if (patch.offset >= from || end > to) return std::nullopt;
    patch.valid_size = from - patch.offset;
  }
  return cut;
}

bool is_empty(const ChunkRow& row) {
  return !row.base && row.patches.empty() && row.lost.empty();
}

}  // namespace

Result<FileData::Edge> FileData::edge_at(std::uint64_t index, std::uint32_t from,
                                         std::uint32_t to) const {
  Edge edge{.index = index, .from = from, .to = to};
  const auto dirty = dirty_.find(index);
  edge.may_be_zeros = dirty == dirty_.end() || is_zeros_outside(dirty->second, from, to);
  if (index >= cache_.map().chunk_count(durable_size_)) return edge;
  NACRE_ASSIGN(MappedChunk mapped, cache_.map().find(inode_, ChunkIndex{index}));
  if (mapped.hole) return edge;
  if (!mapped.row.lost.empty()) edge.may_be_zeros = false;
  edge.cut = row_without(mapped.row, from, to);
  edge.mapped = std::move(mapped);
  return edge;
}

// Returns the change of data bytes. All of it is one change of the chunk's row, or dirty bytes that
// become one: a crash leaves the chunk as it was, or punched.
Result<std::int64_t> FileData::punch_edge(const Edge& edge) {
  const std::uint64_t begin = edge.index * cache_.chunk_size_bytes();
  const auto dirty = dirty_.find(edge.index);
  const auto is_zeros_now = [&] {
    if (!edge.may_be_zeros) return false;
    if (!edge.mapped || is_empty(edge.cut.value_or(edge.mapped->row))) {
      return dirty == dirty_.end() || is_zeros_outside(dirty->second, 0, 0);
    }
    if (!edge.stored) return false;
    Bytes content = *edge.stored;
    if (dirty != dirty_.end()) {
      content.resize(std::max<std::size_t>(content.size(), dirty->second.end()));
      dirty->second.overlay(0, content);
    }
    const auto size = static_cast<std::uint32_t>(content.size());
    return is_zeros(ByteView(content).first(std::min(edge.from, size))) &&
           is_zeros(ByteView(content).subspan(std::min(edge.to, size)));
  };
  if (is_zeros_now()) {
    erase_dirty(begin, begin + cache_.chunk_size_bytes());
    if (!edge.mapped) return 0;
    return cache_.map().set_hole(inode_, ChunkIndex{edge.index}, 1);
  }
  if (!edge.mapped) return 0;
  if (edge.cut) {
    if (*edge.cut == edge.mapped->row) return 0;
    return cache_.map().replace_chunk(inode_, ChunkIndex{edge.index}, *edge.mapped, *edge.cut);
  }
  const std::uint32_t to = std::min(edge.to, content_end(edge.mapped->row));
  if (edge.from < to) write_dirty(begin + edge.from, Bytes(to - edge.from, Byte{0}));
  return 0;
}

Result<> FileData::punch(std::uint64_t offset, std::uint64_t length) {
  std::unique_lock flush_lock(flush_mutex_);  // rows and size() stay: writes only add to it
  const std::uint32_t chunk_size = cache_.chunk_size_bytes();
  std::uint64_t end = 0, first = 0, last = 0;
  std::vector<Edge> edges;
  {
    std::shared_lock lock(mutex_);
    const std::uint64_t size = size_;
    if (discarded_ || offset >= size || length == 0) return {};
    end = length > size - offset ? size : offset + length;
    // Chunks that lie in the range whole; the last one of the file counts as whole when nothing of
    // it is left.
    first = (offset + chunk_size - 1) / chunk_size;
    last = end == size ? cache_.map().chunk_count(end) : end / chunk_size;
    const auto add = [&](std::uint64_t from, std::uint64_t to) -> Result<> {
      if (from >= to) return {};
      const std::uint64_t index = from / chunk_size;
      NACRE_ASSIGN(Edge edge, edge_at(index, static_cast<std::uint32_t>(from - index * chunk_size),
                                      static_cast<std::uint32_t>(to - index * chunk_size)));
      edges.push_back(std::move(edge));
      return {};
    };
    if (first > last) {
      NACRE_TRY(add(offset, end));
    } else {
      NACRE_TRY(add(offset, std::min(end, first * chunk_size)));
      NACRE_TRY(add(std::max(offset, last * chunk_size), end));
    }
  }
  for (Edge& edge : edges) {
    if (!edge.may_be_zeros || !edge.mapped || is_empty(edge.cut.value_or(edge.mapped->row))) {
      continue;
    }
    // A chunk that cannot be read is not known to be zeros.
    if (auto stored = stored_content(ChunkIndex{edge.index}, *edge.mapped)) {
      edge.stored = std::move(*stored);
    }
  }
  {
    const auto operation = cache_.committer().begin_operation();
    std::unique_lock lock(mutex_);
    if (discarded_) return {};
    erase_dirty(offset, end);
    std::int64_t change = 0;
    const std::uint64_t hole_end = std::min(last, cache_.map().chunk_count(durable_size_));
    if (first < hole_end) {
      NACRE_ASSIGN(change, cache_.map().set_hole(inode_, ChunkIndex{first}, hole_end - first));
      data_bytes_ += static_cast<std::uint64_t>(change);
      cache_.observer().durable_state_changed(inode_);
    }
    for (const Edge& edge : edges) {
      NACRE_ASSIGN(change, punch_edge(edge));
      data_bytes_ += static_cast<std::uint64_t>(change);
      if (edge.mapped) cache_.observer().durable_state_changed(inode_);
    }
    if (!dirty_.empty() || durable_size_ != size_) note_dirty();
    note_clean();
  }
  cache_.committer().note_change();
  return {};
}

}  // namespace nacre::fs
