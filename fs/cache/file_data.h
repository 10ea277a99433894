// SPDX-License-Identifier: Apache-2.0
// The content of one regular file: dirty bytes in memory over the records of the chunk map.
//
// size() is the size that callers see. durable_size() is the size up to which the chunk map has
// rows. The inode's row may name no larger size. A flush raises durable_size(); bytes past it are
// dirty. Locks are taken in this order: flush_mutex_ (one flush or resize at a time), the operation
// lock, mutex_.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "fs/cache/chunk_cache.h"
#include "fs/cache/dirty_chunk.h"
#include "fs/cache/fair_mutex.h"
#include "fs/cache/file_bytes.h"
#include "fs/cache/read_ahead.h"
#include "fs/store/chunk_map.h"
#include "fs/store/segment_store.h"
#include "gpu_engine/base/mutex.h"
#include "metadata/format/inode_codec.h"

namespace nacre::fs {

class FileCache;

enum class SeekWhat : std::uint8_t { data, hole };

// Thread-safe. The inode owns it by a shared_ptr, and so does the cache while it is dirty.
class FileData : public std::enable_shared_from_this<FileData> {
 public:
  FileData(FileCache& cache, InodeNumber inode, std::uint64_t size, std::uint64_t data_bytes);
  ~FileData();

  InodeNumber inode() const { return inode_; }
  std::uint64_t size() const { return size_.load(std::memory_order_acquire); }
  std::uint64_t durable_size() const { return durable_size_.load(std::memory_order_acquire); }
  std::uint64_t durable_data_bytes() const { return data_bytes_.load(std::memory_order_acquire); }
  // The number of data bytes, dirty ones included, for st_blocks.
  std::uint64_t data_bytes() const;
  // Whether there are bytes or a size that the chunk map does not have yet.
  bool is_dirty() const NACRE_EXCLUDES(mutex_);
  std::uint64_t dirty_bytes() const { return dirty_bytes_.load(std::memory_order_relaxed); }
  // What a write may take on disk when it is flushed, at most.
  std::uint64_t cost_of_write(std::uint64_t offset, std::uint64_t size) const;
  // Sets the codec of chunks that are flushed from now on, by the flags of the inode.
  void set_codec(std::uint32_t inode_flags) { inode_flags_ = inode_flags; }
  std::optional<metadata::InodeCodec> codec() const { return metadata::inode_codec(inode_flags_); }
  // Whether the next chunks are stored in parts, because compressing the last chunk as a whole
  // hardly helped.
  bool prefers_parts() const { return prefers_parts_.load(std::memory_order_relaxed); }
  void set_prefers_parts(bool prefers) { prefers_parts_ = prefers; }

  // Reads bytes from offset on into out. Returns the number of bytes, which is lower at the file's
  // end.
  Result<std::size_t> read(std::uint64_t offset, MutableByteView out);
  // The same, but clean chunks are not copied: the result refers to them in memory. All other bytes
  // are read into buffer, each at its place, and the result refers to buffer.
  Result<FileBytes> view(std::uint64_t offset, MutableByteView buffer);
  // Waits while the budget of dirty bytes is used up. Must not be called under the operation lock.
  // Error: too_big past 2^63 - 1.
  Result<> write(std::uint64_t offset, ByteView bytes) NACRE_EXCLUDES(mutex_);
  Result<> resize(std::uint64_t size) NACRE_EXCLUDES(flush_mutex_);
  // Makes the file at least this long, and never shorter.
  Result<> extend(std::uint64_t size) NACRE_EXCLUDES(flush_mutex_);
  // Makes [offset, offset + length) zeros. Whole chunks become holes at once; chunks of which only
  // zeros are left become holes with the next flush. Does not change the size.
  Result<> punch(std::uint64_t offset, std::uint64_t length) NACRE_EXCLUDES(flush_mutex_, mutex_);
  // Error: no_position past the end.
  Result<std::uint64_t> seek(std::uint64_t offset, SeekWhat what) NACRE_EXCLUDES(mutex_);

  // Called when the file is deleted. Forgets dirty bytes; later calls change nothing. The caller
  // erases the file's rows. Returns false if it has no rows of chunks.
  bool discard() NACRE_EXCLUDES(flush_mutex_, mutex_);
  // Returns the row of a chunk in the map, or none beyond its end. It never returns a state in the
  // middle of a change, when a run of holes is split and a chunk has no row.
  Result<std::optional<MappedChunk>> mapped_chunk(ChunkIndex index) const NACRE_EXCLUDES(mutex_);
  // A chunk's row, and versions for new records of its content. They are drawn while no flush is
  // under way, so that records of a later flush have higher versions.
  struct RowToSeal {
    metadata::ChunkRow row;
    DrawnVersions versions;
  };
  // Returns the maximum number of new records; 0: the row shall stay as it is.
  using CountRecords = std::function<std::size_t(const metadata::ChunkRow&)>;
  // Empty if there is no such row or if count returns 0. Errors: stale if the file is deleted;
  // those of drawing versions.
  Result<std::optional<RowToSeal>> row_to_seal(ChunkIndex index, const CountRecords& count)
      NACRE_EXCLUDES(flush_mutex_);
  // Replaces the rows of chunks that are still mapped. Returns how many were changed. Holds the
  // file's locks, so callers pass a few dozen changes at a time. Error: stale if the file is
  // deleted.
  Result<std::size_t> change_rows(std::span<const RowChange> changes)
      NACRE_EXCLUDES(flush_mutex_, mutex_);
  // Loads the chunks of [offset, offset + size) that are not cached yet.
  void prefetch(std::uint64_t offset, std::uint64_t size) NACRE_EXCLUDES(mutex_);

 private:
  friend class FileCache;
  friend class Flush;
  struct Piece;  // the part of a read in one chunk
  struct Edge;   // a chunk that a punched range covers in part

  Result<> plan(std::uint64_t offset, MutableByteView out, std::vector<Piece>& pieces)
      NACRE_EXCLUDES(mutex_);
  // Counts how often the records of a chunk could not be read while its row stayed the same.
  struct Failure {
    metadata::ChunkRow row;
    int count = 0;
  };
  static void give(Piece& piece, const SharedContent& content);
  Result<> load(std::vector<Piece>& pieces, std::map<std::uint64_t, Failure>& failures);
  Result<> grow(std::uint64_t size) NACRE_REQUIRES(flush_mutex_);
  Result<> shrink(std::uint64_t size) NACRE_REQUIRES(flush_mutex_);
  Result<> cut_map(std::uint64_t size) NACRE_REQUIRES(flush_mutex_);
  Result<Edge> edge_of(std::uint64_t from, std::uint64_t to) const NACRE_REQUIRES_SHARED(mutex_);
  void punch_edge(const Edge& edge) NACRE_REQUIRES(mutex_);
  void write_dirty(std::uint64_t offset, ByteView bytes) NACRE_REQUIRES(mutex_);
  void erase_dirty(std::uint64_t from, std::uint64_t to) NACRE_REQUIRES(mutex_);
  void count_dirty(std::uint64_t index, DirtyChunk& chunk, std::uint64_t size_before)
      NACRE_REQUIRES(mutex_);
  // Counts anew what the flush of the chunk may take on disk. Returns the change.
  std::int64_t count_flush_cost(std::uint64_t index, DirtyChunk& chunk) const
      NACRE_REQUIRES(mutex_);
  void note_dirty() NACRE_REQUIRES(mutex_);
  void note_clean() NACRE_REQUIRES(mutex_);
  std::uint64_t next_dirty_chunk(std::uint64_t index) const NACRE_REQUIRES_SHARED(mutex_);

  FileCache& cache_;
  const InodeNumber inode_;
  std::atomic<std::uint64_t> size_;
  std::atomic<std::uint64_t> durable_size_;
  std::atomic<std::uint64_t> data_bytes_;
  std::atomic<std::uint64_t> dirty_bytes_{0};
  // Of dirty_ and flushing_: the sum of what their flush may take on disk.
  std::int64_t flush_cost_bytes_ NACRE_GUARDED_BY(mutex_) = 0;
  std::atomic<bool> discarded_{false};
  std::atomic<std::uint32_t> inode_flags_{0};
  std::atomic<bool> prefers_parts_{false};

  FairMutex flush_mutex_;
  mutable SharedMutex mutex_;
  std::map<std::uint64_t, DirtyChunk> dirty_ NACRE_GUARDED_BY(mutex_);
  // Chunks that a flush has taken.
  std::map<std::uint64_t, DirtyChunk> flushing_ NACRE_GUARDED_BY(mutex_);
  // Chunks written in full since the last flush.
  std::uint64_t complete_chunks_ NACRE_GUARDED_BY(mutex_) = 0;
  bool listed_ NACRE_GUARDED_BY(mutex_) = false;  // whether the cache lists this file as dirty
  // Whether the file had rows of chunks when it was discarded.
  bool had_chunks_ NACRE_GUARDED_BY(mutex_) = false;

  ReadAhead read_ahead_;
};

}  // namespace nacre::fs
