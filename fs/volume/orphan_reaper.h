// SPDX-License-Identifier: Apache-2.0
// Erases inodes whose last name, lookup and reference are gone: small ones in the thread that let
// go of them, large ones piece by piece in a thread of its own, so that nobody waits for the
// removal of a large file and no transaction group grows without bound.
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
  // erase removes up to row_count_max rows of an inode; true when nothing is left of it (or it
  // cannot go on; it says why itself). It takes the operation lock.
  using Erase = std::function<bool(InodeRef& inode, std::size_t row_count_max)>;
  explicit OrphanReaper(Erase erase) : erase_(std::move(erase)) {}
  ~OrphanReaper();

  void start();
  // Ends the thread after the piece in hand; what large ones still had to lose, the next mount
  // erases. Small ones can go on being erased.
  void stop();

  // May be called with any lock held; nothing is erased yet, but by whoever calls erase_small()
  // next: every forget(), removal and commit does.
  void add(InodeRef inode);
  // Erases what waits: a piece of each here, the rest in the thread. Under no lock at all.
  void erase_small();
  // Is there anything left to erase, or being erased?
  bool is_busy();

 private:
  static constexpr std::size_t piece_row_count = 256;
  void run();

  const Erase erase_;
  Mutex mutex_;
  ConditionVariable wake_;
  std::deque<InodeRef> waiting_ NACRE_GUARDED_BY(mutex_);  // nothing done yet
  std::deque<InodeRef> large_ NACRE_GUARDED_BY(mutex_);
  std::size_t in_hand_count_ NACRE_GUARDED_BY(mutex_) = 0;
  bool stopping_ NACRE_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace nacre::fs
