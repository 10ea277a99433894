// SPDX-License-Identifier: Apache-2.0
// Finds the files whose data lies in damaged stretches of segments. It takes one pass over the rows
// that name records and one over the names, for any number of stretches.
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
  // Result: the paths of all files that have a record in the stretch, "(inode 7, …)" for a file
  // without a name, and "(a checkpoint …)". Empty if no row names a record there.
  std::vector<std::string> paths;
  // Result: the number of paths that were found but left out of paths, which has at most
  // scrub_path_count_max - 1. It is a lower bound: at most scrub_path_count_max names of a file and
  // at most 4,096 files of a stretch are looked up.
  std::uint64_t more_path_count = 0;
};

// The last line of a list from which this many paths were left out.
std::string words_for_more_paths(std::uint64_t count);

// Errors are the database's.
Result<> find_owners(const metadata::Database& database, std::span<DamagedStretch> stretches);

}  // namespace nacre::fs
