// SPDX-License-Identifier: Apache-2.0
// The backups of a volume that are under way, and what each keeps in place. On a full disk they
// give way: what nobody but a backup needs must not keep writers from going on.
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
  // freed: something is no longer kept; called under no lock of this class.
  explicit BackupHolds(std::function<void()> freed) : freed_(std::move(freed)) {}

  // One more is under way, until leave() or the end of what add() gave. busy past backup_count_max.
  Result<> enter() NACRE_EXCLUDES(mutex_);
  void leave() NACRE_EXCLUDES(mutex_);
  std::shared_ptr<const BackupHold> add(std::shared_ptr<const void> kept) NACRE_EXCLUDES(mutex_);
  unsigned count() const NACRE_EXCLUDES(mutex_);

  // Lets go of what all of them keep; their holds say so from then on. False when none kept
  // anything.
  bool give_up() NACRE_EXCLUDES(mutex_);

 private:
  class Hold;

  const std::function<void()> freed_;
  mutable Mutex mutex_;
  unsigned count_ NACRE_GUARDED_BY(mutex_) = 0;
  std::set<Hold*> keeping_ NACRE_GUARDED_BY(mutex_);
};

}  // namespace nacre::fs
