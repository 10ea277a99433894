// SPDX-License-Identifier: Apache-2.0
// The records that rows of chunks and checkpoints name, sorted by segment and offset. The rows
// themselves are sorted by file.
//
// Memory is bounded: if there are too many records, the table is scanned once for each group of
// segments whose records fit.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>

#include "metadata/format/rows.h"
#include "metadata/tables/database.h"

namespace nacre::fs {

// One record that a row names.
struct NamedRecord {
  metadata::RecordLocation location;
  metadata::RecordName name;
  std::uint32_t plain_size = 0;
};

class RecordIndex {
 public:
  // Each record takes 80 bytes of memory.
  static constexpr std::uint64_t record_count_max_default = 2u << 20;

  // Counts the records of each segment. Rows that do not decode are left out; the structure check
  // reports them.
  static Result<RecordIndex> build(const metadata::Database& database,
                                   std::uint64_t record_count_max = record_count_max_default);

  std::uint64_t record_count() const { return record_count_; }

  // Called for each segment that a row names, in the order of numbers, with its records in the
  // order of offsets. Its error ends the walk.
  using Visit = std::function<Result<>(metadata::SegmentNumber, std::span<const NamedRecord>)>;
  Result<> for_each_segment(const Visit& visit) const;

 private:
  RecordIndex(const metadata::Database& database, std::uint64_t record_count_max)
      : database_(&database), record_count_max_(record_count_max) {}

  const metadata::Database* database_;
  std::uint64_t record_count_max_;
  std::uint64_t record_count_ = 0;
  std::map<metadata::SegmentNumber, std::uint64_t> counts_;
};

// Calls visit for each record that rows name, in one pass: first those of checkpoints, then those
// of files. Rows that do not decode are left out. Errors are those of the database.
Result<> scan_records(const metadata::Database& database,
                      const std::function<void(const NamedRecord&)>& visit);

// Calls visit for every record that the row names.
void for_each_record(metadata::InodeNumber inode, metadata::ChunkIndex index,
                     const metadata::ChunkRow& row,
                     const std::function<void(const NamedRecord&)>& visit);

}  // namespace nacre::fs
