// SPDX-License-Identifier: Apache-2.0
// The plan of a backup: which files it copies, where to, and in which step each begins to count.
// The plan is made by reading source and target; it changes neither.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "fs/backup/backup.h"

namespace nacre::fs {

enum class CopyStep : std::uint8_t {
  segment,           // may be in place at once: no row names its new bytes yet
  arriving_segment,  // gets its name after the new database is in place
  table,             // a table, or another file of db/ that no state depends on by its name
  manifest,          // a manifest that grew; replacing it switches to the new state
  log,               // replaced after the manifest
};

struct PlannedCopy {
  BackupFile file;
  CopyStep step = CopyStep::table;
};

struct BackupPlan {
  std::vector<PlannedCopy> copies;
  std::uint64_t copy_bytes = 0;
  std::vector<std::string> arrived;  // segments that an interrupted run has copied wholly
  bool replaces_current = true;
  std::set<std::string> wanted;  // all paths that belong to the new state
  std::uint64_t total_bytes = 0;
};

// is_first says that the target holds no state that must stay. Errors: exists if it holds one and
// has files of db/ that the source never had, because its state is then a later one or one of
// another branch; stale if a file of the snapshot is gone.
Result<BackupPlan> plan_backup(metadata::BackingDirectory& source, const BackupSource& what,
                               metadata::BackingDirectory& target, bool is_first);

}  // namespace nacre::fs
