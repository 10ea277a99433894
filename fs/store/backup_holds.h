// SPDX-License-Identifier: Apache-2.0
// The backups of a volume that are under way, and the files that each of them keeps in place. On a
// full disk these files are given up: a file that only a backup still needs must not stop writers.
#pragma once

#include <functional>
#include <memory>
#include <set>

#include "fs/store/backup_snapshot.h"
#include "gpu_engine/base/mutex.h"
#include "gpu_engine/base/result.h"

namespace nacre::fs {

// Thread-safe. Outlives the holds that it hands out.
class BackupHolds {
 public:
  // freed is called, without a lock of this class, after files are no longer kept.
  explicit BackupHolds(std::function<void()> freed) : freed_(std::move(freed)) {}

  // Counts one more backup as under way, until leave() or until the hold that add() returned is
  // destroyed. Error: busy if backup_count_max of them are under way.
  Result<> enter() NACRE_EXCLUDES(mutex_);
  void leave() NACRE_EXCLUDES(mutex_);
  std::shared_ptr<const BackupHold> add(std::shared_ptr<const void> kept) NACRE_EXCLUDES(mutex_);
  unsigned count() const NACRE_EXCLUDES(mutex_);

  // Lets go of the files that all backups keep; is_given_up() of their holds is true from then on.
  // Returns false if no backup kept anything.
  bool give_up() NACRE_EXCLUDES(mutex_);

 private:
  class Hold;

  const std::function<void()> freed_;
  mutable Mutex mutex_;
  unsigned count_ NACRE_GUARDED_BY(mutex_) = 0;
  std::set<Hold*> keeping_ NACRE_GUARDED_BY(mutex_);
};

}  // namespace nacre::fs
