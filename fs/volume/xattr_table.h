// SPDX-License-Identifier: Apache-2.0
// The rows of extended attributes. The class keeps no state besides the database's open group, and
// is thread-safe for reads. A thread that changes attributes holds the operation lock and the
// inode's lock. Names and values are any bytes; the caller checks their sizes (xattrs.cpp).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpu_engine/base/result.h"
#include "metadata/format/rows.h"
#include "metadata/tables/database.h"

namespace nacre::fs {

class XattrTable {
 public:
  explicit XattrTable(metadata::Database& database) : database_(database) {}

  // The value, or nothing if the inode has no such attribute. Errors: corrupt, and those of
  // Database::get().
  Result<std::optional<std::string>> find(metadata::InodeNumber inode, std::string_view name) const;
  // Adds or replaces an attribute. is_new says that find() has just not found it.
  void put(metadata::InodeNumber inode, std::string_view name, std::string_view value, bool is_new);
  void remove(metadata::InodeNumber inode, std::string_view name);  // of an attribute that exists
  Result<bool> has_any(metadata::InodeNumber inode) const;
  // All names, in the order of their bytes.
  Result<std::vector<std::string>> names(metadata::InodeNumber inode) const;

 private:
  metadata::Database& database_;
};

}  // namespace nacre::fs
