// SPDX-License-Identifier: Apache-2.0
// A backup: makes a target folder a complete volume that holds what a snapshot of the source names,
// and copies only what is not there yet. Sealed bytes are moved as they are; no key is needed.
//
// At every moment the target holds either the old state or the new one. New files arrive under
// names that the old state does not use, one rename in db/ makes them count, and files that are no
// longer needed are removed last. An interrupted run goes on when it is repeated. An empty folder
// becomes a volume with the last step. docs/FORMAT.md, "Backup".
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
  // Whether the one log of the snapshot holds no rows. If it holds some, the files make a new
  // backup but cannot replace an earlier one in one step.
  bool is_clean = true;
};

struct BackupOptions {
  std::uint64_t rate_bytes_per_second = 0;  // 0: as fast as the disks go
  // Asks whether the source still keeps the files that are being copied. Its error ends the run. It
  // is called repeatedly, and with patience when a file turns out to be gone. Without it the caller
  // promises that no file is removed.
  std::function<Result<>(std::chrono::milliseconds patience)> check_hold = nullptr;
};

struct BackupReport {
  std::uint64_t file_count = 0;
  std::uint64_t total_bytes = 0;
  std::uint64_t copied_file_count = 0;
  std::uint64_t copied_bytes = 0;
  std::uint64_t removed_file_count = 0;
  // The first damaged places: records that were copied as they are, and copies of the superblock or
  // the keyring that were not copied. damage_count counts all of them.
  std::vector<Error> damage;
  std::uint64_t damage_count = 0;
};

// No other program may use the target meanwhile. Verifies what it copies. Damage in a segment is
// reported and copied. Damage in db/ is an error, because it could cost the whole backup. Errors:
// those of check_backup_target(); unsupported if the source is not clean and the target not empty;
// no_space; corrupt; stale if a file of the snapshot is gone; io; those of options.check_hold. Each
// message says which state the target holds afterwards.
Result<BackupReport> back_up(metadata::BackingDirectory& source, const BackupSource& what,
                             metadata::BackingDirectory& target, const BackupOptions& options,
                             const ProgressFunction& progress);

}  // namespace nacre::fs
