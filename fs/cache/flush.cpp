// SPDX-License-Identifier: Apache-2.0
// Turns dirty chunks into records and rows.
#include "fs/cache/flush.h"

#include <algorithm>
#include <utility>

#include "fs/cache/chunk_loader.h"
#include "fs/cache/whole_chunk.h"
#include "fs/store/patched_chunk.h"
#include "gpu_engine/base/check.h"

namespace nacre::fs {

using metadata::ChunkPatch;
using metadata::ChunkRow;
using metadata::RecordKind;

namespace {

// Dirty bytes of at most this share of a chunk become patches of it.
constexpr std::uint32_t patch_share = 4;

// Zeros at a chunk's end are freed if there are at least this many.
constexpr std::uint32_t given_back_bytes_min = 4096;
constexpr std::uint32_t given_back_unit_bytes = 512;

void erase_written(ChunkRow& row, const DirtyChunk& dirty) {
  if (row.lost.empty()) return;
  for (const DirtyChunk::Piece& piece : dirty.pieces())
    erase_lost(row, piece.offset, piece.end());
}

}  // namespace

Flush::~Flush() {
  for (File& file : files_) {
    if (file.is_open) put_back(file);
  }
}

std::uint64_t Flush::add(std::shared_ptr<FileData> data, std::uint64_t first_chunk,
                         std::uint64_t last_chunk) {
  std::unique_lock lock(data->flush_mutex_);
  return take(File{.data = std::move(data), .flush_lock = std::move(lock)}, first_chunk,
              last_chunk);
}

void Flush::try_add(std::shared_ptr<FileData> data, std::uint64_t first_chunk,
                    std::uint64_t last_chunk) {
  std::unique_lock lock(data->flush_mutex_, std::try_to_lock);
  if (!lock) return;
  take(File{.data = std::move(data), .flush_lock = std::move(lock)}, first_chunk, last_chunk);
}

std::uint64_t Flush::take(File file, std::uint64_t first_chunk, std::uint64_t last_chunk) {
  FileData& target = *file.data;
  const std::uint32_t chunk_size = cache_.chunk_size_bytes();
  std::uint64_t next = last_chunk + 1;
  {
    UniqueLock lock(target.mutex_);
    if (target.discarded_) return next;
    NACRE_CHECK(target.flushing_.empty(), "{} chunks of inode {} are being flushed already",
                target.flushing_.size(), target.inode_.value);
    target.complete_chunks_ = 0;
    file.durable_size = target.durable_size_;
    const std::uint64_t mapped = cache_.map().chunk_count(file.durable_size);
    auto place = target.dirty_.lower_bound(std::min(first_chunk, file.durable_size / chunk_size));
    while (place != target.dirty_.end() && place->first <= last_chunk) {
      if (is_full()) {
        next = place->first;
        break;
      }
      if (place->second.empty()) {  // nothing was written, for lack of memory
        place = target.dirty_.erase(place);
        continue;
      }
      if (mode_ == FlushMode::complete_chunks && place->second.size() < chunk_size) {
        // This chunk is still being written. Rows past the map's end must not have a gap.
        if (place->first + 1 >= mapped) break;
        ++place;
        continue;
      }
      taken_bytes_ += place->second.size();
      file.chunks.push_back(Chunk{.index = place->first, .is_new = place->first >= mapped});
      target.flushing_.insert(target.dirty_.extract(place++));
    }
    // The durable size may reach up to the first byte that is still dirty.
    std::uint64_t limit = target.size_;
    for (const auto& [index, dirty] : target.dirty_) {
      if ((index + 1) * chunk_size > file.durable_size) {
        limit = std::min(limit, index * chunk_size);
        break;
      }
    }
    file.new_durable_size = std::max(file.durable_size, limit);
    if (file.chunks.empty() && file.new_durable_size == file.durable_size) return next;
  }
  files_.push_back(std::move(file));
  return next;
}

Result<> Flush::run() {
  Result<> outcome;
  for (File& file : files_) {
    for (Chunk& chunk : file.chunks) {
      file.outcome = build(file, chunk);
      if (!file.outcome) break;
    }
  }
  // Requests of files that failed are sealed, too. No row names these records, so compaction frees
  // them.
  SealedBatch sealed;
  if (!requests_.empty()) {
    std::uint64_t stored_bytes = 0;
    for (const SealRequest& request : requests_)
      stored_bytes += cache_.store().record_size_bound(request.plain.size());
    const auto turn = cache_.begin_flush(stored_bytes, may_use_reserve_);
    auto appended = turn ? cache_.store().append(requests_) : tl::unexpected(turn.error());
    if (appended) {
      sealed = std::move(*appended);
    } else {
      for (File& file : files_)
        file.outcome = tl::unexpected(appended.error());
    }
  }
  for (File& file : files_) {
    for (Chunk& chunk : file.chunks) {
      if (!file.outcome) break;
      if (chunk.whole.count > 0) {
        name_records(chunk.row, *file.data,
                     std::span(sealed.records).subspan(chunk.whole.first, chunk.whole.count));
      }
      for (const Seal& seal : chunk.seals) {
        const SealedRecord& record = sealed.records[seal.request];
        chunk.row.patches[seal.patch].location = record.location;
        chunk.row.patches[seal.patch].version = record.version;
      }
    }
    if (file.outcome) file.outcome = install(file);
    if (!file.outcome) {
      put_back(file);
      keep_gravest(outcome, file.outcome);
    }
  }
  return outcome;
}

void Flush::add_failures(FileFailures& failures) const {
  for (const File& file : files_) {
    if (!file.outcome) failures.insert_or_assign(file.data->inode(), file.outcome.error());
  }
}

const DirtyChunk& Flush::taken_chunk(const FileData& data, std::uint64_t index) {
  const auto taken = data.flushing_.find(index);
  NACRE_CHECK(taken != data.flushing_.end(), "chunk {} of inode {} was not taken", index,
              data.inode_.value);
  return taken->second;
}

Result<> Flush::build(File& file, Chunk& chunk) {
  FileData& data = *file.data;
  const DirtyChunk& dirty = taken_chunk(data, chunk.index);
  NACRE_CHECK(dirty.end() <= cache_.chunk_size_bytes(), "dirty bytes of a chunk end at {} of {}",
              dirty.end(), cache_.chunk_size_bytes());
  MappedChunk& old = chunk.old;
  if (!chunk.is_new) {
    NACRE_ASSIGN(old, cache_.map().find(data.inode_, ChunkIndex{chunk.index}));
  }
  if (old.hole) old.row = ChunkRow{};
  const std::uint32_t end = std::max(dirty.end(), content_end(old.row));
  if (dirty.is_punched() && build_punched(file, chunk, dirty, old)) return {};
  if (mode_ == FlushMode::everything_inline) {
    NACRE_ASSIGN(const bool built, build_patches(file, chunk, dirty, old.row, /*inlined=*/true));
    if (built) return {};
  }
  if (dirty.covers(0, end)) {
    build_whole(file, chunk, dirty.pieces().front().bytes);
    return {};
  }
  if (!old.hole && dirty.size() <= cache_.chunk_size_bytes() / patch_share) {
    NACRE_ASSIGN(const bool built, build_patches(file, chunk, dirty, old.row, /*inlined=*/false));
    if (built) return {};
  }
  const Result<> merged = merge(file, chunk, dirty, old);
  if (merged) return {};
  // If the old content of the chunk cannot be read, the new bytes are kept as patches.
  NACRE_ASSIGN(const bool built, build_patches(file, chunk, dirty, old.row, /*inlined=*/false));
  return built ? Result<>() : merged;
}

Result<bool> Flush::build_patches(File& file, Chunk& chunk, const DirtyChunk& dirty,
                                  const ChunkRow& old, bool inlined) {
  const auto is_covered = [&](const ChunkPatch& patch) {
    return dirty.covers(patch.offset, patch.offset + patch.valid_size);
  };
  ChunkRow row = old;
  std::erase_if(row.patches, is_covered);
  erase_written(row, dirty);
  if (row.patches.size() + dirty.pieces().size() > metadata::patch_count_max) return false;
  chunk.row = std::move(row);
  const InodeNumber inode = file.data->inode_;
  for (const DirtyChunk::Piece& piece : dirty.pieces()) {
    const auto size = static_cast<std::uint32_t>(piece.bytes.size());
    ChunkPatch patch{.offset = piece.offset, .plain_size = size, .valid_size = size};
    if (inlined) {
      NACRE_ASSIGN(patch.version, cache_.store().next_version());
      chunk.inlined.push_back(Inlined{
          metadata::inlined_key(inode, ChunkIndex{chunk.index}, patch.version, patch.offset),
          std::string(as_text(piece.bytes))});
    }
    add_patch(chunk.row, patch);
  }
  if (inlined) return true;
  for (std::size_t i = 0; i < chunk.row.patches.size(); ++i) {
    const ChunkPatch& patch = chunk.row.patches[i];
    if (patch.version != metadata::RecordVersion{}) continue;  // the row had it before
    const auto piece = std::find_if(
        dirty.pieces().begin(), dirty.pieces().end(),
        [&](const DirtyChunk::Piece& candidate) { return candidate.offset == patch.offset; });
    chunk.seals.push_back(Seal{requests_.size(), i});
    requests_.push_back(
        SealRequest{RecordName{inode, ChunkIndex{chunk.index}, {}, patch.offset, RecordKind::patch},
                    piece->bytes, file.data->codec()});
  }
  return true;
}

bool Flush::build_punched(File& file, Chunk& chunk, const DirtyChunk& dirty,
                          const MappedChunk& old) {
  ChunkRow lost{.base = {}, .patches = {}, .lost = old.row.lost};
  erase_written(lost, dirty);
  if (!lost.lost.empty()) return false;
  const std::uint32_t end = std::max(dirty.end(), content_end(old.row));
  auto content = std::make_unique<Byte[]>(end);
  if (!read_under(file, chunk, dirty, old, {content.get(), end})) return false;
  std::uint32_t used = end;
  while (used > 0 && content[used - 1] == 0)
    --used;
  chunk.is_hole = used == 0;
  if (chunk.is_hole) return true;
  used = std::min(
      end, (used + given_back_unit_bytes - 1) / given_back_unit_bytes * given_back_unit_bytes);
  if (end - used < std::min(given_back_bytes_min, cache_.chunk_size_bytes() / patch_share)) {
    return false;
  }
  chunk.buffer = std::move(content);
  build_whole(file, chunk, {chunk.buffer.get(), used});
  return true;
}

// Reads all bytes of the chunk, dirty ones included, into out, which holds zeros.
Result<> Flush::read_under(const File& file, const Chunk& chunk, const DirtyChunk& dirty,
                           const MappedChunk& old, MutableByteView out) {
  if (!old.hole && !dirty.covers(0, static_cast<std::uint32_t>(out.size()))) {
    const ChunkToLoad to_load{file.data->inode_, ChunkIndex{chunk.index}, &old.row};
    auto loaded = load_chunks(cache_.database(), cache_.store(), cache_.chunk_size_bytes(),
                              std::span(&to_load, 1));
    if (!loaded.front()) return tl::unexpected(loaded.front().error());
    std::copy_n((*loaded.front())->data(), (*loaded.front())->size(), out.begin());
  }
  dirty.overlay(0, out);
  return {};
}

void Flush::build_whole(File& file, Chunk& chunk, ByteView plain) {
  const std::size_t first = requests_.size();
  chunk.row = seal_whole(cache_, *file.data, ChunkIndex{chunk.index}, plain, requests_);
  chunk.whole = {first, requests_.size() - first};
}

Result<> Flush::merge(File& file, Chunk& chunk, const DirtyChunk& dirty, const MappedChunk& old) {
  const std::uint32_t end = std::max(dirty.end(), content_end(old.row));
  chunk.buffer = std::make_unique<Byte[]>(end);
  NACRE_TRY(read_under(file, chunk, dirty, old, {chunk.buffer.get(), end}));
  build_whole(file, chunk, {chunk.buffer.get(), end});
  chunk.row.lost = old.row.lost;
  erase_written(chunk.row, dirty);
  return {};
}

// Moves the map's end forward without a gap, by adding holes between its old end and each new
// chunk.
Result<> Flush::put_rows(File& file, std::uint64_t& mapped, std::int64_t& change) {
  const InodeNumber inode = file.data->inode_;
  ChunkMap& map = cache_.map();
  const auto fill_to = [&](std::uint64_t index) -> Result<> {
    if (index > mapped) {
      NACRE_TRY(map.set_hole(inode, ChunkIndex{mapped}, index - mapped));
      mapped = index;
    }
    return {};
  };
  for (Chunk& chunk : file.chunks) {
    NACRE_TRY(fill_to(chunk.index));
    if (chunk.is_hole) {
      NACRE_ASSIGN(const std::int64_t delta, map.set_hole(inode, ChunkIndex{chunk.index}, 1));
      change += delta;
      mapped = std::max(mapped, chunk.index + 1);
      continue;
    }
    for (Inlined& inlined : chunk.inlined) {
      cache_.note_inlined(inlined.bytes.size());
      cache_.database().put_new(metadata::Table::inlined, inlined.key, std::move(inlined.bytes));
    }
    NACRE_ASSIGN(const std::int64_t delta,
                 chunk.is_new
                     ? map.set_chunk(inode, ChunkIndex{chunk.index}, chunk.row, true)
                     : map.replace_chunk(inode, ChunkIndex{chunk.index}, chunk.old, chunk.row));
    change += delta;
    if (is_worth_merging(chunk.row)) cache_.note_patched(inode, ChunkIndex{chunk.index});
    mapped = std::max(mapped, chunk.index + 1);
  }
  return fill_to(map.chunk_count(file.new_durable_size));
}

Result<> Flush::install(File& file) {
  FileData& data = *file.data;
  std::map<std::uint64_t, DirtyChunk> done;  // freed after the locks are released
  const auto operation = cache_.committer().begin_operation();
  UniqueLock lock(data.mutex_);
  // The rows were built for this state, which no other thread changes, thanks to the flush mutex.
  NACRE_CHECK(data.durable_size_ == file.durable_size &&
                  file.new_durable_size >= file.durable_size && file.new_durable_size <= data.size_,
              "inode {} of {} bytes, {} of them mapped: a flush moves that from {} to {}",
              data.inode_.value, data.size(), data.durable_size(), file.durable_size,
              file.new_durable_size);
  std::int64_t change = 0;
  std::uint64_t mapped = cache_.map().chunk_count(file.durable_size);
  const Result<> put = put_rows(file, mapped, change);
  data.data_bytes_ += static_cast<std::uint64_t>(change);
  if (!put) {
    // The rows up to here are in place, so the next flush must go on from their end.
    const std::uint64_t end = mapped * cache_.chunk_size_bytes();
    data.durable_size_ = std::max(file.durable_size, std::min(file.new_durable_size, end));
    cache_.observer().durable_state_changed(data.inode_);
    return put;
  }
  NACRE_CHECK(mapped == cache_.map().chunk_count(file.new_durable_size),
              "{} chunks are mapped of a file of {} bytes", mapped, file.new_durable_size);
  std::uint64_t flushed = 0;
  std::int64_t cost = 0;
  for (const auto& [index, dirty] : data.flushing_) {
    flushed += dirty.size();
    cost += static_cast<std::int64_t>(dirty.flush_cost_bytes());
  }
  NACRE_CHECK(data.dirty_bytes_ >= flushed, "{} of {} dirty bytes were flushed", flushed,
              data.dirty_bytes());
  done.swap(data.flushing_);
  data.dirty_bytes_ -= flushed;
  data.flush_cost_bytes_ -= cost;
  data.durable_size_ = file.new_durable_size;
  data.note_clean();
  cache_.observer().durable_state_changed(data.inode_);
  cache_.count_flushed(flushed);
  if (flushed > 0) cache_.note_written();
  cache_.change_dirty_bytes(-static_cast<std::int64_t>(flushed), -cost);
  file.is_open = false;
  return {};
}

void Flush::put_back(File& file) {
  FileData& data = *file.data;
  UniqueLock lock(data.mutex_);
  std::int64_t change = 0;
  std::int64_t cost_change = 0;
  for (auto& [index, older] : data.flushing_) {
    DirtyChunk& dirty = data.dirty_[index];
    change -= static_cast<std::int64_t>(older.size() + dirty.size());
    cost_change -= static_cast<std::int64_t>(older.flush_cost_bytes());
    dirty.merge_under(older);
    change += static_cast<std::int64_t>(dirty.size());
    cost_change += data.count_flush_cost(index, dirty);
  }
  data.flushing_.clear();
  data.dirty_bytes_ += static_cast<std::uint64_t>(change);
  data.flush_cost_bytes_ += cost_change;
  cache_.change_dirty_bytes(change, cost_change);
  file.is_open = false;
}

}  // namespace nacre::fs
