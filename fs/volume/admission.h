// SPDX-License-Identifier: Apache-2.0
// Decides whether the volume takes a change, and what is given up for it on a full disk: dead
// bytes, which a commit or compaction frees, and the files that backups keep.
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
  // The parts that it asks and wakes. Each outlives it.
  struct Parts {
    metadata::BackingDirectory& directory;
    metadata::Database& database;
    SegmentStore& store;
    Ballast& ballast;
    Committer& committer;
    Compactor& compactor;
    BackupHolds& backups;
    // Whether deleted files are being erased. The bytes that this frees are not known to be dead
    // yet.
    std::function<bool()> is_erasing;
  };
  Admission(Parts parts, const VolumeRules& rules) : parts_(std::move(parts)), rules_(rules) {}

  // Every change begins with one of these. Both fail with read_only if the volume takes no changes.
  // check_may_grow() is for changes that add rows, and may also fail with no_space.
  Result<> check_writable() const;
  Result<> check_may_grow();
  // Returns what admit returns. If that is an error, and dead bytes or backups can be given up for
  // the change, waits for their space and asks again. missing_bytes: fewer freed bytes do not help.
  Result<> admit_after_freeing(const std::function<Result<>()>& admit,
                               std::uint64_t missing_bytes = 0);
  // Called when the disk is full. Gives up what only backups keep, if it has at least bytes_min.
  // Returns true if it was given up; a commit that frees it is then under way.
  bool give_up_backups(std::uint64_t bytes_min);

 private:
  // If at least bytes_min are deleted or overwritten and not free yet, changes that need room wait
  // for it from now on. After a wait in vain, the next one begins only some time later.
  void expect_room(std::uint64_t bytes_min);

  const Parts parts_;
  const VolumeRules rules_;
  // Refused changes wait for room until freeing_until_. Before next_freeing_ no such wait begins.
  std::atomic<std::chrono::steady_clock::time_point> freeing_until_{};
  std::atomic<std::chrono::steady_clock::time_point> next_freeing_{};
};

}  // namespace nacre::fs
