// SPDX-License-Identifier: Apache-2.0
// Makes the row of a chunk from its records, if its own row is gone or older than they are.
#pragma once

#include <span>

#include "fs/salvage/salvage_scan.h"
#include "metadata/format/rows.h"

namespace nacre::fs {

struct PlacedRecord {
  const FoundRecord* record;  // borrowed
  metadata::RecordLocation location;
};

// Lays the records of one chunk, in the order of their versions, over the row. Records that are not
// newer than all that the row names are its own or dead, and are left out. Returns false if no
// record was newer. If the row was empty and no record is a base, bytes that no record holds are
// lost, up to the end of the records and at least to file_end, the known part of the chunk: nothing
// tells that these bytes were zeros.
bool add_newer_records(metadata::ChunkRow& row, std::span<const PlacedRecord> records,
                       std::uint32_t file_end);

}  // namespace nacre::fs
