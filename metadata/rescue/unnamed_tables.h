// SPDX-License-Identifier: Apache-2.0
// Which of the tables that a manifest does not name count, if its last entries may be lost.
//
// Tables and manifests draw their numbers from one count, and a manifest begins with all tables
// that there are. So a table with a higher number than the manifest is newer than what it begins
// with. One with a lower number is mostly one that was removed before. Its rows are older than
// those that took their place, but may have higher sequence numbers: RocksDB drops the numbers of
// rows that it moves to the last level.
//
// But a table may also have got its number before the manifest and its entry after it. RocksDB
// begins a manifest only when it has an entry to write, so the tables of that entry are always such
// ones. These are known by what they hold: a table that was made of others has their rows, and the
// others are gone.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "gpu_engine/base/result.h"
#include "metadata/rescue/manifest_edits.h"
#include "metadata/rescue/table_rescue.h"

namespace nacre::metadata {

class UnnamedTables {
 public:
  // names: the files in the folder, in order. The manifest outlives this object.
  UnnamedTables(const ManifestContent& manifest, std::uint64_t manifest_number,
                const std::vector<std::string>& names);

  // Whether the manifest may lack entries. It looks as if it never had them, but a table is removed
  // only after the entry that replaces it is there: so a table that is named is missing.
  bool may_be_lost() const { return !missing_.empty(); }
  // Whether the manifest cannot have known the table.
  bool is_newer(std::uint64_t number) const {
    return number > manifest_number_ && is_unnamed(number);
  }
  // Whether a table with a lower number than the manifest may have been made of missing ones:
  //   - the manifest names no table of its family with a higher number. Such a one may hold what
  //     became of its rows
  //   - each of its rows has a key and a sequence number that a missing table of the family had.
  //     Then these rows count as lost in any case, and those of this table as doubtful
  // A table of a family that was also written between the two numbers is not recognised. Error:
  // out_of_memory.
  Result<bool> may_stand_in(std::uint64_t number, const TableRescue& file) const;

 private:
  bool is_unnamed(std::uint64_t number) const {
    return !manifest_.tables.contains(number) && !manifest_.removed.contains(number);
  }
  bool was_in_missing(std::uint32_t family, const VersionedRow& row) const;

  const ManifestContent& manifest_;
  const std::uint64_t manifest_number_;
  std::vector<const LiveTable*> missing_;                 // that the manifest names
  std::map<std::uint32_t, std::uint64_t> newest_tables_;  // of each family, of those that are named
};

}  // namespace nacre::metadata
