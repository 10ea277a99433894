// SPDX-License-Identifier: Apache-2.0
// The rows of extended attributes. The class keeps no state besides the database's open group. Any
// thread may read. A thread that changes rows holds the operation lock and the inode's lock.
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

  Result<std::optional<std::string>> find(metadata::InodeNumber inode, std::string_view name) const;
  // is_new says that find() has just not found the attribute.
  void put(metadata::InodeNumber inode, std::string_view name, std::string_view value, bool is_new);
  void remove(metadata::InodeNumber inode, std::string_view name);
  Result<bool> has_any(metadata::InodeNumber inode) const;
  Result<std::vector<std::string>> names(metadata::InodeNumber inode) const;

 private:
  metadata::Database& database_;
};

}  // namespace nacre::fs
