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

// The range [from, to) of the file, within one chunk that is punched in part. Of its blocks only
// those in the mask need zeros: the others are reserved and were not written.
struct FileData::Edge {
  std::uint64_t from = 0, to = 0;
  std::uint32_t blocks = ~0u;
};

// The edge, cut down to the bytes that the map holds, which may be none.
Result<FileData::Edge> FileData::edge_of(std::uint64_t from, std::uint64_t to) const {
  const std::uint32_t chunk_size = cache_.chunk_size_bytes();
  const std::uint64_t index = from / chunk_size;
  if (index >= cache_.map().chunk_count(durable_size_)) return Edge{from, from};
  NACRE_ASSIGN(const MappedChunk mapped, cache_.map().find(inode_, ChunkIndex{index}));
  const std::uint64_t content = mapped.hole ? 0 : content_end(mapped.row);
  return Edge{from, std::clamp(index * chunk_size + content, from, to),
              ~reserved_mask(index) | cache_.blocks().mask_of(mapped)};
}

void FileData::punch_edge(const Edge& edge) {
  const std::uint64_t block_bytes = cache_.blocks().block_bytes;
  for (std::uint64_t from = edge.from; from < edge.to;) {
    const std::uint64_t block = from / block_bytes;
    const std::uint64_t to = std::min(edge.to, (block + 1) * block_bytes);
    if ((edge.blocks >> (block % cache_.blocks().per_chunk) & 1) != 0)
      write_dirty(from, Bytes(to - from, Byte{0}));
    from = to;
  }
  const auto dirty = dirty_.find(edge.from / cache_.chunk_size_bytes());
  if (dirty != dirty_.end()) dirty->second.note_punched();
}

Result<> FileData::punch(std::uint64_t offset, std::uint64_t length, PunchReserved reserved) {
  UniqueLock flush_lock(flush_mutex_);
  const std::uint64_t chunk_size = cache_.chunk_size_bytes();
  {
    const auto operation = cache_.committer().begin_operation();
    UniqueLock lock(mutex_);
    if (discarded_ || length == 0) return {};
    const BlockSizes& blocks = cache_.blocks();
    // The blocks that lie wholly in the range. The file's last block counts if nothing of it is
    // left.
    const std::uint64_t first_block = (offset + blocks.block_bytes - 1) / blocks.block_bytes;
    std::uint64_t end_block = (offset + length) / blocks.block_bytes;
    if (offset < size_ && length >= size_ - offset) {
      end_block = std::max(end_block, (size_ + blocks.block_bytes - 1) / blocks.block_bytes);
    }
    const bool gives_back = reserved == PunchReserved::give_back;
    std::uint64_t written_count = 0;
    // Of a chunk whose row goes, or of which a part is punched.
    const auto note_written = [&](std::uint64_t index, std::uint32_t mask) NACRE_REQUIRES(mutex_) {
      mask &= reserved_mask(index);
      for (std::uint32_t i = 0; i < blocks.per_chunk; ++i) {
        const std::uint64_t block = index * blocks.per_chunk + i;
        if ((mask >> i & 1) == 0 || block < first_block || block >= end_block) continue;
        if (gives_back) {
          ++written_count;
        } else {
          reservation_->remove(block, block + 1);
        }
      }
    };
    if (offset >= size_) {
      if (gives_back) give_back_blocks(first_block, end_block, 0);
      return {};
    }
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
      const std::uint64_t index = from / chunk_size;
      if (gives_back && reserved_mask(index) != 0 &&
          index < cache_.map().chunk_count(durable_size_)) {
        NACRE_ASSIGN(const MappedChunk mapped, cache_.map().find(inode_, ChunkIndex{index}));
        note_written(index, blocks.mask_of(mapped));
      }
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
      const RowGoes goes = [&](ChunkIndex index, const metadata::ChunkRow& row) NACRE_REQUIRES(
                               mutex_) { note_written(index.value, blocks.mask_of(row)); };
      NACRE_ASSIGN(const std::int64_t change,
                   cache_.map().set_hole(inode_, ChunkIndex{first}, hole_end - first,
                                         reservation_ ? goes : nullptr));
      data_bytes_ += static_cast<std::uint64_t>(change);
      cache_.observer().durable_state_changed(inode_);
    }
    if (gives_back) give_back_blocks(first_block, end_block, written_count);
    drop_surplus_ranges();
    for (const Edge& edge : edges)
      punch_edge(edge);
    note_dirty();
    note_clean();
  }
  cache_.committer().note_change();
  return {};
}

}  // namespace nacre::fs
