// SPDX-License-Identifier: Apache-2.0
// Reads records that rows name. Neighbours on disk are read with one call, and all are opened in
// payloads.
#pragma once

#include <memory>
#include <span>

#include "fs/store/plain_memory.h"
#include "fs/store/record_keys.h"
#include "fs/store/segment_store.h"
#include "fs/store/segment_table.h"
#include "fs/store/work_pool.h"

namespace nacre::fs {

// Thread-safe. Everything passed by reference outlives it.
class RecordReader {
 public:
  // Bytes that are to lie in memory are opened into place. record_size_bytes_max counts stored
  // bytes; a row that names a larger record is corrupt.
  RecordReader(SegmentTable& table, const RecordKeys& keys, engine::Engine& engine, WorkPool& pool,
               const PlainMemory& memory, std::uint64_t record_size_bytes_max)
      : table_(table),
        keys_(keys),
        engine_(engine),
        pool_(pool),
        memory_(memory),
        record_size_bytes_max_(record_size_bytes_max) {}

  // See SegmentStore::read().
  void read(std::span<ReadRequest> requests);

 private:
  static constexpr std::size_t read_gap_bytes_max = 16u << 10;

  void read_batch(Work& work, std::span<ReadRequest*> requests);
  Result<> fetch(ReadRequest** first, ReadRequest** last, MutableByteView into);

  SegmentTable& table_;
  const RecordKeys& keys_;
  engine::Engine& engine_;
  WorkPool& pool_;
  const PlainMemory& memory_;
  const std::uint64_t record_size_bytes_max_;
};

}  // namespace nacre::fs
