// SPDX-License-Identifier: Apache-2.0
// Salvage: makes a new volume in another directory from the segments of a volume whose db/ is lost.
// The new volume gets the tables of the newest whole checkpoint and the records that they name. In
// lost+found it gets, by inode, the content of records that are newer than the checkpoint. Without
// a checkpoint all records go there.
//
// Each record is authenticated before it counts, and is exactly the one that a row names: rows name
// records by versions, which never repeat. If a record is not found, the row stays, so that reading
// the file gives an error and never zeros. The source is only read. The new volume has the same id
// and keys, and it counts as a volume only once it is complete.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fs/check/finding.h"
#include "gpu_engine/engine.h"
#include "metadata/backing/backing.h"
#include "metadata/volume_files.h"

namespace nacre::fs {

// A range of bytes of a file.
struct ByteRange {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
};

// A file in lost+found, with the content of one inode that was written after the checkpoint.
struct SalvagedFile {
  metadata::InodeNumber inode;
  std::string name;                // in lost+found
  std::vector<std::string> paths;  // of the inode when the checkpoint was written
  std::uint64_t size = 0;
  std::uint64_t chunk_count = 0;
  // The number of chunks of which only pieces were written. Each is put together from its pieces,
  // in the order in which they were sealed, over the checkpoint's content of that chunk.
  std::uint64_t pieced_count = 0;
  // Ranges that read as zeros because no record holds these bytes, or none that can be opened. They
  // are in order and do not touch. Nothing is known of bytes behind size.
  std::vector<ByteRange> gaps;
};

struct SalvageReport {
  // When the checkpoint was written, in seconds since 1970. Empty if no checkpoint was found.
  std::optional<std::int64_t> checkpoint_seconds;
  std::uint64_t inode_count = 0;   // in the checkpoint
  std::uint64_t record_count = 0;  // records that the checkpoint's rows name and that were found
  std::uint64_t stored_bytes = 0;  // of these records
  std::uint64_t lost_record_count = 0;
  std::uint64_t scanned_bytes = 0;
  std::vector<SalvagedFile> newer;
  // Errors tell what is lost. Notes tell of damage that hits nothing as far as is known.
  FindingList findings;
};

// If the segments hold records of two histories of the volume, of which one is that of a copy that
// was written to, the salvage is refused with the names of both. history then names the one that
// counts: the first eight or more hexadecimal digits of the salt of the write session that wrote
// its newest checkpoint. Records of sessions that this checkpoint does not know are then left out.
//
// target is empty, or holds what an interrupted salvage left. No other program may use source or
// target meanwhile. Errors: exists or not_empty because of what target holds; no_space, before
// anything is written, with the room that the salvage needs; tampered if there are two histories
// and none is named; invalid_argument if no checkpoint has the named one; rolled_back if the
// keyring is older than the one that the checkpoint knows; out_of_memory; io.
Result<SalvageReport> salvage_volume(metadata::BackingDirectory& source,
                                     const metadata::VolumeKeys& volume,
                                     const std::shared_ptr<metadata::BackingDirectory>& target,
                                     engine::Engine& engine, const ProgressFunction& progress,
                                     std::string_view history = {});

}  // namespace nacre::fs
