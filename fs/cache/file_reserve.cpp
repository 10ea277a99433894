// SPDX-License-Identifier: Apache-2.0
// The blocks that fallocate(2) has reserved for one file, and what becomes of them as its rows
// change (fs/space/reservation.h).
#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "fs/cache/file_cache.h"
#include "fs/cache/file_data.h"
#include "fs/cache/tidy_chunk.h"

namespace nacre::fs {

namespace {

constexpr std::uint64_t scanned_chunk_count_max = 256;

std::uint64_t count_of(std::uint32_t mask) {
  return static_cast<std::uint64_t>(std::popcount(mask));
}

}  // namespace

std::uint32_t FileData::reserved_mask(std::uint64_t index) const {
  return reservation_ ? reservation_->mask(index) : 0;
}

std::uint32_t FileData::mask_of(const DirtyChunk& chunk) const {
  std::uint32_t mask = 0;
  for (const DirtyChunk::Piece& piece : chunk.pieces())
    mask |= cache_.blocks().mask_of(piece.offset, piece.end());
  return mask;
}

// What a flush has taken counts as written: a second write of such a block needs room of its own.
Result<std::uint32_t> FileData::promised_mask(std::uint64_t index) const {
  std::uint32_t mask = reserved_mask(index);
  if (mask == 0) return mask;
  if (index < cache_.map().chunk_count(durable_size_)) {
    NACRE_ASSIGN(const MappedChunk mapped, cache_.map().find(inode_, ChunkIndex{index}));
    mask &= ~cache_.blocks().mask_of(mapped);
  }
  const auto flushing = flushing_.find(index);
  if (flushing != flushing_.end()) mask &= ~mask_of(flushing->second);
  return mask;
}

FileData::ReservedBytes FileData::reserved_bytes() const {
  SharedLock lock(mutex_);
  if (!reservation_) return {};
  const std::uint64_t block_bytes = cache_.blocks().block_bytes;
  return {.unwritten = reservation_->unwritten_count() * block_bytes,
          .end = reservation_->end() * block_bytes};
}

bool FileData::has_reserved_gap(ChunkIndex index, const metadata::ChunkRow& row) const {
  SharedLock lock(mutex_);
  const BlockSizes& blocks = cache_.blocks();
  return (reserved_mask(index.value) & blocks.mask_of(0, content_end(row)) &
          ~blocks.mask_of(row)) != 0;
}

Result<bool> FileData::is_promised(std::uint64_t offset, std::uint64_t size) const {
  const std::uint64_t chunk_size = cache_.chunk_size_bytes();
  SharedLock lock(mutex_);
  if (!reservation_ || discarded_) return false;
  const std::uint64_t end = offset + std::max<std::uint64_t>(size, 1);
  for (std::uint64_t from = offset; from < end;) {
    const std::uint64_t index = from / chunk_size;
    const std::uint64_t to = std::min(end, (index + 1) * chunk_size);
    NACRE_ASSIGN(const std::uint32_t promised, promised_mask(index));
    const std::uint32_t wanted =
        cache_.blocks().mask_of(static_cast<std::uint32_t>(from - index * chunk_size),
                                static_cast<std::uint32_t>(to - index * chunk_size));
    if ((wanted & ~promised) != 0) return false;
    from = to;
  }
  return true;
}

Result<std::vector<FileData::ByteRange>> FileData::write_promised(std::uint64_t offset,
                                                                  ByteView bytes) {
  constexpr std::uint64_t file_size_max = std::numeric_limits<std::int64_t>::max();
  if (offset > file_size_max || bytes.size() > file_size_max - offset) {
    return fail(ErrorCode::too_big);
  }
  // Without room other bytes may keep the budget used up for good. These do not: they are flushed.
  static_cast<void>(cache_.wait_for_budget());
  const std::uint64_t chunk_size = cache_.chunk_size_bytes();
  const std::uint64_t block_bytes = cache_.blocks().block_bytes;
  std::vector<ByteRange> rest;
  bool has_taken = false;
  {
    UniqueLock lock(mutex_);
    if (discarded_) return rest;
    for (std::uint64_t done = 0; done < bytes.size();) {
      const std::uint64_t from = offset + done;
      const std::uint64_t index = from / chunk_size;
      const std::uint64_t begin = index * chunk_size;
      const std::uint64_t chunk_end = std::min(begin + chunk_size, offset + bytes.size());
      NACRE_ASSIGN(const std::uint32_t promised, promised_mask(index));
      // As far as blocks are all promised, or all not.
      const auto is_promised_at = [&](std::uint64_t at) {
        return (promised >> ((at - begin) / block_bytes) & 1) != 0;
      };
      const bool takes = is_promised_at(from);
      std::uint64_t to = from;
      while (to < chunk_end && is_promised_at(to) == takes)
        to = (to / block_bytes + 1) * block_bytes;
      to = std::min(to, chunk_end);
      if (takes) {
        write_dirty(from, bytes.subspan(done, to - from));
        DirtyChunk& chunk = dirty_.at(index);
        chunk.set_promised(chunk.promised() |
                           cache_.blocks().mask_of(static_cast<std::uint32_t>(from - begin),
                                                   static_cast<std::uint32_t>(to - begin)));
        has_promised_ = true;
        has_taken = true;
        if (to > size_) size_ = to;
        note_dirty();
      } else if (!rest.empty() && rest.back().offset + rest.back().size == from) {
        rest.back().size += to - from;
      } else {
        rest.push_back({from, to - from});
      }
      done += to - from;
    }
  }
  if (!has_taken) return rest;
  cache_.committer().note_change();
  if (cache_.is_over_budget()) NACRE_TRY(cache_.flush_promised(shared_from_this()));
  return rest;
}

// Counts the blocks of [first, end) that are not written. crowded gets chunks whose rows have no
// room for a patch for each of them.
Result<std::uint64_t> FileData::count_unwritten(std::uint64_t first, std::uint64_t end,
                                                std::vector<ChunkIndex>* crowded) const {
  const BlockSizes& blocks = cache_.blocks();
  const std::uint64_t mapped = cache_.map().chunk_count(durable_size_);
  const std::uint64_t end_chunk = std::min((end + blocks.per_chunk - 1) / blocks.per_chunk, mapped);
  std::uint64_t written = 0;
  for (std::uint64_t index = first / blocks.per_chunk; index < end_chunk;) {
    NACRE_ASSIGN(const auto chunks,
                 cache_.map().find_range(inode_, ChunkIndex{index},
                                         std::min(scanned_chunk_count_max, end_chunk - index)));
    std::uint64_t step = 0;
    while (step < chunks.size()) {
      const MappedChunk& chunk = chunks[step];
      if (chunk.hole) {
        step += std::min(chunk.run, end_chunk - index - step);
        continue;
      }
      const std::uint64_t begin = (index + step) * blocks.per_chunk;
      std::uint32_t wanted = ~0u;
      if (first > begin)
        wanted &=
            ~blocks.mask_of(0, static_cast<std::uint32_t>(first - begin) * blocks.block_bytes);
      if (end < begin + blocks.per_chunk)
        wanted &= blocks.mask_of(0, static_cast<std::uint32_t>(end - begin) * blocks.block_bytes);
      const std::uint32_t mask = blocks.mask_of(chunk.row);
      written += count_of(mask & wanted);
      const std::uint32_t all = blocks.mask_of(0, blocks.chunk_bytes);
      if (crowded != nullptr &&
          chunk.row.patches.size() + count_of(all & ~mask) > metadata::patch_count_max) {
        crowded->push_back(ChunkIndex{index + step});
      }
      ++step;
    }
    index += step;
  }
  return end - first - std::min(end - first, written);
}

Result<> FileData::reserve(std::uint64_t offset, std::uint64_t length) {
  Reservations* const all = cache_.options().reservations;
  if (all == nullptr) return {};
  const std::uint64_t block_bytes = cache_.blocks().block_bytes;
  const std::uint64_t first = offset / block_bytes;
  const std::uint64_t end = (offset + length + block_bytes - 1) / block_bytes;
  for (bool may_tidy = true;; may_tidy = false) {
    std::vector<ChunkIndex> crowded;
    {
      // Nothing changes the file's rows until this is released.
      UniqueLock flush_lock(flush_mutex_);
      if (discarded_) return {};
      std::uint64_t count = 0;
      {
        SharedLock lock(mutex_);
        std::vector<BlockRange> fresh = {{first, end}};
        if (reservation_) fresh = reservation_->outside(first, end);
        for (const BlockRange& range : fresh) {
          NACRE_ASSIGN(const std::uint64_t unwritten,
                       count_unwritten(range.first, range.end, may_tidy ? &crowded : nullptr));
          count += unwritten;
        }
      }
      if (count == 0) return {};
      if (crowded.empty()) {
        NACRE_TRY(all->promise(count, [this] { return cache_.dirty_bytes(); }));
        const auto operation = cache_.committer().begin_operation();
        UniqueLock lock(mutex_);
        if (!reservation_) reservation_ = all->find_or_make(inode_);
        if (!reservation_->add(first, end)) {
          all->give_back(count);
          return fail(ErrorCode::unsupported);
        }
        Reservations::note_added(*reservation_, count);
        cache_.observer().durable_state_changed(inode_);
        break;
      }
    }
    for (const ChunkIndex index : crowded)
      NACRE_TRY(tidy_chunk(cache_, *this, index));
  }
  cache_.committer().note_change();
  return {};
}

void FileData::note_blocks(std::uint64_t index, std::uint32_t before, std::uint32_t after) {
  if (!reservation_ || before == after) return;
  const std::uint32_t reserved = reservation_->mask(index);
  if (reserved == 0) return;
  const std::uint64_t written = count_of(after & ~before & reserved);
  if (written > 0) cache_.options().reservations->note_gone(*reservation_, written);
  const std::uint32_t gone = before & ~after & reserved;
  for (std::uint32_t i = 0; i < cache_.blocks().per_chunk; ++i) {
    const std::uint64_t block = index * cache_.blocks().per_chunk + i;
    if ((gone >> i & 1) != 0) reservation_->remove(block, block + 1);
  }
}

void FileData::give_back_blocks(std::uint64_t first, std::uint64_t end,
                                std::uint64_t written_count) {
  if (!reservation_ || first >= end) return;
  const std::uint64_t count = reservation_->remove(first, end);
  if (count == 0) return;
  cache_.options().reservations->note_gone(*reservation_, count - std::min(count, written_count));
  cache_.observer().durable_state_changed(inode_);
  cache_.committer().note_change();
}

// If the blocks of a range cannot be counted, its room is held until the file goes.
void FileData::drop_surplus_ranges() {
  if (!reservation_) return;
  while (const auto range = reservation_->surplus_range()) {
    const auto unwritten = count_unwritten(range->first, range->end, nullptr);
    const std::uint64_t size = range->end - range->first;
    give_back_blocks(range->first, range->end, size - unwritten.value_or(0));
  }
}

}  // namespace nacre::fs
