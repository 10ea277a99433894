// SPDX-License-Identifier: Apache-2.0
// What fallocate(2) set aside for one file, in chunks, and how much of it is still to come.
//
// For each reserved chunk the disk holds what the chunk takes at most, whatever is written to it
// and however often. What is stored of it counts towards that: what is held beyond it is the sum
// over the chunks of worst case less stored bytes, and no chunk's counts below 0.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <vector>

#include "fs/store/chunk_map.h"
#include "metadata/format/reserved_row.h"

namespace nacre::fs {

using metadata::ChunkRange;

// What changes when rows do, in bytes.
struct HeldChange {
  std::int64_t held = 0;       // on the disk, beyond what is stored
  std::int64_t unwritten = 0;  // plain, without data
  HeldChange& operator+=(const HeldChange& other);
  HeldChange& operator-=(const HeldChange& other);
};

// What a chunk takes at most, its records' headers and tags and its rows among it.
std::uint64_t worst_case_bytes(std::uint32_t chunk_size_bytes);
// What is to come of a chunk that the map shows so; of a hole, all.
HeldChange held_for(const MappedChunk& chunk, std::uint32_t chunk_size_bytes);

// Ranges change under the operation lock and the file's own, and are read under either. Counts are
// for any thread.
class Reservation {
 public:
  Reservation() = default;
  explicit Reservation(const metadata::ReservedRow& row);

  bool is_empty() const { return ranges_.empty(); }
  bool has(std::uint64_t index) const;
  bool covers(std::uint64_t first, std::uint64_t end) const;
  // The parts of [first, end) that are reserved, and those that are not; in order.
  std::vector<ChunkRange> inside(std::uint64_t first, std::uint64_t end) const;
  std::vector<ChunkRange> outside(std::uint64_t first, std::uint64_t end) const;
  std::uint64_t chunk_count() const { return chunk_count_.load(std::memory_order_relaxed); }
  std::size_t range_count() const { return ranges_.size(); }
  void add(std::uint64_t first, std::uint64_t end);
  void remove(std::uint64_t first, std::uint64_t end);

  void change(const HeldChange& change);
  std::uint64_t held_bytes() const;
  std::uint64_t unwritten_bytes() const;
  // For its row. True where it has changed since the last time.
  bool take_changed() { return changed_.exchange(false); }
  metadata::ReservedRow row() const;

 private:
  std::map<std::uint64_t, std::uint64_t> ranges_;  // first to end; none touches another
  std::atomic<std::uint64_t> chunk_count_{0};
  std::atomic<std::int64_t> held_{0}, unwritten_{0};
  std::atomic<bool> changed_{false};
};

}  // namespace nacre::fs
