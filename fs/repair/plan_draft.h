// SPDX-License-Identifier: Apache-2.0
// A plan in the making. Changes go to the open group of a database that is open for reading only.
// So each part of the repair reads the volume as it will be, and nothing reaches the disk.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "fs/repair/repair_plan.h"

namespace nacre::fs {

// Not thread-safe. Not to be called from within a scan of the database.
class PlanDraft {
 public:
  explicit PlanDraft(metadata::Database& database) : database_(database) {}

  // The database as it will be.
  const metadata::Database& database() const { return database_; }

  Result<> put(metadata::Table table, const std::string& key, std::string value, std::string why,
               std::optional<metadata::InodeNumber> inode = {});
  Result<> erase(metadata::Table table, const std::string& key, std::string why,
                 std::optional<metadata::InodeNumber> inode = {});
  void add(BytesEdit change, std::string why);
  void add(FileEdit change, std::string why);
  void add(LostBytes lost) { plan_.lost.push_back(std::move(lost)); }

  // Whether some row will be changed.
  bool changes_rows() const;
  // The steps in the order in which they were added, without those that change nothing in the end.
  RepairPlan take();

 private:
  Result<> change(metadata::Table table, const std::string& key, std::optional<std::string> value,
                  std::string why, std::optional<metadata::InodeNumber> inode);

  metadata::Database& database_;
  RepairPlan plan_;
  std::map<std::pair<metadata::Table, std::string>, std::size_t>
      rows_;  // the index of each row's step
};

}  // namespace nacre::fs
