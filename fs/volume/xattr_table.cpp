// SPDX-License-Identifier: Apache-2.0
// A row's value is the format's version byte and then the attribute's value.
#include "fs/volume/xattr_table.h"

#include <fmt/format.h>

namespace nacre::fs {

using metadata::InodeNumber;
using metadata::Table;

namespace {
constexpr char row_version = 1;
}  // namespace

Result<std::optional<std::string>> XattrTable::find(InodeNumber inode,
                                                    std::string_view name) const {
  NACRE_ASSIGN(auto value, database_.get(Table::xattrs, metadata::xattr_key(inode, name)));
  if (!value) return std::nullopt;
  if (value->empty() || value->front() != row_version) {
    return fail(ErrorCode::corrupt, fmt::format("extended attribute '{}' of inode {}: not a row of "
                                                "a version that this build knows",
                                                name, inode.value));
  }
  value->erase(0, 1);
  return value;
}

void XattrTable::put(InodeNumber inode, std::string_view name, std::string_view value,
                     bool is_new) {
  std::string row;
  row.reserve(1 + value.size());
  row += row_version;
  row += value;
  if (is_new) {
    database_.put_new(Table::xattrs, metadata::xattr_key(inode, name), std::move(row));
  } else {
    database_.put(Table::xattrs, metadata::xattr_key(inode, name), std::move(row));
  }
}

void XattrTable::remove(InodeNumber inode, std::string_view name) {
  database_.erase(Table::xattrs, metadata::xattr_key(inode, name));
}

Result<bool> XattrTable::has_any(InodeNumber inode) const {
  bool any = false;
  const std::string prefix = metadata::xattr_prefix(inode);
  NACRE_TRY(database_.scan(Table::xattrs, prefix, metadata::prefix_end(prefix),
                           [&](std::string_view, std::string_view) {
                             any = true;
                             return false;
                           }));
  return any;
}

Result<std::vector<std::string>> XattrTable::names(InodeNumber inode) const {
  std::vector<std::string> names;
  const std::string prefix = metadata::xattr_prefix(inode);
  NACRE_TRY(database_.scan(Table::xattrs, prefix, metadata::prefix_end(prefix),
                           [&](std::string_view key, std::string_view) {
                             names.emplace_back(key.substr(prefix.size()));
                             return true;
                           }));
  return names;
}

}  // namespace nacre::fs
