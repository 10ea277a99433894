// SPDX-License-Identifier: Apache-2.0
// Recovers what was written after the checkpoint. Records that no row names, and that are not dead,
// become files in lost+found of the new volume, one for each inode.
#pragma once

#include <vector>

#include "fs/salvage/salvage.h"
#include "fs/salvage/salvage_scan.h"
#include "fs/salvage/salvage_tables.h"
#include "fs/volume/volume.h"

namespace nacre::fs {

// The records of files that no row names and whose version is at least settled. Each version comes
// once; records of one inode and chunk are together, in the order of versions. For a chunk in
// newest only records that are newer than the one its row names count, because merging may leave
// older ones. The pointers point into records.
std::vector<const FoundRecord*> newer_records(const FoundRecords& records,
                                              metadata::RecordVersion settled,
                                              const NewestVersions& newest);

// The number of plain bytes that write_newer() would write for them.
std::uint64_t plain_bytes_of(const std::vector<const FoundRecord*>& records);

// Writes them into the volume, which holds the checkpoint's files and has the same chunk size.
Result<std::vector<SalvagedFile>> write_newer(Volume& volume, std::uint32_t chunk_size_bytes,
                                              const std::vector<const FoundRecord*>& newer,
                                              RecordOpener& opener, FindingList& findings,
                                              const ProgressFunction& progress);

}  // namespace nacre::fs
