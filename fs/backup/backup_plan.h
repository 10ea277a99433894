// SPDX-License-Identifier: Apache-2.0
// Which files a backup copies, where to, and in which of its steps each begins to count. Made by
// looking at both sides; changes nothing.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "fs/backup/backup.h"

namespace nacre::fs {

enum class CopyStep : std::uint8_t {
  segment,           // counts at once: nothing looks at it, or it only grew
  arriving_segment,  // counts when the database does
  table,             // and other files of db/ that have a number or no meaning of their own
  manifest,          // one that grew: replacing it makes the new state count
  log,               // replaced after that
};

struct PlannedCopy {
  BackupFile file;
  CopyStep step = CopyStep::table;
};

struct BackupPlan {
  std::vector<PlannedCopy> copies;
  std::uint64_t copy_bytes = 0;
  std::vector<std::string> arrived;  // segments that an interrupted run brought, whole
  bool replaces_current = true;
  std::set<std::string> wanted;  // every path that belongs to the new state
  std::uint64_t total_bytes = 0;
};

// is_first: the target holds nothing that must stay. Otherwise exists when it has files of db/ that
// the source never had: its state is a later one, or another branch. stale: a file of the snapshot
// is gone.
Result<BackupPlan> plan_backup(metadata::BackingDirectory& source, const BackupSource& what,
                               metadata::BackingDirectory& target, bool is_first);

}  // namespace nacre::fs
