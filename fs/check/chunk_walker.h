// SPDX-License-Identifier: Apache-2.0
// The walk over all records of a volume: segments in order, records in the order of offsets, each
// with the rows that name it. Checks are visitors of this walk, so each byte is read once.
#pragma once

#include <cstdint>
#include <span>

#include "fs/check/finding.h"
#include "fs/check/record_index.h"
#include "gpu_engine/record/record.h"
#include "metadata/backing/backing.h"
#include "metadata/format/rows.h"
#include "metadata/tables/database.h"

namespace nacre::fs {

class ChunkVisitor {
 public:
  virtual ~ChunkVisitor() = default;
  virtual Result<> begin_segment(metadata::SegmentNumber number,
                                 const metadata::SegmentRow& row) = 0;
  // A record with a right CRC, and the rows that name exactly this place. A record without a row is
  // dead. More than one row is damage, which the structure check reports. bytes are valid during
  // the call.
  virtual Result<> record(metadata::SegmentNumber segment, std::uint64_t offset,
                          const engine::RecordHeader& header, ByteView bytes,
                          std::span<const NamedRecord> named) = 0;
  // A range of bytes without a good record, and the rows that name records in it.
  virtual Result<> damage(metadata::SegmentNumber segment, std::uint64_t offset, std::uint64_t size,
                          const Error& error, std::span<const NamedRecord> named) = 0;
  // A row names a place where no record begins or where a record has another size, a place beyond
  // the committed size, or a segment that does not exist.
  virtual Result<> misplaced(const NamedRecord& named, const Error& error) = 0;
  // A segment that cannot be walked; misplaced() follows for each row that names a record in it.
  virtual Result<> unusable_segment(metadata::SegmentNumber number, const Error& error) = 0;
};

// Walks all segments that have a row or are named by one. Errors of segment files go to the
// visitor. Returned errors are those of the database and of the visitor.
Result<> walk_chunks(metadata::BackingDirectory& directory, const metadata::Database& database,
                     const engine::VolumeId& volume_id, ChunkVisitor& visitor,
                     const ProgressFunction& progress);

}  // namespace nacre::fs
