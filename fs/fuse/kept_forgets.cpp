// SPDX-License-Identifier: Apache-2.0
#include "fs/fuse/kept_forgets.h"

namespace nacre::fs {

bool KeptForgets::note(const RequestGate& gate, std::uint64_t inode, std::uint64_t lookups) {
  const LockGuard lock(mutex_);
  if (gate.state() == RequestGate::State::open) return false;
  lookups_[inode] += lookups;
  return true;
}

}  // namespace nacre::fs
