// SPDX-License-Identifier: Apache-2.0
// Counts of what an operation asked of the tables and of the disk, as CountedDatabase and
// CountedBacking saw it. They do not depend on the machine's speed.
#pragma once

#include <atomic>
#include <cstdint>
#include <iosfwd>

namespace nacre::tests {

struct OperationCounts {
  // Counts of the tables.
  std::uint64_t gets = 0;        // single rows, whether the groups or RocksDB answered
  std::uint64_t many_gets = 0;   // looks for many rows at once
  std::uint64_t iterators = 0;   // scans, and looks for the last row of a range
  std::uint64_t rows_read = 0;   // asked of RocksDB, or returned by it in a scan
  std::uint64_t puts = 0;        // into the open group
  std::uint64_t erases = 0;      // from it
  std::uint64_t batches = 0;     // groups written as one WriteBatch with one sync of the log
  std::uint64_t batch_rows = 0;  // put or erased by them
  // Counts of the disk.
  std::uint64_t segment_reads = 0;
  std::uint64_t segment_writes = 0;
  std::uint64_t database_writes = 0;  // of RocksDB's files: its log, but for the rare new table
  std::uint64_t syncs = 0;            // of files: what a disk flushes for
  std::uint64_t folder_syncs = 0;

  bool operator==(const OperationCounts&) const = default;
};
// Names those that are not 0.
std::ostream& operator<<(std::ostream& out, const OperationCounts& counts);
OperationCounts operator-(const OperationCounts& after, const OperationCounts& before);

// Bytes that went to the disk or came from it.
struct ByteCounts {
  std::uint64_t segment_read = 0;
  std::uint64_t segment_written = 0;
  std::uint64_t database_written = 0;
};
ByteCounts operator-(const ByteCounts& after, const ByteCounts& before);

// Shared by the decorators and the tests that read them. Every thread may count.
struct TableCounters {
  std::atomic<std::uint64_t> gets{0}, many_gets{0}, iterators{0}, puts{0}, erases{0}, batches{0},
      batch_rows{0};
  // Erased rows of the table chunks that scans, or looks for a last row, had to pass. Each costs as
  // much as a row that exists.
  std::atomic<std::uint64_t> erased_chunks_passed{0};
};
struct DiskCounters {
  struct Folder {
    std::atomic<std::uint64_t> reads{0}, writes{0}, bytes_read{0}, bytes_written{0};
  };
  Folder segments, database, other;
  std::atomic<std::uint64_t> syncs{0}, folder_syncs{0};
};

}  // namespace nacre::tests
