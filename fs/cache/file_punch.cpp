// SPDX-License-Identifier: Apache-2.0
// Punching holes. Chunks that lie wholly in the range lose their rows. In a chunk at the edge,
// bytes that the map holds are overwritten with zeros, which are ordinary dirty bytes: after a
// crash the chunk is as it was, or punched. The flush checks what is left of such a chunk. Programs
// punch in pieces that are smaller than a chunk; after the last piece only zeros are left, which
// need no row.
#include <algorithm>
#include <vector>

#include "fs/cache/file_cache.h"
#include "fs/cache/file_data.h"

namespace nacre::fs {

// The range [from, to) of the file, within one chunk that is punched in part.
struct FileData::Edge {
  std::uint64_t from = 0, to = 0;
};

// The edge, cut down to the bytes that the map holds, which may be none.
Result<FileData::Edge> FileData::edge_of(std::uint64_t from, std::uint64_t to) const {
  const std::uint32_t chunk_size = cache_.chunk_size_bytes();
  const std::uint64_t index = from / chunk_size;
  if (index >= cache_.map().chunk_count(durable_size_)) return Edge{from, from};
  NACRE_ASSIGN(const MappedChunk mapped, cache_.map().find(inode_, ChunkIndex{index}));
  const std::uint64_t content = mapped.hole ? 0 : content_end(mapped.row);
  return Edge{from, std::clamp(index * chunk_size + content, from, to)};
}

void FileData::punch_edge(const Edge& edge) {
  if (edge.from < edge.to) write_dirty(edge.from, Bytes(edge.to - edge.from, Byte{0}));
  const auto dirty = dirty_.find(edge.from / cache_.chunk_size_bytes());
  if (dirty != dirty_.end()) dirty->second.note_punched();
}

Result<> FileData::punch(std::uint64_t offset, std::uint64_t length) {
  UniqueLock flush_lock(flush_mutex_);
  const std::uint64_t chunk_size = cache_.chunk_size_bytes();
  {
    const auto operation = cache_.committer().begin_operation();
    UniqueLock lock(mutex_);
    if (discarded_ || offset >= size_ || length == 0) return {};
    const std::uint64_t end = length > size_ - offset ? size_.load() : offset + length;
    // The chunks that lie wholly in the range. The file's last chunk counts if nothing of it is
    // left.
    const std::uint64_t first = (offset + chunk_size - 1) / chunk_size;
    const std::uint64_t last = end == size_ ? cache_.map().chunk_count(end) : end / chunk_size;
    std::vector<Edge> edges;
    const auto add = [&](std::uint64_t from, std::uint64_t to) NACRE_REQUIRES(mutex_) -> Result<> {
      if (from >= to) return {};
      NACRE_ASSIGN(const Edge edge, edge_of(from, to));
      edges.push_back(edge);
      return {};
    };
    if (first > last) {
      NACRE_TRY(add(offset, end));
    } else {
      NACRE_TRY(add(offset, std::min(end, first * chunk_size)));
      NACRE_TRY(add(std::max(offset, last * chunk_size), end));
    }
    erase_dirty(offset, end);
    const std::uint64_t hole_end = std::min(last, cache_.map().chunk_count(durable_size_));
    if (first < hole_end) {
      NACRE_ASSIGN(const std::int64_t change,
                   cache_.map().set_hole(inode_, ChunkIndex{first}, hole_end - first));
      data_bytes_ += static_cast<std::uint64_t>(change);
      cache_.observer().durable_state_changed(inode_);
    }
    for (const Edge& edge : edges)
      punch_edge(edge);
    note_dirty();
    note_clean();
  }
  cache_.committer().note_change();
  return {};
}

}  // namespace nacre::fs
