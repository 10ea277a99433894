// SPDX-License-Identifier: Apache-2.0
// The row of a chunk whose own row is gone or older than its records, made from those.
#pragma once

#include <span>

#include "fs/salvage/salvage_scan.h"
#include "metadata/format/rows.h"

namespace nacre::fs {

struct PlacedRecord {
  const FoundRecord* record;  // borrowed
  metadata::RecordLocation location;
};

// Puts the records of one chunk, in the order of their versions, over what the row says; those that
// are not newer than all that it names are its own or dead. False: nothing was newer. Where the row
// said nothing and no base is among the records, what none of them gives is lost, up to their end
// and at least to file_end, which is as much of the chunk as its file is known to have: that these
// bytes were zeros nobody knows.
bool add_newer_records(metadata::ChunkRow& row, std::span<const PlacedRecord> records,
                       std::uint32_t file_end);

}  // namespace nacre::fs
