// SPDX-License-Identifier: Apache-2.0
// The map from a file's chunks to records: every change of a chunk row, the live counts that follow
// from it, and the invariant that each chunk below a file's size is covered by exactly one row.
// Chunks that are lost count as data: nobody knows that they were none.
//
// Stateless over the database's open group. The caller holds the operation lock and the file's own
// lock: two threads never change one file's map at once; reads may come from anywhere.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "fs/store/segment_store.h"
#include "metadata/format/rows.h"
#include "metadata/tables/database.h"

namespace nacre::fs {

// What the map says of one chunk. A lost one has a row that says so: the range of all its bytes.
struct MappedChunk {
  bool hole = false;
  metadata::ChunkRow row;    // when not a hole
  std::uint64_t run = 1;     // of a hole: chunks from this one on that it covers
  bool has_own_row = false;  // a chunk: its row is its alone, and no run covers it
};

// What compaction and its like do to a chunk's row: its records move or are merged, its content
// stays. apply gets the row as it is under the file's locks and returns the one to take its place;
// none when the row is no longer what the change was made for.
struct RowChange {
  ChunkIndex index;
  std::function<std::optional<metadata::ChunkRow>(const metadata::ChunkRow&)> apply;
};

class ChunkMap {
 public:
  ChunkMap(metadata::Database& database, SegmentStore& store, std::uint32_t chunk_size_bytes)
      : database_(database), store_(store), chunk_size_bytes_(chunk_size_bytes) {}

  std::uint32_t chunk_size_bytes() const { return chunk_size_bytes_; }
  std::uint64_t chunk_count(std::uint64_t size) const {
    return (size + chunk_size_bytes_ - 1) / chunk_size_bytes_;
  }

  // missing when no row covers the chunk.
  Result<MappedChunk> find(InodeNumber inode, ChunkIndex index) const;
  // The chunk's own row, by one look-up: none where a run covers it, or nothing does. find() then
  // looks for the run, past all rows of the file before it that are gone.
  Result<std::optional<metadata::ChunkRow>> find_own(InodeNumber inode, ChunkIndex index) const;
  // As find(), for count chunks from first on, in one scan.
  Result<std::vector<MappedChunk>> find_range(InodeNumber inode, ChunkIndex first,
                                              std::uint64_t count) const;

  // Puts row in the place of what covered the chunk before, whose records die; records that both
  // rows name stay alive. is_new: the map ends at or before index, nothing covers it. Returns the
  // change of data bytes (sum of content_end over the file's chunk rows).
  Result<std::int64_t> set_chunk(InodeNumber inode, ChunkIndex index, const metadata::ChunkRow& row,
                                 bool is_new);
  // The same in the place of old, which is what find() says now: nothing is looked up again.
  Result<std::int64_t> replace_chunk(InodeNumber inode, ChunkIndex index, const MappedChunk& old,
                                     const metadata::ChunkRow& row);
  // Makes [first, first + count) a hole, joined with one that ends there. Extends the map when it
  // ended at first.
  Result<std::int64_t> set_hole(InodeNumber inode, ChunkIndex first, std::uint64_t count);
  // Cuts the map down to size bytes: rows past it go, the last chunk's valid sizes shrink.
  Result<std::int64_t> truncate(InodeNumber inode, std::uint64_t size);
  // Removes up to row_count_max rows of a file that is going away, from chunk from on: those before
  // it have gone already, and what erases them is not walked over again. Returns the chunk to go on
  // from; none when no row is left.
  Result<std::optional<ChunkIndex>> erase(InodeNumber inode, ChunkIndex from,
                                          std::size_t row_count_max);

 private:
  // Frees what row names and keep (null: nothing) does not. After the row is gone: where memory
  // runs out between the two, a dead record counts as alive, and never a live one as dead.
  void release(InodeNumber inode, ChunkIndex index, const metadata::ChunkRow& row,
               const metadata::ChunkRow* keep);
  // Puts row in the place of old (null: none), both of that chunk alone. Returns as set_chunk().
  std::int64_t put_chunk(InodeNumber inode, ChunkIndex index, const metadata::ChunkRow* old,
                         const metadata::ChunkRow& row, bool is_new);
  // One row over count chunks: a hole, or lost.
  struct Run {
    std::uint64_t first = 0, count = 0;
    bool is_lost = false;
    std::uint64_t end() const { return first + count; }
  };
  void put_run(InodeNumber inode, const Run& run);  // of 0 chunks: nothing
  // The run whose row lies before index and that reaches index or ends right there.
  Result<std::optional<Run>> run_before(InodeNumber inode, ChunkIndex index) const;
  // Cuts [first, end) out of a run that reaches into it: what is left on both sides has its rows.
  void cut_run(InodeNumber inode, const Run& run, std::uint64_t first, std::uint64_t end);
  MappedChunk mapped_of(const Run& run, std::uint64_t index) const;
  std::int64_t data_bytes_of(const Run& run, std::uint64_t first, std::uint64_t end) const;

  metadata::Database& database_;
  SegmentStore& store_;
  std::uint32_t chunk_size_bytes_;
};

// Bytes from the chunk's start to the last that the base or a patch gives, or that is lost.
std::uint32_t content_end(const metadata::ChunkRow& row);
// The highest that it names, of inlined bytes too; 0 where it names none.
RecordVersion newest_version(const metadata::ChunkRow& row);
// Bytes [from, to) are not known any more.
void add_lost(metadata::ChunkRow& row, std::uint32_t from, std::uint32_t to);
// Bytes [from, to) are known again, or for the first time.
void erase_lost(metadata::ChunkRow& row, std::uint32_t from, std::uint32_t to);
// Some of [from, to) is lost.
bool is_lost(const metadata::ChunkRow& row, std::uint32_t from, std::uint32_t to);
// Nothing but lost: all bytes up to size.
metadata::ChunkRow lost_chunk(std::uint32_t size);

}  // namespace nacre::fs
