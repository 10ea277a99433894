// SPDX-License-Identifier: Apache-2.0
// The one walker over a volume's chunks: every segment in order, every record in it in order of
// offset, each together with the rows that name it. Checking, rekeying and compacting are visitors
// of this walk, so a byte is read once however much is done with it.
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
  // A record with a right CRC, and the rows that name this very place (none: dead; more than one is
  // damage that the structure check reports). bytes are valid during the call.
  virtual Result<> record(metadata::SegmentNumber segment, std::uint64_t offset,
                          const engine::RecordHeader& header, ByteView bytes,
                          std::span<const NamedRecord> named) = 0;
  // A place without a good record, and the rows that name records in it.
  virtual Result<> damage(metadata::SegmentNumber segment, std::uint64_t offset, std::uint64_t size,
                          const Error& error, std::span<const NamedRecord> named) = 0;
  // A row names a place where no record begins, or one of another size, or beyond what is
  // committed, or in a segment that is not there.
  virtual Result<> misplaced(const NamedRecord& named, const Error& error) = 0;
  // A segment that cannot be walked; misplaced() follows for each row that names a record in it.
  virtual Result<> unusable_segment(metadata::SegmentNumber number, const Error& error) = 0;
};

// Reads all segments that have a row or are named by one. Errors are the database's and the
// visitor's; those of segment files go to the visitor.
Result<> walk_chunks(metadata::BackingDirectory& directory, const metadata::Database& database,
                     const engine::VolumeId& volume_id, ChunkVisitor& visitor,
                     const ProgressFunction& progress);

}  // namespace nacre::fs
