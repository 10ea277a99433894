// SPDX-License-Identifier: Apache-2.0
// The inodes that the kernel has forgotten while the volume was locked. The volume is told when it
// is unlocked. Bounded by the inodes that the kernel knows. Thread-safe.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "fs/fuse/request_gate.h"
#include "gpu_engine/base/mutex.h"

namespace nacre::fs {

class KeptForgets {
 public:
  // Notes that this many lookups of the inode are taken back. Returns false if the gate is open by
  // now, so that the volume must be told.
  bool note(const RequestGate& gate, std::uint64_t inode, std::uint64_t lookups);
  // Calls forget(inode, lookups) for all that were noted, and opens the gate. No forgetting comes
  // in between.
  template <typename Forget>
  void open(RequestGate& gate, Forget forget) {
    const LockGuard lock(mutex_);
    for (const auto& [inode, lookups] : lookups_)
      forget(inode, lookups);
    lookups_.clear();
    gate.open();
  }

 private:
  Mutex mutex_;
  std::unordered_map<std::uint64_t, std::uint64_t> lookups_ NACRE_GUARDED_BY(mutex_);
};

}  // namespace nacre::fs
