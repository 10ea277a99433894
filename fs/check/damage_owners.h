// SPDX-License-Identifier: Apache-2.0
// Whose data lies in damaged stretches of segments: one pass over the rows that name records and
// one over the names, however many stretches there are.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "metadata/format/rows.h"
#include "metadata/format/scrub_row.h"
#include "metadata/tables/database.h"

namespace nacre::fs {

struct DamagedStretch {
  metadata::SegmentNumber segment;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  // Filled in: paths of every file that has a record in it, "(inode 7, …)" for one without a name,
  // and "(a checkpoint …)". None: no row names a record there.
  std::vector<std::string> paths;
  // Found, but past scrub_path_count_max - 1: not in paths. There may be more: of a file at most
  // scrub_path_count_max names are looked up, and of a stretch 4,096 files.
  std::uint64_t more_path_count = 0;
};

// What stands last in a list of paths for those that were left out.
std::string words_for_more_paths(std::uint64_t count);

// Errors are the database's.
Result<> find_owners(const metadata::Database& database, std::span<DamagedStretch> stretches);

}  // namespace nacre::fs
