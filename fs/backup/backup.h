// SPDX-License-Identifier: Apache-2.0
// A backup: makes a target folder a complete volume that holds what a snapshot of the source names,
// and copies only what is not there yet. Sealed bytes are moved as they are; no key is needed.
//
// At every moment the target is what it was before, or what it becomes: what is new comes under
// names that the old state does not look at, one rename in db/ makes it count, and what is of no
// use any more goes last. A run that was interrupted is repeated and goes on. A folder that was
// empty becomes a volume with the last step. docs/FORMAT.md, "Backup".
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <vector>

#include "fs/check/finding.h"
#include "fs/store/backup_snapshot.h"
#include "gpu_engine/base/result.h"
#include "metadata/backing/backing.h"

namespace nacre::fs {

struct BackupSource {
  BackupSnapshot snapshot;
  // The snapshot's one log holds no rows. If not, the files count only all together: they make a
  // new backup, but cannot replace an earlier one in one step.
  bool is_clean = true;
};

struct BackupOptions {
  std::uint64_t rate_bytes_per_second = 0;  // 0: as fast as the disks go
  // Whether the source still holds what is being copied; its error ends the run. Asked again and
  // again, and with patience when a file turns out to be gone. None: nobody removes anything.
  std::function<Result<>(std::chrono::milliseconds patience)> check_hold = nullptr;
};

struct BackupReport {
  std::uint64_t file_count = 0;
  std::uint64_t total_bytes = 0;
  std::uint64_t copied_file_count = 0;
  std::uint64_t copied_bytes = 0;
  std::uint64_t removed_file_count = 0;
  // Damaged records that were copied as they are, and damaged copies of superblock or keyring that
  // were not. The first ones; damage_count says how many.
  std::vector<Error> damage;
  std::uint64_t damage_count = 0;
};

// Nobody else may use the target meanwhile. Verifies what it copies: damage in a segment is
// reported and copied; damage in db/ is an error, since it might cost everything. Errors: those of
// check_backup_target(); unsupported: source not clean, target not empty; no_space; corrupt;
// stale: a file of the snapshot is gone; io; those of options.check_hold. All say what the target
// holds then.
Result<BackupReport> back_up(metadata::BackingDirectory& source, const BackupSource& what,
                             metadata::BackingDirectory& target, const BackupOptions& options,
                             const ProgressFunction& progress);

}  // namespace nacre::fs
