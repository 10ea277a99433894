// SPDX-License-Identifier: Apache-2.0
// The rows of directories: which name in which directory means which inode. Names are ordered by a
// keyed hash, so a place in a directory is a number that stays right while names come and go.
//
// The class keeps no state besides the database's open group, and any thread may read. A thread
// that changes names holds the operation lock and the namespace lock.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpu_engine/base/result.h"
#include "metadata/format/rows.h"
#include "metadata/tables/database.h"

namespace nacre::fs {

using NameHashKey = std::array<Byte, 16>;

class NameTable {
 public:
  NameTable(metadata::Database& database, const NameHashKey& hash_key)
      : database_(database), hash_key_(hash_key) {}

  // The row of a name, or nothing if the directory does not have it. Errors: corrupt, and those of
  // Database::get().
  Result<std::optional<metadata::DentryRow>> find(metadata::InodeNumber parent,
                                                  std::string_view name) const;
  // add() is for a name that find() has just not found; replace() and remove() are for one that it
  // has found.
  void add(metadata::InodeNumber parent, std::string_view name, const metadata::DentryRow& row);
  void replace(metadata::InodeNumber parent, std::string_view name, const metadata::DentryRow& row);
  void remove(metadata::InodeNumber parent, std::string_view name);
  Result<bool> is_empty(metadata::InodeNumber parent) const;  // "." and ".." have no rows

  struct Entry {
    std::string name;
    std::uint64_t hash = 0;
    metadata::DentryRow row;
  };
  // Returns at least count_min entries with a hash of at least from, in order, unless the directory
  // ends first. Entries of equal hash are never separated.
  Result<std::vector<Entry>> list(metadata::InodeNumber parent, std::uint64_t from,
                                  std::size_t count_min) const;
  // Some name of an inode in the directory, for messages. Looks at up to row_count_max rows.
  std::optional<std::string> name_of(metadata::InodeNumber parent, metadata::InodeNumber inode,
                                     std::size_t row_count_max) const;

 private:
  std::string key(metadata::InodeNumber parent, std::string_view name) const;

  metadata::Database& database_;
  const NameHashKey hash_key_;
};

}  // namespace nacre::fs
