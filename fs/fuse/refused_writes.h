// SPDX-License-Identifier: Apache-2.0
// Files of which the volume had no room for pages that the kernel had taken from programs long
// before. Who syncs or closes such a file is told; who does neither would write for ever, and the
// kernel would drop page after page. So after a refusal the kernel is made to ask for the file's
// attributes, which write(2) does before it takes more, and that question is answered with the
// error: once for each refusal. stat(2) asks otherwise, naming no open file.
//
// Thread-safe. Past a bound files are not noted: fsync and close tell of them all the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <unordered_set>

#include "metadata/format/rows.h"

namespace nacre::fs {

class RefusedWrites {
 public:
  static constexpr std::size_t count_max = 4096;

  // Before the kernel is made to ask: whoever looked at the file since has had its attributes
  // again. False: there are too many.
  bool note(metadata::InodeNumber inode) {
    const std::lock_guard lock(mutex_);
    if (inodes_.size() < count_max) inodes_.insert(inode.value);
    return inodes_.count(inode.value) > 0;
  }
  // True once after note().
  bool take(metadata::InodeNumber inode) {
    const std::lock_guard lock(mutex_);
    return inodes_.erase(inode.value) > 0;
  }

 private:
  std::mutex mutex_;
  std::unordered_set<std::uint64_t> inodes_;
};

}  // namespace nacre::fs
