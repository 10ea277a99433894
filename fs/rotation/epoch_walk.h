// SPDX-License-Identifier: Apache-2.0
// Walks a volume's files and tells under which epoch everything in them is sealed. This proves that
// a rotation is complete. It needs no keys, since headers are in the clear.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "gpu_engine/base/result.h"
#include "metadata/backing/backing.h"
#include "metadata/format/identifiers.h"

namespace nacre::fs {

struct EpochCounts {
  std::uint64_t file_count = 0;
  std::uint64_t record_count = 0;
  std::uint64_t record_bytes = 0;
  // Files and records of another epoch than the one asked for. Segments and files of db/ that have
  // no header yet count in neither number.
  std::uint64_t other_file_count = 0;
  std::uint64_t other_record_count = 0;
  // Places that hold no good record, and files without a good header. Their epoch cannot be told.
  std::uint64_t damaged_place_count = 0;
  std::string first_other;  // the first place of another epoch, for messages
};

enum class WalkDepth : std::uint8_t {
  headers,     // follows the record headers, and reads everything where they are broken
  everything,  // verifies the CRC of all records on the way
};

// Up to eight segments are walked in parallel, by as many threads as there are cores. passed is
// called with the number of bytes that were looked at. Any of the threads calls it, but only one at
// a time, and its error ends the walk. Files that are removed during the walk are left out. Errors:
// io, and those of passed.
//
// Files whose names no segment and no file of the database has are left out.
//
// If vouched returns true for a segment, its records are neither looked at nor counted.
Result<EpochCounts> count_epochs(metadata::BackingDirectory& directory, std::uint32_t epoch,
                                 WalkDepth depth,
                                 const std::function<Result<>(std::uint64_t bytes)>& passed,
                                 const std::function<bool(metadata::SegmentNumber)>& vouched = {});

}  // namespace nacre::fs
