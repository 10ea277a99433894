// SPDX-License-Identifier: Apache-2.0
// Writes the records of one checkpoint: all rows of a view, part by part, then the root.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "fs/space/compaction.h"
#include "fs/store/segment_store.h"
#include "metadata/format/checkpoint.h"
#include "metadata/tables/database.h"

namespace nacre::fs {

struct CheckpointRecords {
  metadata::CheckpointNumber number;
  metadata::CheckpointRow row;
  metadata::CheckpointRoot root;
  std::uint64_t stored_bytes = 0;
  // The pins keep the segments from being removed until the checkpoint's row is in place.
  std::vector<std::shared_ptr<const void>> pins;
};

// The table of each section.
metadata::Table table_of(metadata::CheckpointSection section);

// Writes all rows of view and the root behind them. Calls pace after each part with the stored
// bytes of that part. Holds one part in memory and no lock. Errors: those of pace and of the
// medium; too_big if the rows need more parts than the format allows. After an error no row names
// what was written, so a later commit frees it.
Result<CheckpointRecords> write_checkpoint_records(SegmentStore& store,
                                                   const metadata::CommittedView& view,
                                                   metadata::RecordVersion settled,
                                                   const Pace& pace);

}  // namespace nacre::fs
