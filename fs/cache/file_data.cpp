// SPDX-License-Identifier: Apache-2.0
// Writing and sizes of one file, and its holes. Reading is in file_read.cpp, punching in
// file_punch.cpp, flushing in flush.cpp.
#include "fs/cache/file_data.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "fs/cache/file_cache.h"

namespace nacre::fs {

namespace {

constexpr std::uint64_t file_size_max = std::numeric_limits<std::int64_t>::max();
// The number of chunks whose rows one operation cuts off. It bounds the time of the lock and the
// growth of the commit group.
constexpr std::uint64_t cut_step_chunks = 8192;
// If at most this many rows lie between two wanted rows, one scan over both is cheaper than two
// gets.
constexpr std::uint64_t scan_gap_max = 4;

// Looks up rows of one file that are changed in order. Neighbours are read by one scan.
class NeighbourRows {
 public:
  NeighbourRows(const ChunkMap& map, InodeNumber inode) : map_(map), inode_(inode) {}

  // Returns the row of the first change; end is the number of chunks. The result is valid until a
  // row that is not near is looked up.
  Result<MappedChunk*> find(std::span<const RowChange> changes, std::uint64_t end) {
    const std::uint64_t index = changes.front().index.value;
    if (index < first_ || index - first_ >= chunks_.size()) {
      std::uint64_t last = index;
      for (const RowChange& next : changes) {
        const std::uint64_t at = next.index.value;
        if (at < last || at - last > scan_gap_max || at >= end) break;
        last = at;
      }
      auto found = map_.find_range(inode_, ChunkIndex{index}, last - index + 1);
      // A chunk between the rows found may have no row of its own.
      if (!found && last > index) found = map_.find_range(inode_, ChunkIndex{index}, 1);
      if (!found) return tl::unexpected(found.error());
      chunks_ = std::move(*found);
      first_ = index;
    }
    return &chunks_[index - first_];
  }

 private:
  const ChunkMap& map_;
  const InodeNumber inode_;
  std::uint64_t first_ = 0;
  std::vector<MappedChunk> chunks_;
};

}  // namespace

FileData::FileData(FileCache& cache, InodeNumber inode, std::uint64_t size,
                   std::uint64_t data_bytes)
    : cache_(cache), inode_(inode), size_(size), durable_size_(size), data_bytes_(data_bytes) {}

FileData::~FileData() {
  cache_.change_dirty_bytes(-static_cast<std::int64_t>(dirty_bytes_.load()), -flush_cost_bytes_);
}

std::uint64_t FileData::cost_of_write(std::uint64_t offset, std::uint64_t size) const {
  if (offset > file_size_max || size > file_size_max - offset) return 0;  // is refused anyway
  return cache_.flush_cost().of_write(offset, size, size_);
}

std::uint64_t FileData::data_bytes() const {
  return data_bytes_ + dirty_bytes_;
}

bool FileData::is_dirty() const {
  SharedLock lock(mutex_);
  return listed_;
}

Result<> FileData::write(std::uint64_t offset, ByteView bytes) {
  if (bytes.empty()) return {};
  if (offset > file_size_max || bytes.size() > file_size_max - offset) {
    return fail(ErrorCode::too_big);
  }
  NACRE_TRY(cache_.wait_for_budget());
  bool stream = false;
  {
    UniqueLock lock(mutex_);
    if (discarded_) return {};
    write_dirty(offset, bytes);
    if (offset + bytes.size() > size_) size_ = offset + bytes.size();
    note_dirty();
    stream = complete_chunks_ >= cache_.options().streaming_chunk_count;
    if (stream) complete_chunks_ = 0;
  }
  cache_.committer().note_change();
  if (stream) cache_.want_streaming(shared_from_this());
  return {};
}

void FileData::write_dirty(std::uint64_t offset, ByteView bytes) {
  const std::uint32_t chunk_size = cache_.chunk_size_bytes();
  PlainMemory& memory = cache_.store().plain_memory();
  while (!bytes.empty()) {
    const auto from = static_cast<std::uint32_t>(offset % chunk_size);
    const std::size_t size = std::min<std::size_t>(bytes.size(), chunk_size - from);
    const std::uint64_t index = offset / chunk_size;
    DirtyChunk& chunk = dirty_.try_emplace(index, &memory).first->second;
    const std::uint64_t before = chunk.size();
    try {
      chunk.write(from, bytes.first(size));
    } catch (...) {
      count_dirty(index, chunk, before);
      throw;
    }
    count_dirty(index, chunk, before);
    if (before < chunk_size && chunk.size() == chunk_size) ++complete_chunks_;
    offset += size;
    bytes = bytes.subspan(size);
  }
}

// Called for each chunk, so that the count is right if memory runs out between two chunks.
void FileData::count_dirty(std::uint64_t index, DirtyChunk& chunk, std::uint64_t size_before) {
  const std::int64_t change =
      static_cast<std::int64_t>(chunk.size()) - static_cast<std::int64_t>(size_before);
  const std::int64_t cost_change = count_flush_cost(index, chunk);
  dirty_bytes_ += static_cast<std::uint64_t>(change);
  flush_cost_bytes_ += cost_change;
  cache_.change_dirty_bytes(change, cost_change);
}

// No row has content past the file's end, as it was before the bytes were written.
std::int64_t FileData::count_flush_cost(std::uint64_t index, DirtyChunk& chunk) const {
  const std::uint32_t chunk_size = cache_.chunk_size_bytes();
  const std::uint64_t begin = index * chunk_size;
  const std::uint64_t known = size_ > begin ? size_ - begin : 0;
  const auto content_end =
      std::max(chunk.end(), static_cast<std::uint32_t>(std::min<std::uint64_t>(known, chunk_size)));
  const auto before = static_cast<std::int64_t>(chunk.flush_cost_bytes());
  chunk.set_flush_cost_bytes(
      cache_.flush_cost().of_chunk(chunk.size(), chunk.pieces().size(), content_end));
  return static_cast<std::int64_t>(chunk.flush_cost_bytes()) - before;
}

void FileData::erase_dirty(std::uint64_t from, std::uint64_t to) {
  const std::uint32_t chunk_size = cache_.chunk_size_bytes();
  for (auto place = dirty_.lower_bound(from / chunk_size); place != dirty_.end();) {
    const std::uint64_t begin = place->first * chunk_size;
    if (begin >= to) break;
    DirtyChunk& chunk = place->second;
    const std::uint64_t before = chunk.size();
    chunk.erase(static_cast<std::uint32_t>(from > begin ? from - begin : 0),
                static_cast<std::uint32_t>(std::min<std::uint64_t>(to - begin, chunk_size)));
    count_dirty(place->first, chunk, before);
    place = chunk.empty() ? dirty_.erase(place) : std::next(place);
  }
}

void FileData::note_dirty() {
  if (listed_) return;
  cache_.add_dirty_file(shared_from_this());
  listed_ = true;  // if memory ran out before this, the next write lists it
}

void FileData::note_clean() {
  if (!listed_ || !dirty_.empty() || !flushing_.empty() || durable_size_ != size_) return;
  listed_ = false;
  cache_.remove_dirty_file(inode_);
}

Result<> FileData::resize(std::uint64_t size) {
  if (size > file_size_max) return fail(ErrorCode::too_big);
  UniqueLock flush_lock(flush_mutex_);
  if (discarded_) return {};
  return size >= size_ ? grow(size) : shrink(size);
}

Result<> FileData::extend(std::uint64_t size) {
  if (size > file_size_max) return fail(ErrorCode::too_big);
  UniqueLock flush_lock(flush_mutex_);
  if (discarded_) return {};
  return grow(size);
}

Result<> FileData::grow(std::uint64_t size) {
  {
    UniqueLock lock(mutex_);
    if (size <= size_) return {};
    size_ = size;
    note_dirty();
  }
  cache_.committer().note_change();
  return {};
}

Result<> FileData::shrink(std::uint64_t size) {
  {
    UniqueLock lock(mutex_);
    // A write may have moved the end in the meantime. Bytes past the new size are dropped all the
    // same.
    erase_dirty(size, file_size_max);
    size_ = size;
    note_dirty();
  }
  cache_.committer().note_change();
  return cut_map(size);
}

// Cuts rows from the end towards size, a bounded number at a time. The flush mutex is held.
Result<> FileData::cut_map(std::uint64_t size) {
  const std::uint64_t step = cut_step_chunks * cache_.chunk_size_bytes();
  while (true) {
    const auto operation = cache_.committer().begin_operation();
    UniqueLock lock(mutex_);
    const std::uint64_t durable = durable_size_;
    if (durable > size) {
      // Holes cost nothing to cut, so only files with much data take more than one step.
      const std::uint64_t target =
          data_bytes_ > step && durable - size > step ? durable - step : size;
      NACRE_ASSIGN(const std::int64_t change, cache_.map().truncate(inode_, target));
      data_bytes_ += static_cast<std::uint64_t>(change);
      durable_size_ = target;
      cache_.observer().durable_state_changed(inode_);
    }
    if (durable_size_ <= size) {
      note_clean();
      return {};
    }
  }
}

Result<std::optional<MappedChunk>> FileData::mapped_chunk(ChunkIndex index) const {
  SharedLock lock(mutex_);
  if (index.value >= cache_.map().chunk_count(durable_size_)) return std::nullopt;
  NACRE_ASSIGN(MappedChunk mapped, cache_.map().find(inode_, index));
  return mapped;
}

// All code that changes the content of a row holds the flush mutex, so nothing changes between
// reading the row and drawing the versions.
Result<std::optional<FileData::RowToSeal>> FileData::row_to_seal(ChunkIndex index,
                                                                 const CountRecords& count) {
  UniqueLock flush_lock(flush_mutex_);
  if (discarded_) return fail(ErrorCode::stale);
  NACRE_ASSIGN(auto mapped, mapped_chunk(index));
  const std::size_t record_count = mapped && !mapped->hole ? count(mapped->row) : 0;
  if (record_count == 0) return std::nullopt;
  NACRE_ASSIGN(auto versions, cache_.store().draw_versions(record_count));
  return RowToSeal{std::move(mapped->row), std::move(versions)};
}

Result<std::size_t> FileData::change_rows(std::span<const RowChange> changes) {
  UniqueLock flush_lock(flush_mutex_);
  const auto operation = cache_.committer().begin_operation();
  UniqueLock lock(mutex_);
  if (discarded_) return fail(ErrorCode::stale);
  const std::uint64_t mapped_count = cache_.map().chunk_count(durable_size_);
  std::size_t changed = 0;
  NeighbourRows rows(cache_.map(), inode_);
  for (std::size_t i = 0; i < changes.size(); ++i) {
    const ChunkIndex index = changes[i].index;
    if (index.value >= mapped_count) continue;
    NACRE_ASSIGN(MappedChunk * mapped, rows.find(changes.subspan(i), mapped_count));
    if (mapped->hole) continue;
    auto row = changes[i].apply(mapped->row);
    if (!row) continue;
    NACRE_ASSIGN(const std::int64_t difference,
                 cache_.map().replace_chunk(inode_, index, *mapped, *row));
    mapped->row = std::move(*row);  // the next change of this chunk uses it
    mapped->has_own_row = true;
    if (difference != 0) {
      data_bytes_ += static_cast<std::uint64_t>(difference);
      cache_.observer().durable_state_changed(inode_);
    }
    ++changed;
  }
  if (changed > 0) cache_.committer().note_change();
  return changed;
}

bool FileData::discard() {
  UniqueLock flush_lock(flush_mutex_);
  UniqueLock lock(mutex_);
  // Rows cover exactly the bytes below the durable size.
  if (!discarded_) had_chunks_ = durable_size_ > 0;
  discarded_ = true;
  erase_dirty(0, file_size_max);
  durable_size_ = size_.load();
  note_clean();
  return had_chunks_;
}

std::uint64_t FileData::next_dirty_chunk(std::uint64_t index) const {
  std::uint64_t next = std::numeric_limits<std::uint64_t>::max();
  for (const auto* chunks : {&dirty_, &flushing_}) {
    const auto place = chunks->lower_bound(index);
    if (place != chunks->end()) next = std::min(next, place->first);
  }
  return next;
}

Result<std::uint64_t> FileData::seek(std::uint64_t offset, SeekWhat what) {
  constexpr std::uint64_t batch = 256;
  const std::uint32_t chunk_size = cache_.chunk_size_bytes();
  SharedLock lock(mutex_);
  const std::uint64_t size = size_;
  if (offset >= size) return fail(ErrorCode::no_position);
  const std::uint64_t count = cache_.map().chunk_count(size);
  const std::uint64_t mapped = std::min(count, cache_.map().chunk_count(durable_size_));
  const auto found = [&](std::uint64_t index) { return std::max(offset, index * chunk_size); };
  std::uint64_t index = offset / chunk_size;
  while (index < count) {
    std::vector<MappedChunk> chunks;
    if (index < mapped) {
      NACRE_ASSIGN(chunks, cache_.map().find_range(inode_, ChunkIndex{index},
                                                   std::min(batch, mapped - index)));
    } else {
      chunks.push_back(MappedChunk{.hole = true, .run = count - index});
    }
    for (std::size_t i = 0; i < chunks.size() && index < count;) {
      if (!chunks[i].hole || next_dirty_chunk(index) == index) {
        if (what == SeekWhat::data) return found(index);
        ++index;
        ++i;
        continue;
      }
      if (what == SeekWhat::hole) return found(index);
      const std::uint64_t step = std::min(chunks[i].run, next_dirty_chunk(index) - index);
      index += step;
      i += std::min<std::uint64_t>(step, chunks.size() - i);
    }
  }
  if (what == SeekWhat::hole) return size;
  return fail(ErrorCode::no_position);
}

}  // namespace nacre::fs
