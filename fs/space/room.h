// SPDX-License-Identifier: Apache-2.0
// Who may use what the disk has left, and what fallocate(2) set aside of it.
//
//   who                           may use                            where that is short
//   ----------------------------- ---------------------------------- ------------------------------
//   new data, fallocate,          what is free beyond all that is    waits for a moment for what is
//   checkpoints                   said below                         dead already, then no_space
//   writes into what was set      the same; then what is set aside,  compaction at full speed and
//   aside                         in whole chunks that are flushed   commits, for as long as they
//                                 before the write is answered       find something to give back
//   compaction                    what is set aside, and its own     waits
//                                 room for moving
//   rows of deletes and renames   the ballast                        it is given up (ballast.h)
//
// What is set aside is counted, not allocated: whoever fills the disk next to the volume can take
// it. A reserved chunk counts with all that it can take, less what is stored of it (reservation.h).
// Each time it is written the new record needs room before the old one is given up, so some more
// is kept for all of them together (Ballast::kept_for_promises), which compaction turns over. Two
// things keep a chunk from taking more than was reckoned: where room is short it is written whole,
// without patches; and compaction that such a write waits for also empties segments of which
// hardly anything is dead.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "fs/space/reservation.h"
#include "fs/store/ballast.h"
#include "metadata/tables/database.h"

namespace nacre::fs {

// Keeps each file's reservation for as long as the file is there, known to the kernel or not.
// Thread-safe; its lock is a leaf.
class Room {
 public:
  Room(Ballast& ballast, std::uint32_t chunk_size_bytes)
      : ballast_(ballast), chunk_size_bytes_(chunk_size_bytes) {}

  // What earlier mounts set aside. Rows of files that are not there any more do not count; one that
  // cannot be read is told of, and counts as none.
  Result<> load(const metadata::Database& database);

  // Null where the file has none.
  std::shared_ptr<Reservation> find(InodeNumber inode) const;
  std::shared_ptr<Reservation> find_or_make(InodeNumber inode);
  // Under the operation lock: puts the row into the open group where it has changed.
  void stage(InodeNumber inode, metadata::Database& database);
  // The same, of a file whose rows go.
  void erase(InodeNumber inode, metadata::Database& database);

  std::uint64_t worst_case_bytes(std::uint64_t chunk_count) const {
    return chunk_count * fs::worst_case_bytes(chunk_size_bytes_);
  }
  // So much is promised from now on, for chunks that are to be added to a reservation. no_space.
  Result<> claim(std::uint64_t held_bytes, std::uint64_t chunk_count,
                 const std::function<std::uint64_t()>& dirty_bytes);
  void give_back(std::uint64_t held_bytes, std::uint64_t chunk_count);
  // Of a file's reservation, under the file's lock.
  void change(Reservation& reservation, const HeldChange& change);
  void add(Reservation& reservation, const ChunkRange& range, const HeldChange& held);
  void remove(Reservation& reservation, const ChunkRange& range, const HeldChange& held);

 private:
  Ballast& ballast_;
  const std::uint32_t chunk_size_bytes_;
  std::atomic<std::size_t> count_{0};
  mutable std::mutex mutex_;
  std::unordered_map<std::uint64_t, std::shared_ptr<Reservation>> files_;
};

}  // namespace nacre::fs
