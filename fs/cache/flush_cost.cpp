// SPDX-License-Identifier: Apache-2.0
#include "fs/cache/flush_cost.h"

#include <algorithm>

#include "fs/store/patched_chunk.h"

namespace nacre::fs {

namespace {

// What the row of a chunk takes, and what each record adds to it, in the log and in the tables.
constexpr std::uint64_t row_cost_bytes = 512;
constexpr std::uint64_t row_cost_bytes_per_record = 96;
// Padding makes a record longer by at most this share.
constexpr std::uint64_t share_of_padding = 8;

}  // namespace

FlushCost::FlushCost(const SegmentStore& store, std::uint32_t chunk_size_bytes)
    : store_(store),
      chunk_size_bytes_(chunk_size_bytes),
      part_size_bytes_(part_size_bytes(chunk_size_bytes)),
      full_part_cost_bytes_(store.record_size_bound(part_size_bytes_) + row_cost_bytes_per_record),
      full_chunk_cost_bytes_(of_whole(chunk_size_bytes)) {}

// One record, or parts: nobody knows before the content is compressed.
std::uint64_t FlushCost::of_whole(std::uint32_t size) const {
  const std::uint64_t one = store_.record_size_bound(size) + row_cost_bytes_per_record;
  if (size <= part_size_bytes_) return row_cost_bytes + one;
  const std::uint32_t rest = size % part_size_bytes_;
  std::uint64_t parts = size / part_size_bytes_ * full_part_cost_bytes_;
  if (rest > 0) parts += store_.record_size_bound(rest) + row_cost_bytes_per_record;
  return row_cost_bytes + std::max(one, parts);
}

std::uint64_t FlushCost::of_patches(std::uint64_t dirty_bytes, std::size_t piece_count) const {
  return row_cost_bytes + dirty_bytes + dirty_bytes / share_of_padding +
         piece_count * (store_.record_size_bound(0) + row_cost_bytes_per_record);
}

std::uint64_t FlushCost::of_chunk(std::uint64_t dirty_bytes, std::size_t piece_count,
                                  std::uint32_t content_end) const {
  if (piece_count == 0) return 0;
  const std::uint64_t whole =
      content_end == chunk_size_bytes_ ? full_chunk_cost_bytes_ : of_whole(content_end);
  // Bytes that are all of the content are never stored as patches.
  if (dirty_bytes >= content_end) return whole;
  return std::max(whole, of_patches(dirty_bytes, piece_count));
}

std::uint64_t FlushCost::of_write(std::uint64_t offset, std::uint64_t size,
                                  std::uint64_t file_size) const {
  const std::uint64_t end = offset + size;
  std::uint64_t cost = 0;
  const auto add = [&](std::uint64_t from, std::uint64_t to) {
    const std::uint64_t begin = from - from % chunk_size_bytes_;
    const auto content_end = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(chunk_size_bytes_, std::max(file_size, end) - begin));
    cost += of_chunk(to - from, 1, content_end);
  };
  std::uint64_t from = offset;
  if (const std::uint64_t rest = from % chunk_size_bytes_; rest > 0 && from < end) {
    const std::uint64_t to = std::min(end, from + (chunk_size_bytes_ - rest));
    add(from, to);
    from = to;
  }
  const std::uint64_t full_count = (end - from) / chunk_size_bytes_;
  cost += full_count * full_chunk_cost_bytes_;
  from += full_count * chunk_size_bytes_;
  if (from < end) add(from, end);
  return cost;
}

std::uint64_t FlushCost::of_write_anywhere(std::uint64_t size) const {
  if (size == 0) return 0;
  // One byte in the first chunk, so that as many chunks as possible are touched.
  const std::uint64_t chunks_touched = (size - 1 + chunk_size_bytes_ - 1) / chunk_size_bytes_ + 1;
  return chunks_touched * full_chunk_cost_bytes_;
}

}  // namespace nacre::fs
