// SPDX-License-Identifier: Apache-2.0
// The check of a whole volume that is not mounted: which parts run, in which order, and which
// remain possible if one of them cannot run. It only reads.
#pragma once

#include <optional>

#include "fs/check/checksum_check.h"
#include "fs/check/deep_check.h"
#include "fs/check/finding.h"
#include "fs/check/structure_check.h"
#include "metadata/backing/backing.h"
#include "metadata/volume_files.h"

namespace nacre::fs {

struct CheckOptions {
  bool scrub = false;  // verifies every CRC of segments and db/
  bool deep = false;   // does the same, and opens every record
};

struct CheckReport {
  FindingList findings;
  // The counts of each part that ran to its end.
  std::optional<StructureCounts> structure;
  std::optional<DeepCheckCounts> records;  // of segments, if the keys were given
  std::optional<ScrubCounts> scrub;        // of db/; without keys also of segments
};

// Checks superblock, keyring and structure with the volume's keys, and what options ask for in
// addition. Whatever is wrong with the volume is a finding. Errors are those of the check itself:
// out_of_memory.
Result<CheckReport> check_volume(const std::shared_ptr<metadata::BackingDirectory>& directory,
                                 const metadata::VolumeKeys& volume, engine::Engine& engine,
                                 const CheckOptions& options, const ProgressFunction& progress);

// Checks without keys: the copies of superblock and keyring, and every CRC of segments and db/.
// Error: unsupported if a newer Nacre made the volume, because only that version can tell damage.
Result<CheckReport> scrub_volume(metadata::BackingDirectory& directory, engine::Engine& engine,
                                 const ScrubOptions& options);
// The same with keys: findings in segments then name the files that are damaged.
Result<CheckReport> scrub_volume(const std::shared_ptr<metadata::BackingDirectory>& directory,
                                 const metadata::VolumeKeys& volume, engine::Engine& engine,
                                 const ScrubOptions& options);

}  // namespace nacre::fs
