// SPDX-License-Identifier: Apache-2.0
// The structure check: every row of every table decodes, and the rows agree with one another.
//
//   inodes, dentries, orphans   names and inodes name each other both ways; link counts, entry
//                               counts, parents; every inode is reached from the root or an orphan
//   xattrs                      belong to an inode
//   chunks, inlined             exactly one row covers each chunk below a file's size, and none
//                               lies beyond; each patch with inlined bytes has them, and no others
//                               exist. Bytes that a row calls lost give a note
//   segments                    live counts, files, headers, sessions; rows name records within
//                               the committed size, and no two name overlapping records
//   system                      each counter is above all numbers in use; totals
//
// Nothing else may change the database during the check. It reads only rows and the segments'
// headers. It takes 64 bytes of memory for each inode, and the memory of RecordIndex.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "fs/check/finding.h"
#include "gpu_engine/record/record.h"
#include "metadata/backing/backing.h"
#include "metadata/format/rows.h"
#include "metadata/tables/database.h"

namespace nacre::fs {

struct StructureCounts {
  std::uint64_t row_count = 0;
  std::uint64_t inode_count = 0;
  std::uint64_t directory_count = 0;
  std::uint64_t name_count = 0;
  std::uint64_t orphan_count = 0;
  std::uint64_t chunk_row_count = 0;
  std::uint64_t record_count = 0;
  std::uint64_t segment_count = 0;
  std::uint64_t data_bytes = 0;
  std::uint64_t live_bytes = 0;
  std::uint64_t lost_bytes = 0;  // the part of data_bytes that rows call lost
};

struct StructureContext {
  metadata::BackingDirectory& directory;
  const metadata::Database& database;
  engine::VolumeId volume_id;
  std::uint32_t chunk_size_bytes;
  FindingList& findings;
  const ProgressFunction& progress;
};

// Errors are those of the database: a row that cannot be read ends the check.
Result<StructureCounts> check_structure(const StructureContext& context);

}  // namespace nacre::fs
