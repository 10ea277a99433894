// SPDX-License-Identifier: Apache-2.0
// Erases inodes whose last name, lookup and reference are gone. Small ones are erased in the thread
// that let go of them. Large ones are erased piece by piece in a separate thread, so that no caller
// waits for the removal of a large file and no transaction group grows without bound.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <thread>

#include "fs/volume/inode_table.h"
#include "gpu_engine/base/mutex.h"

namespace nacre::fs {

class OrphanReaper {
 public:
  // erase removes up to row_count_max rows of an inode. It returns true if nothing is left of the
  // inode, or if it cannot go on, which it reports itself. It takes the operation lock.
  using Erase = std::function<bool(InodeRef& inode, std::size_t row_count_max)>;
  explicit OrphanReaper(Erase erase) : erase_(std::move(erase)) {}
  ~OrphanReaper();

  void start();
  // Ends the thread after the current piece. The next mount erases what is left of large inodes.
  // Small ones can still be erased.
  void stop();

  // Adds an inode, which the next call of erase_small() begins to erase. Every forget(), removal
  // and commit makes such a call. May be called with any lock held.
  void add(InodeRef inode);
  // Erases the inodes that wait: one piece of each on this thread, the rest in the other thread.
  // Called under no lock at all.
  void erase_small();
  // Whether anything is left to erase, or is being erased.
  bool is_busy();

 private:
  static constexpr std::size_t piece_row_count = 256;
  void run();

  const Erase erase_;
  Mutex mutex_;
  ConditionVariable wake_;
  // Not begun yet.
  std::deque<InodeRef> waiting_ NACRE_GUARDED_BY(mutex_);
  std::deque<InodeRef> large_ NACRE_GUARDED_BY(mutex_);
  std::size_t in_hand_count_ NACRE_GUARDED_BY(mutex_) = 0;
  bool stopping_ NACRE_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace nacre::fs
