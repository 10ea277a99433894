// SPDX-License-Identifier: Apache-2.0
// Whose data lies in damaged stretches of segments: one pass over the rows that name records and
// one over the names, however many stretches there are.
#pragma once

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
  // and "(a checkpoint …)"; those past scrub_path_count_max are only counted. None: no row names a
  // record there.
  std::vector<std::string> paths;
};

// Errors are the database's.
Result<> find_owners(const metadata::Database& database, std::span<DamagedStretch> stretches);

}  // namespace nacre::fs
