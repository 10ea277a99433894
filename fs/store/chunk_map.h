// SPDX-License-Identifier: Apache-2.0
// The map from a file's chunks to records: every change of a chunk row, and the live counts that
// follow from it. It keeps the invariant that each chunk below a file's size is covered by exactly
// one row. Lost chunks count as data, since they may have been data.
//
// The class keeps no state besides the database's open group. The caller of a change holds the
// operation lock and the file's own lock, so two threads never change one file's map at once. Any
// thread may read. Errors of all calls, besides those that are named: corrupt for a bad row, and
// those of the database.
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

// What the map has for one chunk. A lost chunk has a row that says so, with the range of all its
// bytes.
struct MappedChunk {
  bool hole = false;
  metadata::ChunkRow row;    // if it is not a hole
  std::uint64_t run = 1;     // of a hole: the number of chunks that it covers from this one on
  bool has_own_row = false;  // of a chunk: the row is its alone, and no run covers it
};

// A change of a chunk's row by compaction and similar work: the records move or are merged, and the
// content stays. apply gets the row as it is under the file's locks and returns the row to replace
// it. It returns none if the row is no longer the one for which the change was made.
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

  // Error: missing if no row covers the chunk.
  Result<MappedChunk> find(InodeNumber inode, ChunkIndex index) const;
  // The chunk's own row, by one look-up. None if a run covers the chunk, or if no row does. It is
  // cheaper than find(), which would then search backwards for the run, past RocksDB's marks of
  // deleted rows.
  Result<std::optional<metadata::ChunkRow>> find_own(InodeNumber inode, ChunkIndex index) const;
  // The same as find() for count chunks from first on, in one scan.
  Result<std::vector<MappedChunk>> find_range(InodeNumber inode, ChunkIndex first,
                                              std::uint64_t count) const;

  // Puts row in the place of the rows that covered the chunk before. Their records die, except
  // those that row names too. is_new says that the map ends at or before index, so that no row
  // covers the chunk. Returns the change of data bytes (the sum of content_end over the file's
  // chunk rows).
  Result<std::int64_t> set_chunk(InodeNumber inode, ChunkIndex index, const metadata::ChunkRow& row,
                                 bool is_new);
  // The same if old is what find() returns now: nothing is looked up again.
  Result<std::int64_t> replace_chunk(InodeNumber inode, ChunkIndex index, const MappedChunk& old,
                                     const metadata::ChunkRow& row);
  // Makes [first, first + count) a hole. If another hole ends where this one begins, the two are
  // joined. If the map ended there, it is extended. Returns the change of data bytes.
  Result<std::int64_t> set_hole(InodeNumber inode, ChunkIndex first, std::uint64_t count);
  // Cuts the map down to size bytes: removes rows past it and shrinks the last chunk's valid sizes.
  // Returns the change of data bytes.
  Result<std::int64_t> truncate(InodeNumber inode, std::uint64_t size);
  // Removes up to row_count_max rows of a file that is going away, from chunk from on. The rows
  // before it are gone already, and the scan does not pass their deletion marks again. Returns the
  // chunk to go on from, or none if no row is left.
  Result<std::optional<ChunkIndex>> erase(InodeNumber inode, ChunkIndex from,
                                          std::size_t row_count_max);

 private:
  // Frees the records that row names and keep (which may be null) does not. Called after the row is
  // gone: if memory runs out between the two, a dead record counts as alive, and never a live one
  // as dead.
  void release(InodeNumber inode, ChunkIndex index, const metadata::ChunkRow& row,
               const metadata::ChunkRow* keep);
  // Puts row in the place of old (null: none); both belong to that chunk alone. Returns what
  // set_chunk() does.
  std::int64_t put_chunk(InodeNumber inode, ChunkIndex index, const metadata::ChunkRow* old,
                         const metadata::ChunkRow& row, bool is_new);
  // One row over count chunks, which are a hole or lost.
  struct Run {
    std::uint64_t first = 0, count = 0;
    bool is_lost = false;
    std::uint64_t end() const { return first + count; }
  };
  void put_run(InodeNumber inode, const Run& run);  // does nothing for a run of 0 chunks
  // The run whose row lies before index and that reaches index or ends exactly there.
  Result<std::optional<Run>> run_before(InodeNumber inode, ChunkIndex index) const;
  // Cuts [first, end) out of a run that reaches into it. The rest on both sides gets its own rows.
  void cut_run(InodeNumber inode, const Run& run, std::uint64_t first, std::uint64_t end);
  MappedChunk mapped_of(const Run& run, std::uint64_t index) const;
  std::int64_t data_bytes_of(const Run& run, std::uint64_t first, std::uint64_t end) const;

  metadata::Database& database_;
  SegmentStore& store_;
  std::uint32_t chunk_size_bytes_;
};

// Bytes from the chunk's start to the last byte that the base or a patch gives, or that is lost.
std::uint32_t content_end(const metadata::ChunkRow& row);
// The highest version that the row names, also of inlined bytes. 0 if it names none.
RecordVersion newest_version(const metadata::ChunkRow& row);
// Notes that bytes [from, to) are no longer known.
void add_lost(metadata::ChunkRow& row, std::uint32_t from, std::uint32_t to);
// Notes that bytes [from, to) are known again, or for the first time.
void erase_lost(metadata::ChunkRow& row, std::uint32_t from, std::uint32_t to);
// Whether any byte of [from, to) is lost.
bool is_lost(const metadata::ChunkRow& row, std::uint32_t from, std::uint32_t to);
// A row that says that all bytes up to size are lost.
metadata::ChunkRow lost_chunk(std::uint32_t size);

}  // namespace nacre::fs
