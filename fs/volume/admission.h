// SPDX-License-Identifier: Apache-2.0
// Whether the volume takes a change, and what is given up for it on a full disk: dead bytes that a
// commit or compaction frees, and backups.
//
// Thread-safe. Nothing here is called under a lock, except check_writable().
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>

#include "fs/space/compactor.h"
#include "fs/store/backup_holds.h"
#include "fs/store/ballast.h"
#include "fs/store/committer.h"
#include "fs/volume/volume_rules.h"

namespace nacre::fs {

class Admission {
 public:
  // What it asks and wakes; each outlives it.
  struct Parts {
    metadata::BackingDirectory& directory;
    metadata::Database& database;
    SegmentStore& store;
    Ballast& ballast;
    Committer& committer;
    Compactor& compactor;
    BackupHolds& backups;
    // Deleted files are being erased: what that frees is not known to be dead yet.
    std::function<bool()> is_erasing;
  };
  Admission(Parts parts, const VolumeRules& rules) : parts_(std::move(parts)), rules_(rules) {}

  // Every change begins with one of these: read_only for a volume that takes none; the second, of
  // changes that add rows, also no_space.
  Result<> check_writable() const;
  Result<> check_may_grow();
  // What admit says; where that is an error and dead bytes or backups can be given up for it, after
  // a wait for their space. missing_bytes: less than that does not help.
  Result<> admit_after_freeing(const std::function<Result<>()>& admit,
                               std::uint64_t missing_bytes = 0);
  // The disk is full: what only backups keep goes, if it is that much. True when it went: a commit
  // that frees it is under way.
  bool give_up_backups(std::uint64_t bytes_min);

 private:
  // Where so much is deleted or overwritten and not free yet, those who ask for room wait for it
  // from now on. Where such a wait was in vain, it is a while until the next one.
  void expect_room(std::uint64_t bytes_min);

  const Parts parts_;
  const VolumeRules rules_;
  // A change that is refused waits for room until the first. No wait begins before the second.
  std::atomic<std::chrono::steady_clock::time_point> freeing_until_{};
  std::atomic<std::chrono::steady_clock::time_point> next_freeing_{};
};

}  // namespace nacre::fs
