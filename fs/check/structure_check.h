// SPDX-License-Identifier: Apache-2.0
// The structure check: every row of every table decodes, and the rows agree with one another.
//
//   inodes, dentries, orphans   names and inodes name each other both ways; link counts, entry
//                               counts, parents; every inode is reached from the root or an orphan
//   xattrs                      belong to an inode
//   chunks, inlined             each chunk below a file's size is covered by exactly one row, none
//                               beyond; patches whose bytes are inlined have them, and no others
//                               are. What a row says is lost is a note
//   segments                    live counts, files, headers, sessions; rows name records within
//                               what is committed, and no two name overlapping records
//   system                      counters are past what they number; totals
//
// Offline: nothing else may change the database meanwhile. Reads rows and the segments' headers
// only. Memory: 64 bytes an inode, and what RecordIndex takes.
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
  std::uint64_t lost_bytes = 0;  // that rows say are lost: part of data_bytes
};

struct StructureContext {
  metadata::BackingDirectory& directory;
  const metadata::Database& database;
  engine::VolumeId volume_id;
  std::uint32_t chunk_size_bytes;
  FindingList& findings;
  const ProgressFunction& progress;
};

// Errors are the database's: a row that cannot be read ends the check.
Result<StructureCounts> check_structure(const StructureContext& context);

}  // namespace nacre::fs
