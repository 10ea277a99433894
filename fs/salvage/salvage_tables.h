// SPDX-License-Identifier: Apache-2.0
// Makes the tables of a salvaged volume from the rows of a checkpoint, and copies the records that
// they name to segments of the new volume.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <utility>

#include "fs/salvage/salvage_checkpoint.h"
#include "fs/salvage/salvage_scan.h"
#include "metadata/volume_files.h"

namespace nacre::fs {

struct SalvageContext {
  metadata::BackingDirectory& source;
  const metadata::VolumeKeys& volume;
  const std::shared_ptr<metadata::BackingDirectory>& target;
  engine::Engine& engine;
  FindingList& findings;
  const ProgressFunction& progress;
};

// The newest version that a chunk's row names, also for inlined bytes.
using NewestVersions =
    std::map<std::pair<metadata::InodeNumber, metadata::ChunkIndex>, metadata::RecordVersion>;

struct NamedRecords {
  std::uint64_t record_count = 0;
  std::uint64_t stored_bytes = 0;
  std::uint64_t lost_count = 0;
  NewestVersions newest;  // only of chunks where it is at least the checkpoint's settled version,
                          // which are few
};

// Marks the records that rows name, and adds a finding for each that was not found.
Result<NamedRecords> mark_named(const SalvageContext& context, const FoundCheckpoint& checkpoint,
                                FoundRecords& records, RecordOpener& opener);

// Makes the database of the target, which has none, and copies the marked records. The numbers that
// the new volume will give out are above all that the source ever used.
Result<> rebuild_tables(const SalvageContext& context, const FoundCheckpoint& checkpoint,
                        FoundRecords& records, RecordOpener& opener);

// Makes tables with an empty root directory, for a source without a checkpoint, with numbers as
// above.
Result<> make_empty_tables(const SalvageContext& context, const FoundRecords& records);

}  // namespace nacre::fs
