// SPDX-License-Identifier: Apache-2.0
// What was written after the checkpoint: records that no row names and that are not dead. They
// become files in lost+found of the new volume, one for each inode.
#pragma once

#include <vector>

#include "fs/salvage/salvage.h"
#include "fs/salvage/salvage_scan.h"
#include "fs/salvage/salvage_tables.h"
#include "fs/volume/volume.h"

namespace nacre::fs {

// Records of files from the version settled on that no row names: each version once, those of one
// inode and chunk together, by version. Borrowed from records. Of a chunk in newest those alone
// that are newer than what its row names: chunks that are merged may leave others.
std::vector<const FoundRecord*> newer_records(const FoundRecords& records,
                                              metadata::RecordVersion settled,
                                              const NewestVersions& newest);

// Their plain bytes as they would be written anew.
std::uint64_t plain_bytes_of(const std::vector<const FoundRecord*>& records);

// Writes them into the volume, which holds the checkpoint's files; chunks are as large as there.
Result<std::vector<SalvagedFile>> write_newer(Volume& volume, std::uint32_t chunk_size_bytes,
                                              const std::vector<const FoundRecord*>& newer,
                                              RecordOpener& opener, FindingList& findings,
                                              const ProgressFunction& progress);

}  // namespace nacre::fs
