// SPDX-License-Identifier: Apache-2.0
// What fallocate(2) set aside for a file: which chunks, and what is still to come of them as their
// rows change (fs/space/room.h).
#include <algorithm>
#include <limits>

#include "fs/cache/file_cache.h"
#include "fs/cache/file_data.h"

namespace nacre::fs {

namespace {

constexpr std::uint64_t held_batch_count = 256;

}  // namespace

bool FileData::has_reservation() const {
  std::shared_lock lock(mutex_);
  return reservation_ && !reservation_->is_empty();
}

bool FileData::is_reserved(std::uint64_t offset, std::uint64_t size) const {
  std::shared_lock lock(mutex_);
  return reservation_ && reservation_->covers(offset / cache_.chunk_size_bytes(),
                                              cache_.map().chunk_count(offset + size));
}

std::uint64_t FileData::unwritten_reserved_bytes() const {
  std::shared_lock lock(mutex_);
  if (!reservation_) return 0;
  // What is dirty counts as data already.
  const std::uint64_t unwritten = reservation_->unwritten_bytes();
  return unwritten - std::min(unwritten, dirty_bytes());
}

// What is to come of chunks, reserved or not. A run of holes takes one step.
Result<HeldChange> FileData::held_by(const ChunkRange& range) const {
  const std::uint32_t chunk_size = cache_.chunk_size_bytes();
  const std::uint64_t mapped = cache_.map().chunk_count(durable_size_);
  const HeldChange hole = held_for(MappedChunk{.hole = true}, chunk_size);
  HeldChange sum;
  const auto add_holes = [&](std::uint64_t count) {
    sum.held += hole.held * static_cast<std::int64_t>(count);
    sum.unwritten += hole.unwritten * static_cast<std::int64_t>(count);
  };
  std::uint64_t index = range.first;
  while (index < std::min(range.end(), mapped)) {
    const std::uint64_t count = std::min(held_batch_count, std::min(range.end(), mapped) - index);
    NACRE_ASSIGN(const auto chunks, cache_.map().find_range(inode_, ChunkIndex{index}, count));
    std::uint64_t seen = 0;
    while (seen < chunks.size()) {
      const MappedChunk& chunk = chunks[seen];
      if (chunk.hole) {
        const std::uint64_t run =
            std::min(chunk.run, std::min(range.end(), mapped) - (index + seen));
        add_holes(run);
        seen += run;
      } else {
        sum += held_for(chunk, chunk_size);
        ++seen;
      }
    }
    index += seen;
  }
  add_holes(range.end() - index);
  return sum;
}

Result<HeldChange> FileData::held_of_reserved(std::uint64_t first, std::uint64_t end) const {
  HeldChange sum;
  if (!reservation_) return sum;
  for (const ChunkRange& range : reservation_->inside(first, end)) {
    NACRE_ASSIGN(const HeldChange held, held_by(range));
    sum += held;
  }
  return sum;
}

void FileData::note_row(std::uint64_t index, const MappedChunk& before, const MappedChunk& now) {
  if (!reservation_ || !reservation_->has(index)) return;
  const std::uint32_t chunk_size = cache_.chunk_size_bytes();
  HeldChange change = held_for(now, chunk_size);
  change -= held_for(before, chunk_size);
  if (change.held == 0 && change.unwritten == 0) return;
  cache_.options().room->change(*reservation_, change);
  cache_.observer().durable_state_changed(inode_);
}

void FileData::note_rows(const HeldChange& before, const HeldChange& now) {
  if (!reservation_) return;
  HeldChange change = now;
  change -= before;
  if (change.held == 0 && change.unwritten == 0) return;
  cache_.options().room->change(*reservation_, change);
  cache_.observer().durable_state_changed(inode_);
}

Result<> FileData::reserve(std::uint64_t offset, std::uint64_t length, const Claim& claim) {
  Room* const room = cache_.options().room;
  if (room == nullptr) return {};
  const std::uint64_t first = offset / cache_.chunk_size_bytes();
  const std::uint64_t end = cache_.map().chunk_count(offset + length);
  HeldChange claimed;
  std::uint64_t claimed_count = 0;
  {
    std::shared_lock lock(mutex_);
    const Reservation none;
    for (const ChunkRange& range : (reservation_ ? *reservation_ : none).outside(first, end)) {
      NACRE_ASSIGN(const HeldChange held, held_by(range));
      claimed += held;
      claimed_count += range.count;
    }
  }
  if (claimed_count == 0) return {};
  NACRE_TRY(claim(static_cast<std::uint64_t>(claimed.held), claimed_count));
  const auto reserved = reserve_claimed(first, end);
  room->give_back(static_cast<std::uint64_t>(claimed.held), claimed_count);
  return reserved;
}

Result<> FileData::reserve_claimed(std::uint64_t first, std::uint64_t end) {
  Room& room = *cache_.options().room;
  std::unique_lock flush_lock(flush_mutex_);
  {
    const auto operation = cache_.committer().begin_operation();
    std::unique_lock lock(mutex_);
    if (discarded_) return {};
    if (!reservation_) reservation_ = room.find_or_make(inode_);
    if (reservation_->range_count() >= metadata::reserved_range_count_max &&
        !reservation_->has(first)) {
      return fail(ErrorCode::no_space, "too many ranges of the file are set aside");
    }
    for (const ChunkRange& range : reservation_->outside(first, end)) {
      NACRE_ASSIGN(const HeldChange held, held_by(range));
      room.add(*reservation_, range, held);
    }
    cache_.observer().durable_state_changed(inode_);
  }
  cache_.committer().note_change();
  return {};
}

Result<> FileData::release_reserved(std::uint64_t first, std::uint64_t end) {
  if (!reservation_) return {};
  for (const ChunkRange& range : reservation_->inside(first, end)) {
    // A hole in the middle of a range makes two of it; where there are too many, it stays.
    const bool splits =
        range.first > 0 && reservation_->has(range.first - 1) && reservation_->has(range.end());
    if (splits && reservation_->range_count() >= metadata::reserved_range_count_max) continue;
    NACRE_ASSIGN(const HeldChange held, held_by(range));
    cache_.options().room->remove(*reservation_, range, held);
    cache_.observer().durable_state_changed(inode_);
  }
  return {};
}

Result<> FileData::release(std::uint64_t offset, std::uint64_t length) {
  const std::uint64_t chunk_size = cache_.chunk_size_bytes();
  std::unique_lock flush_lock(flush_mutex_);
  {
    const auto operation = cache_.committer().begin_operation();
    std::unique_lock lock(mutex_);
    if (!reservation_ || discarded_) return {};
    const std::uint64_t size = size_;
    const std::uint64_t end = offset + length;
    // The chunk in which the file ends counts as whole where nothing of it is left.
    const bool takes_the_end = size > 0 && end >= size && end / chunk_size == size / chunk_size;
    NACRE_TRY(release_reserved((offset + chunk_size - 1) / chunk_size,
                               takes_the_end ? cache_.map().chunk_count(end) : end / chunk_size));
  }
  cache_.committer().note_change();
  return {};
}

}  // namespace nacre::fs
