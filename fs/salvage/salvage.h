// SPDX-License-Identifier: Apache-2.0
// Salvage: makes a volume whose db/ is lost anew in another directory, from its segments alone: the
// tables of the newest checkpoint that is whole, with the records that they name; and in
// lost+found, by inode, what newer records hold that no checkpoint knows (all records, where there
// is none).
//
// Every record is authenticated before it counts, and is the very one that a row means: rows name
// records by versions, which never repeat. What a row names and nobody finds stays named, so
// reading it is an error and never zeros. The source is only read. The new volume has the same id
// and keys, and counts as a volume only when all of it is there.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fs/check/finding.h"
#include "gpu_engine/engine.h"
#include "metadata/backing/backing.h"
#include "metadata/volume_files.h"

namespace nacre::fs {

// Bytes of a file.
struct ByteRange {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
};

// A file in lost+found: what was written of an inode after the checkpoint.
struct SalvagedFile {
  metadata::InodeNumber inode;
  std::string name;                // in lost+found
  std::vector<std::string> paths;  // of the inode as of the checkpoint
  std::uint64_t size = 0;
  std::uint64_t chunk_count = 0;
  // Chunks of which only pieces were written: put together from these in the order in which they
  // were sealed, over what the checkpoint's file has there.
  std::uint64_t pieced_count = 0;
  // Where it reads as zeros and nothing says that it should: no record tells of these bytes, or
  // none that can be opened. In order, none beside another; what lies behind size is not known.
  std::vector<ByteRange> gaps;
};

struct SalvageReport {
  // Seconds since 1970; none: no checkpoint was found.
  std::optional<std::int64_t> checkpoint_seconds;
  std::uint64_t inode_count = 0;   // as of the checkpoint
  std::uint64_t record_count = 0;  // that its rows name and that were found
  std::uint64_t stored_bytes = 0;  // of these
  std::uint64_t lost_record_count = 0;
  std::uint64_t scanned_bytes = 0;
  std::vector<SalvagedFile> newer;
  // Errors: what is lost. Notes: damage that nothing was seen to be hit by.
  FindingList findings;
};

// target is empty, or what an interrupted salvage left. Nobody else may use either meanwhile.
// Errors: exists, not_empty (the target); no_space: says how much it takes, before anything is
// written; rolled_back: the keyring is older than the checkpoint knows; out_of_memory; io.
Result<SalvageReport> salvage_volume(metadata::BackingDirectory& source,
                                     const metadata::VolumeKeys& volume,
                                     const std::shared_ptr<metadata::BackingDirectory>& target,
                                     engine::Engine& engine, const ProgressFunction& progress);

}  // namespace nacre::fs
