// SPDX-License-Identifier: Apache-2.0
// The room on disk that the flush of dirty bytes may take. It is counted when the bytes are
// written, long before the flush looks at the chunk's row. So it is an upper bound: a chunk that
// was written in part may be merged with its content and stored as a whole, and then 4 KiB take as
// much room as the chunk. Records are counted with headers, tags and padding, and as if they did
// not compress. Their rows are counted twice, for the log and for the tables of the database.
//
// This class only computes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "fs/store/segment_store.h"

namespace nacre::fs {

class FlushCost {
 public:
  // store outlives it.
  FlushCost(const SegmentStore& store, std::uint32_t chunk_size_bytes);

  // The cost of a chunk with that number of dirty bytes, in that number of pieces. Its content,
  // dirty bytes included, ends at content_end or before.
  std::uint64_t of_chunk(std::uint64_t dirty_bytes, std::size_t piece_count,
                         std::uint32_t content_end) const;
  // A write to a file of file_size bytes: what it adds to the cost of the chunks that it touches.
  std::uint64_t of_write(std::uint64_t offset, std::uint64_t size, std::uint64_t file_size) const;
  // The same wherever the write lies.
  std::uint64_t of_write_anywhere(std::uint64_t size) const;

 private:
  std::uint64_t of_whole(std::uint32_t size) const;
  std::uint64_t of_patches(std::uint64_t dirty_bytes, std::size_t piece_count) const;

  const SegmentStore& store_;
  const std::uint32_t chunk_size_bytes_;
  const std::uint32_t part_size_bytes_;
  const std::uint64_t full_part_cost_bytes_;
  const std::uint64_t full_chunk_cost_bytes_;
};

}  // namespace nacre::fs
