// SPDX-License-Identifier: Apache-2.0
// Walks one segment file record by record along the clear headers and checks every CRC. Needs no
// keys, and reads each byte once, in order.
//
// After a damaged record the walk goes on where the next good one begins, so that one flipped bit
// costs one record.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "gpu_engine/record/record.h"
#include "metadata/backing/backing.h"
#include "metadata/format/rows.h"

namespace nacre::fs {

class SegmentVisitor {
 public:
  virtual ~SegmentVisitor() = default;
  // A record with a right CRC. bytes are the whole record, valid during the call.
  virtual Result<> record(std::uint64_t offset, const engine::RecordHeader& header,
                          ByteView bytes) = 0;
  // Whether that is really a record, of those whose CRC is right: anybody can make bytes that reach
  // over the records behind them. An error says that it is none, and the walk looks for one within.
  virtual Result<> judge(const engine::RecordHeader&, ByteView) { return {}; }
  // The walk leaves out what follows offset, up to the next anchor or to the end: more looks like
  // records there than it may look at.
  virtual Result<> gave_up(std::uint64_t) { return {}; }
  // [offset, offset + size) holds no good record; error says what is wrong where it begins.
  virtual Result<> damage(std::uint64_t offset, std::uint64_t size, const Error& error) = 0;
  // After each stretch, for progress.
  virtual void passed(std::uint64_t size) = 0;
};

struct SegmentBounds {
  std::uint64_t file_size = 0;
  // Bytes that count, when the caller knows (it stands in the database). When not, what follows the
  // last good record may be a torn tail: it is no damage, and walk_segment() returns its place.
  std::optional<std::uint64_t> committed_size;
  // Where rows say that records begin, in order: a walk that lost the thread picks it up there, and
  // what reaches over one, and stands where no row says so, is no record.
  std::span<const std::uint64_t> anchors;
  std::uint64_t begin = metadata::segment_header_size_bytes;  // where a record begins
};

// The first bytes of a segment file, of whatever volume and number. Errors: corrupt, io.
Result<metadata::SegmentHeader> read_segment_header(metadata::BackingFile& file);
// The same, which must be of this volume and of the number that the file's name says: tampered when
// it is another one.
Result<metadata::SegmentHeader> read_segment_header(
    metadata::BackingFile& file, const std::optional<engine::VolumeId>& volume_id,
    metadata::SegmentNumber number);

// From bounds.begin on. Returns where the good records end (where a tail begins that
// nobody vouches for, when committed_size is not known). Errors are the visitor's, or
// out_of_memory; what cannot be read is damage.
Result<std::uint64_t> walk_segment(metadata::BackingFile& file, const SegmentBounds& bounds,
                                   SegmentVisitor& visitor);

// The number in "000000000001.seg"; nothing for any other name.
std::optional<metadata::SegmentNumber> segment_number_of(std::string_view file_name);

}  // namespace nacre::fs
