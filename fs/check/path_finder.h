// SPDX-License-Identifier: Apache-2.0
// Finds the paths of inodes, for messages. The tables lead only from names to inodes.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "metadata/format/rows.h"
#include "metadata/tables/database.h"

namespace nacre::fs {

// Returns at most path_count_max paths of each inode, from "/" on, in one scan of the names. An
// inode without a name has no entry. A folder that the root does not lead to is shown as "(inode
// N)".
Result<std::map<metadata::InodeNumber, std::vector<std::string>>> find_paths(
    const metadata::Database& database, const std::set<metadata::InodeNumber>& inodes,
    std::size_t path_count_max = 8);

}  // namespace nacre::fs
