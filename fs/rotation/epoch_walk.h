// SPDX-License-Identifier: Apache-2.0
// Walks a volume's files and says under which epoch everything in them is sealed: the proof that a
// rotation is complete. Needs no keys: headers are in the clear.
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
  // Of another epoch than the one asked for. Segments and files of db/ that have no header yet
  // count as neither.
  std::uint64_t other_file_count = 0;
  std::uint64_t other_record_count = 0;
  // That hold no good record, or no good header of their file: of which epoch, nobody can tell.
  std::uint64_t damaged_place_count = 0;
  std::string first_other;  // for messages: where
};

enum class WalkDepth : std::uint8_t {
  headers,     // follows the chain of record headers; where it breaks, as everything
  everything,  // verifies the CRC of all records on the way
};

// Up to eight segments are walked side by side, by as many threads as there are cores. passed:
// called with bytes that were looked at, by any of them but by one at a time; its error ends the
// walk. Files that go meanwhile are passed over. Errors: io, and those of passed.
//
// vouched: of segments for which it says true the records are not looked at, and not counted.
Result<EpochCounts> count_epochs(metadata::BackingDirectory& directory, std::uint32_t epoch,
                                 WalkDepth depth,
                                 const std::function<Result<>(std::uint64_t bytes)>& passed,
                                 const std::function<bool(metadata::SegmentNumber)>& vouched = {});

}  // namespace nacre::fs
