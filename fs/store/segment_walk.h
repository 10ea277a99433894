// SPDX-License-Identifier: Apache-2.0
// Walks through one segment file record by record, along the clear headers, and checks every CRC.
// It needs no keys and reads each byte once, in order.
//
// After a damaged record the walk goes on where the next good one begins, so one flipped bit costs
// one record.
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
  // Called for a record with a right CRC. bytes are the whole record and valid during the call.
  virtual Result<> record(std::uint64_t offset, const engine::RecordHeader& header,
                          ByteView bytes) = 0;
  // Judges bytes with the form and the CRC of a record. An attacker without a key can make such
  // bytes, and they can reach over the records behind them. On an error the walk looks for records
  // within them.
  virtual Result<> judge(const engine::RecordHeader&, ByteView) { return {}; }
  // Called when the walk leaves out what follows offset, up to the next anchor or to the end, since
  // more bytes there look like records than it may look at.
  virtual Result<> gave_up(std::uint64_t) { return {}; }
  // Called for [offset, offset + size), which holds no good record. error says what is wrong where
  // it begins.
  virtual Result<> damage(std::uint64_t offset, std::uint64_t size, const Error& error) = 0;
  // Called after each stretch, for progress.
  virtual void passed(std::uint64_t size) = 0;
};

struct SegmentBounds {
  std::uint64_t file_size = 0;
  // The bytes that count, if the caller knows that number (it stands in the database). If not, the
  // bytes after the last good record may be a torn tail. They are then no damage, and
  // walk_segment() returns where they begin.
  std::optional<std::uint64_t> committed_size;
  // The offsets at which rows say that records begin, in ascending order. A walk that found damage
  // can go on there. Bytes that reach over a good record at such an offset, and begin where no row
  // says so, are no record.
  std::span<const std::uint64_t> anchors;
  std::uint64_t begin = metadata::segment_header_size_bytes;  // the offset of a record
};

// Reads the first bytes of a segment file, of any volume and number. Errors: corrupt, io.
Result<metadata::SegmentHeader> read_segment_header(metadata::BackingFile& file);
// The same for a header that must be of this volume and of the number in the file's name. Error:
// tampered if it is of another one.
Result<metadata::SegmentHeader> read_segment_header(
    metadata::BackingFile& file, const std::optional<engine::VolumeId>& volume_id,
    metadata::SegmentNumber number);

// Walks from bounds.begin on. Returns the offset at which the good records end. If committed_size
// is not known, that is where a possible torn tail begins. Errors are those of the visitor, or
// out_of_memory; bytes that cannot be read are damage.
Result<std::uint64_t> walk_segment(metadata::BackingFile& file, const SegmentBounds& bounds,
                                   SegmentVisitor& visitor);

// The number in "000000000001.seg", or none for any other name.
std::optional<metadata::SegmentNumber> segment_number_of(std::string_view file_name);

}  // namespace nacre::fs
