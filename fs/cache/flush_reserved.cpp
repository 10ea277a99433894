// SPDX-License-Identifier: Apache-2.0
// What a flush has to know of reserved blocks (fs/space/reservation.h): the room that it may use,
// and what must stay free in the rows of chunks.
#include <algorithm>
#include <bit>

#include "fs/cache/flush.h"

namespace nacre::fs {

Result<SealedBatch> Flush::append() {
  const std::uint64_t promised_count = promised_block_count();
  if (promised_count == 0) {
    const SharedLock gate(cache_.append_gate());
    return cache_.store().append(requests_);
  }
  const UniqueLock gate(cache_.append_gate());
  const auto drawn = cache_.draw_reserved(promised_count);
  return cache_.store().append(requests_);
}

std::uint64_t Flush::promised_block_count() const {
  std::uint64_t count = 0;
  for (const File& file : files_) {
    for (const Chunk& chunk : file.chunks)
      count += static_cast<std::uint64_t>(
          std::popcount(taken_chunk(*file.data, chunk.index).promised()));
  }
  return count;
}

bool Flush::has_gap(const File& file, const Chunk& chunk, const DirtyChunk& dirty) const {
  const FileData& data = *file.data;
  const BlockSizes& blocks = cache_.blocks();
  const std::uint32_t end = std::max(dirty.end(), content_end(chunk.old.row));
  const SharedLock lock(data.mutex_);
  return (data.reserved_mask(chunk.index) & blocks.mask_of(0, end) & ~blocks.mask_of(chunk.old) &
          ~data.mask_of(dirty)) != 0;
}

// Each reserved block that is not written when the flush is done may need a patch of its own.
std::size_t Flush::patch_count_limit(const File& file, const Chunk& chunk,
                                     const DirtyChunk& dirty) const {
  const FileData& data = *file.data;
  std::uint32_t reserved = 0;
  {
    const SharedLock lock(data.mutex_);
    reserved = data.reserved_mask(chunk.index);
  }
  const std::uint32_t later = reserved & ~cache_.blocks().mask_of(chunk.old) & ~data.mask_of(dirty);
  return metadata::patch_count_max - static_cast<std::size_t>(std::popcount(later));
}

}  // namespace nacre::fs
