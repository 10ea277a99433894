// SPDX-License-Identifier: Apache-2.0
// The check of a whole volume that is not mounted: which parts run, in which order, and what
// remains possible when one of them cannot. Reads only.
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
  bool scrub = false;  // every CRC of segments and db/
  bool deep = false;   // the same, and every record is opened
};

struct CheckReport {
  FindingList findings;
  // What ran to its end.
  std::optional<StructureCounts> structure;
  std::optional<DeepCheckCounts> records;  // of segments, with keys
  std::optional<ScrubCounts> scrub;        // of db/; without keys of segments too
};

// With the volume's keys: superblock, keyring, structure, and what options ask for. Errors are
// those of the check itself (out_of_memory); what is wrong with the volume is a finding.
Result<CheckReport> check_volume(const std::shared_ptr<metadata::BackingDirectory>& directory,
                                 const metadata::VolumeKeys& volume, engine::Engine& engine,
                                 const CheckOptions& options, const ProgressFunction& progress);

// Without keys: copies of superblock and keyring, every CRC of segments and db/. unsupported where
// a newer Nacre made the volume: what is damage there, only that one knows.
Result<CheckReport> scrub_volume(metadata::BackingDirectory& directory, engine::Engine& engine,
                                 const ScrubOptions& options);
// The same with keys: findings in segments name the files that are hit.
Result<CheckReport> scrub_volume(const std::shared_ptr<metadata::BackingDirectory>& directory,
                                 const metadata::VolumeKeys& volume, engine::Engine& engine,
                                 const ScrubOptions& options);

}  // namespace nacre::fs
