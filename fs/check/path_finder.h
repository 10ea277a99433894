// SPDX-License-Identifier: Apache-2.0
// From inode numbers back to paths, for messages: tables lead from names to inodes only.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "metadata/format/rows.h"
#include "metadata/tables/database.h"

namespace nacre::fs {

// All paths of each inode, from "/" on, in one scan of the names. An inode without a name gets
// none; a folder whose own way to the root is broken shows as "(inode N)". At most path_count_max
// each.
Result<std::map<metadata::InodeNumber, std::vector<std::string>>> find_paths(
    const metadata::Database& database, const std::set<metadata::InodeNumber>& inodes,
    std::size_t path_count_max = 8);

}  // namespace nacre::fs
