// SPDX-License-Identifier: Apache-2.0
// Tells to which inode a row belongs.
#pragma once

#include <optional>
#include <string_view>

#include "metadata/format/rows.h"
#include "metadata/tables/database.h"

namespace nacre::fs {

// The inode that a row belongs to: of a name the one that it names. None for rows of segments and
// of the table system, and if the row makes no sense.
inline std::optional<metadata::InodeNumber> inode_of(metadata::Table table, std::string_view key,
                                                     std::string_view value) {
  if (table == metadata::Table::segments || table == metadata::Table::system) return std::nullopt;
  if (table == metadata::Table::dentries) {
    const auto row = metadata::decode_dentry_row(value);
    return row ? std::optional(row->inode) : std::nullopt;
  }
  const auto inode = metadata::decode_inode_key(key.substr(0, sizeof(std::uint64_t)));
  return inode ? std::optional(*inode) : std::nullopt;
}

}  // namespace nacre::fs
