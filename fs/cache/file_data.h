// SPDX-License-Identifier: Apache-2.0
// The content of one regular file: dirty bytes in memory over the chunk map's records.
//
// size() is what callers see; durable_size() is what the file's inode row may say: the size of the
// state that the chunk map holds, which a flush moves forward. Between the two lie only dirty
// bytes. Locks, in this order: flush_mutex_ (one flush or resize at a time), the operation lock,
// mutex_.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <span>
#include <vector>

#include "fs/cache/chunk_cache.h"
#include "fs/cache/dirty_chunk.h"
#include "fs/cache/fair_mutex.h"
#include "fs/cache/file_bytes.h"
#include "fs/cache/read_ahead.h"
#include "fs/store/chunk_map.h"
#include "fs/store/segment_store.h"
#include "metadata/format/inode_codec.h"

namespace nacre::fs {

class FileCache;

enum class SeekWhat : std::uint8_t { data, hole };

// Thread-safe. Held by shared_ptr: by the inode, and by the cache while dirty.
class FileData : public std::enable_shared_from_this<FileData> {
 public:
  FileData(FileCache& cache, InodeNumber inode, std::uint64_t size, std::uint64_t data_bytes);
  ~FileData();

  InodeNumber inode() const { return inode_; }
  std::uint64_t size() const { return size_.load(std::memory_order_acquire); }
  std::uint64_t durable_size() const { return durable_size_.load(std::memory_order_acquire); }
  std::uint64_t durable_data_bytes() const { return data_bytes_.load(std::memory_order_acquire); }
  // Data bytes with what is still dirty: for st_blocks.
  std::uint64_t data_bytes() const;
  // Bytes or a size that the chunk map does not hold yet.
  bool is_dirty() const;
  std::uint64_t dirty_bytes() const { return dirty_bytes_.load(std::memory_order_relaxed); }
  // Of chunks that are flushed from now on; by the flags of the inode.
  void set_codec(std::uint32_t inode_flags) { inode_flags_ = inode_flags; }
  std::optional<metadata::InodeCodec> codec() const { return metadata::inode_codec(inode_flags_); }
  // The last of its chunks hardly got smaller as one record: the next ones go in parts.
  bool prefers_parts() const { return prefers_parts_.load(std::memory_order_relaxed); }
  void set_prefers_parts(bool prefers) { prefers_parts_ = prefers; }

  // Fills out from offset; returns how many bytes lie before the end of the file.
  Result<std::size_t> read(std::uint64_t offset, MutableByteView out);
  // The same bytes where they lie: in clean chunks, or else put into buffer, at their place in it.
  Result<FileBytes> view(std::uint64_t offset, MutableByteView buffer);
  // Waits while the dirty budget is used up. Never under the operation lock. too_big past 2^63 - 1.
  Result<> write(std::uint64_t offset, ByteView bytes);
  Result<> resize(std::uint64_t size);
  // Makes the file at least that long; never shorter, whatever is written meanwhile.
  Result<> extend(std::uint64_t size);
  // Makes [offset, offset + length) zeros. Whole chunks become holes at once; those of which
  // nothing but zeros is left, with the next flush. Does not change the size.
  Result<> punch(std::uint64_t offset, std::uint64_t length);
  // no_position past the end.
  Result<std::uint64_t> seek(std::uint64_t offset, SeekWhat what);

  // The file is going away: forgets dirty bytes, and later calls change nothing. Its rows are the
  // caller's to erase; false when it has none of chunks.
  bool discard();
  // What the map has for a chunk, none beyond its end: never a moment in the middle of a change,
  // when a run of holes is split and a chunk has no row.
  Result<std::optional<MappedChunk>> mapped_chunk(ChunkIndex index) const;
  // A chunk's row, and versions for records that are to hold what it names: drawn while no flush is
  // under way, so that what a later flush seals has higher ones.
  struct RowToSeal {
    metadata::ChunkRow row;
    DrawnVersions versions;
  };
  // count: how many records that takes at most; none: it is to stay as it is.
  using CountRecords = std::function<std::size_t(const metadata::ChunkRow&)>;
  // None when there is no such row, or count says so. stale when the file is going away; the errors
  // of drawing.
  Result<std::optional<RowToSeal>> row_to_seal(ChunkIndex index, const CountRecords& count);
  // Puts changed rows in the place of those of chunks that are still mapped; returns how many were
  // changed. Holds the file's locks all the while: a few dozen changes at a time. stale when the
  // file is going away.
  Result<std::size_t> change_rows(std::span<const RowChange> changes);
  // Loads chunks of [offset, offset + size) that are not cached yet.
  void prefetch(std::uint64_t offset, std::uint64_t size);

 private:
  friend class FileCache;
  friend class Flush;
  struct Piece;  // what one chunk contributes to a read
  struct Edge;   // a chunk that a punched range covers in part

  Result<> plan(std::uint64_t offset, MutableByteView out, std::vector<Piece>& pieces);
  // How often one chunk's records could not be read while its row stayed the same.
  struct Failure {
    metadata::ChunkRow row;
    int count = 0;
  };
  static void give(Piece& piece, const SharedContent& content);
  Result<> load(std::vector<Piece>& pieces, std::map<std::uint64_t, Failure>& failures);
  Result<> grow(std::uint64_t size);
  Result<> shrink(std::uint64_t size);
  Result<> cut_map(std::uint64_t size);
  // Under mutex_:
  Result<Edge> edge_of(std::uint64_t from, std::uint64_t to) const;
  void punch_edge(const Edge& edge);
  void write_dirty(std::uint64_t offset, ByteView bytes);
  void erase_dirty(std::uint64_t from, std::uint64_t to);
  void count_dirty(std::uint64_t before, std::uint64_t after);
  void note_dirty();
  void note_clean();
  std::uint64_t next_dirty_chunk(std::uint64_t index) const;

  FileCache& cache_;
  const InodeNumber inode_;
  std::atomic<std::uint64_t> size_;
  std::atomic<std::uint64_t> durable_size_;
  std::atomic<std::uint64_t> data_bytes_;
  std::atomic<std::uint64_t> dirty_bytes_{0};
  std::atomic<bool> discarded_{false};
  std::atomic<std::uint32_t> inode_flags_{0};
  std::atomic<bool> prefers_parts_{false};

  FairMutex flush_mutex_;
  mutable std::shared_mutex mutex_;  // guards what follows
  std::map<std::uint64_t, DirtyChunk> dirty_;
  std::map<std::uint64_t, DirtyChunk> flushing_;  // taken by a flush that is under way
  std::uint64_t complete_chunks_ = 0;             // written in full since the last flush
  bool listed_ = false;                           // among the cache's dirty files
  bool had_chunks_ = false;                       // when it was discarded

  ReadAhead read_ahead_;
};

}  // namespace nacre::fs
