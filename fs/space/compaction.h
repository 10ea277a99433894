// SPDX-License-Identifier: Apache-2.0
// Empties one segment. It reads the segment in order, opens each record to learn its name, and
// appends the records that rows still name to a segment of this session. Then the rows are changed
// to name the new place. Records are moved unchanged; if their epoch is an older one, they are
// sealed anew. The next commit makes that durable and removes the empty segment, in the order of
// each commit: records before rows, rows before the removal. So a crash leaves the old place or the
// new one.
//
// If a record cannot be opened, it stays in place, and so does its segment.
//
// If the segment is of an older epoch and the mover has memory, a faster way is tried first:
// records are read directly into the engine's input. If few records are dead, all are moved without
// asking first whether they are live; a record that turns out to be named by no row is dead in its
// new place. Records that cannot be moved this way are left to the ordinary walk.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "fs/store/chunk_map.h"
#include "fs/store/segment_store.h"

namespace nacre::fs {

struct PatchedChunks {
  std::vector<std::pair<InodeNumber, ChunkIndex>> chunks;
  bool are_all = true;  // false: there were too many to note; the others must be found in the rows
};

// The owner of the chunk rows of files; the volume implements it. Thread-safe.
class RowKeeper {
 public:
  virtual ~RowKeeper() = default;
  // Calls FileData::change_rows() of that file. Error: stale if the file is deleted.
  virtual Result<std::size_t> change_rows(InodeNumber inode,
                                          std::span<const RowChange> changes) = 0;
  // Whether the file is deleted: it is gone, or its rows are being erased. Once true, it stays
  // true.
  virtual bool is_going(InodeNumber inode) = 0;
  // Moves the bytes of small synchronous writes from the table inlined to a segment, and merges
  // patches into their base if there are many. The content stays the same. Error: stale as above.
  virtual Result<> tidy_chunk(InodeNumber inode, ChunkIndex index) = 0;
  // The bytes of small synchronous writes that were put into the table inlined since the mount.
  virtual std::uint64_t inlined_bytes() const = 0;
  // The chunks whose rows have become worth merging since the last call.
  virtual PatchedChunks take_patched_chunks() = 0;
};

struct CompactionOutcome {
  std::uint64_t moved_records = 0;
  std::uint64_t moved_bytes = 0;
  std::uint64_t damaged_records = 0;  // records that cannot be opened or do not match their row
  Error first_damage = {ErrorCode::corrupt, {}};
};

// Called after each piece of work with the number of bytes that were read and written. No lock is
// held. Its error ends the compaction.
using Pace = std::function<Result<>(std::uint64_t bytes)>;

inline constexpr std::size_t compaction_batch_bytes = 1u << 20;

// The offsets of a segment at which rows say that records begin, in ascending order.
using NamedPlaces =
    std::function<Result<std::vector<std::uint64_t>>(metadata::SegmentNumber number)>;

// What one thread uses to move records. Several threads empty segments in parallel, each on a lane
// of its own.
struct Mover {
  unsigned lane = 0;
  std::size_t batch_bytes =
      compaction_batch_bytes;    // bytes that are moved together; pace may change it
  MoveMemory* memory = nullptr;  // memory for batches of an older epoch, or null
  PageCache page_cache = PageCache::used;
  // Asked if the walk gives a segment up, because too many places in it look like records and are
  // none. The walk then goes by the places that rows name. Without this function such a segment is
  // not emptied.
  NamedPlaces named_places = {};
};

// Empties the segment. Records that were moved before an error stay moved. mover is borrowed.
// Errors: those of pace and of the medium; no_space; out_of_memory.
Result<CompactionOutcome> compact_segment(SegmentStore& store, const ChunkMap& map,
                                          RowKeeper& keeper, const Victim& victim, const Pace& pace,
                                          Mover& mover);
// Notes the outcome in the store, and logs a segment that cannot be emptied. Returns true if this
// is one.
bool note_outcome(SegmentStore& store, const Victim& victim, const CompactionOutcome& outcome);

}  // namespace nacre::fs
