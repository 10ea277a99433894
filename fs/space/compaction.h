// SPDX-License-Identifier: Apache-2.0
// Emptying one segment: reads it in order, opens each record to learn what it is, and appends those
// that rows still name to a segment of this session; then the rows name the new place. Records are
// moved unchanged, or, where their epoch is an older one, sealed anew.
// The next commit makes that durable and removes the empty segment, in the order of every commit:
// records before rows, rows before the removal. So a crash leaves the old place or the new one.
//
// A record that cannot be opened stays where it is, and with it its segment.
//
// Where the segment is of an older epoch and the mover has memory for it, records are read to where
// the engine takes them from, and what is alive is told from what is dead only by the rows that are
// switched, if little is dead. What does not go smoothly there is left to the walk.
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
  bool are_all = true;  // false: there were too many to note, and only the rows know the others
};

// Who owns the chunk rows of files: implemented by the volume. Thread-safe.
class RowKeeper {
 public:
  virtual ~RowKeeper() = default;
  // FileData::change_rows() of that file. stale when it is gone or going.
  virtual Result<std::size_t> change_rows(InodeNumber inode,
                                          std::span<const RowChange> changes) = 0;
  // The file is deleted: it is gone, or its rows are being erased. Never false again once true.
  virtual bool is_going(InodeNumber inode) = 0;
  // Moves what small synchronous writes left in the table inlined to a segment, and merges patches
  // into their base when there are many. Content stays. stale as above.
  virtual Result<> tidy_chunk(InodeNumber inode, ChunkIndex index) = 0;
  // Bytes of small synchronous writes that went into the table inlined since the mount.
  virtual std::uint64_t inlined_bytes() const = 0;
  // Chunks whose rows became worth merging since the last call.
  virtual PatchedChunks take_patched_chunks() = 0;
};

struct CompactionOutcome {
  std::uint64_t moved_records = 0;
  std::uint64_t moved_bytes = 0;
  std::uint64_t damaged_records = 0;  // cannot be opened, or are not what their row says
  Error first_damage = {ErrorCode::corrupt, {}};
};

// Called after each piece of work with the bytes it read and wrote; an error ends the compaction.
// Holds no lock.
using Pace = std::function<Result<>(std::uint64_t bytes)>;

inline constexpr std::size_t compaction_batch_bytes = 1u << 20;

// Who moves: one thread. Several empty segments side by side, each on a lane of its own.
struct Mover {
  unsigned lane = 0;
  std::size_t batch_bytes = compaction_batch_bytes;  // moved together; pace may change it
  MoveMemory* memory = nullptr;                      // of batches of an older epoch, or none
  PageCache page_cache = PageCache::used;
};

// Errors: those of pace, of the medium, no_space, out_of_memory. What was moved until then stays
// moved. mover is borrowed.
Result<CompactionOutcome> compact_segment(SegmentStore& store, const ChunkMap& map,
                                          RowKeeper& keeper, const Victim& victim, const Pace& pace,
                                          Mover& mover);
// Tells the store, and the log of a segment that cannot be emptied. True: this is one.
bool note_outcome(SegmentStore& store, const Victim& victim, const CompactionOutcome& outcome);

}  // namespace nacre::fs
