// SPDX-License-Identifier: Apache-2.0
// What fallocate(2) has reserved: blocks of files that take their first write even if the volume is
// full. docs/DECISIONS.md, "How fallocate reserves", argues the design; docs/FORMAT.md has the
// rows.
//
// A block is 4 KiB, or a 32nd of a chunk if that is more, so the blocks of a chunk fit a mask. A
// block is written if the row of its chunk reaches into it. The room for all reserved blocks that
// are not written is held by the ballast's file (fs/store/ballast.h). A block that was written and
// whose row then went, by a punch for example, is not reserved any more.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "fs/store/ballast.h"
#include "fs/store/chunk_map.h"
#include "gpu_engine/base/mutex.h"
#include "metadata/format/reserved_row.h"

namespace nacre::fs {

using metadata::BlockRange;

// Sizes that follow from the volume's chunk size. Bit i of a mask is block i of a chunk.
struct BlockSizes {
  explicit BlockSizes(std::uint32_t chunk_size_bytes);
  std::uint32_t chunk_bytes;
  std::uint32_t block_bytes;  // divides chunk_bytes
  std::uint32_t per_chunk;    // 1 … 32

  // The blocks into which [from, to) of a chunk reaches.
  std::uint32_t mask_of(std::uint32_t from, std::uint32_t to) const;
  // The blocks that are written.
  std::uint32_t mask_of(const metadata::ChunkRow& row) const;
  std::uint32_t mask_of(const MappedChunk& chunk) const {
    return chunk.hole ? 0 : mask_of(chunk.row);
  }
  // The most room that the first write of one block takes on the disk: a record of its own, and
  // what its chunk's row grows by.
  std::uint64_t cost_bytes() const;
};

// The reserved blocks of one file. Ranges change under the file's lock (FileData) and the operation
// lock. Thread-safe; its lock is a leaf.
class Reservation {
 public:
  explicit Reservation(const BlockSizes& sizes) : sizes_(sizes) {}
  Reservation(const BlockSizes& sizes, const metadata::ReservedRow& row);

  // The reserved blocks of a chunk.
  std::uint32_t mask(std::uint64_t chunk) const NACRE_EXCLUDES(mutex_);
  // Ranges of blocks within [first, end) that are not reserved.
  std::vector<BlockRange> outside(std::uint64_t first, std::uint64_t end) const
      NACRE_EXCLUDES(mutex_);
  // Returns false, and changes nothing, if there would be too many ranges.
  bool add(std::uint64_t first, std::uint64_t end) NACRE_EXCLUDES(mutex_);
  // Returns how many blocks were reserved. There may be too many ranges afterwards.
  std::uint64_t remove(std::uint64_t first, std::uint64_t end) NACRE_EXCLUDES(mutex_);
  // The smallest range if there are more than a row has room for. The caller removes it.
  std::optional<BlockRange> surplus_range() const NACRE_EXCLUDES(mutex_);
  bool is_empty() const { return is_empty_.load(std::memory_order_relaxed); }
  // The first block behind all that are reserved.
  std::uint64_t end() const NACRE_EXCLUDES(mutex_);
  std::uint64_t unwritten_count() const { return unwritten_.load(std::memory_order_relaxed); }
  metadata::ReservedRow row() const NACRE_EXCLUDES(mutex_);

 private:
  friend class Reservations;

  const BlockSizes sizes_;
  mutable Mutex mutex_;
  // The first block of each range, and its end. No two ranges touch.
  std::map<std::uint64_t, std::uint64_t> ranges_ NACRE_GUARDED_BY(mutex_);
  std::atomic<bool> is_empty_{true};
  std::atomic<std::uint64_t> unwritten_{0};
  std::atomic<bool> changed_{false};  // since the row was staged
};

// All reservations of a volume. Thread-safe; its lock is a leaf.
class Reservations {
 public:
  Reservations(Ballast& ballast, std::uint32_t chunk_size_bytes)
      : ballast_(ballast), sizes_(chunk_size_bytes) {}

  // Reads the rows of earlier mounts. A row that cannot be used is logged and counts as none. If
  // the counts may be out of date, blocks are counted anew from the rows of chunks; map has them.
  // Called before any other thread uses the volume.
  void load(metadata::Database& database, const ChunkMap& map, bool read_only);
  // Puts the row that says that the counts are true. Called before a write session begins, with
  // next_session as that session leaves it, if the counts are true now.
  static void keep_mark(metadata::Database& database, std::uint64_t next_session);

  const BlockSizes& sizes() const { return sizes_; }
  // Null if nothing was ever reserved for the file.
  std::shared_ptr<Reservation> find(InodeNumber inode) const NACRE_EXCLUDES(mutex_);
  std::shared_ptr<Reservation> find_or_make(InodeNumber inode) NACRE_EXCLUDES(mutex_);
  // Takes room for that many more blocks. Error: no_space. Never waits.
  Result<> promise(std::uint64_t block_count, const std::function<std::uint64_t()>& dirty_bytes);
  // Gives the room of blocks back that promise() took and nobody got.
  void give_back(std::uint64_t block_count);
  // Notes that promised blocks belong to the reservation now.
  static void note_added(Reservation& reservation, std::uint64_t block_count);
  // Notes that blocks were written, or are not reserved any more.
  void note_gone(Reservation& reservation, std::uint64_t block_count);

  // Called under the operation lock. Puts the file's row into the open group if it has changed.
  void stage(InodeNumber inode, metadata::Database& database) NACRE_EXCLUDES(mutex_);
  // The same for a file whose rows go.
  void erase(InodeNumber inode, metadata::Database& database) NACRE_EXCLUDES(mutex_);
  // Called when a group is staged, under the exclusive operation lock.
  void stage_mark(metadata::Database& database, std::uint64_t next_session) NACRE_EXCLUDES(mutex_);

 private:
  Ballast& ballast_;
  const BlockSizes sizes_;
  std::atomic<std::size_t> count_{0};
  mutable Mutex mutex_;
  std::map<std::uint64_t, std::shared_ptr<Reservation>> files_ NACRE_GUARDED_BY(mutex_);
  std::uint64_t staged_mark_ NACRE_GUARDED_BY(mutex_) = 0;  // 0: there is no such row
};

}  // namespace nacre::fs
