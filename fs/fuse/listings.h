// SPDX-License-Identifier: Apache-2.0
// Listings that the kernel keeps. Since no OPENDIR is sent, it keeps what the replies to READDIR
// bring, and looks at the directory's version only where somebody begins to list. A listing that
// was begun before a change and is completed after it counts as complete for those who began in
// between: they are given the rest of it, with names that are gone and without names that are new.
// So the end of a listing that a change overtook is answered when the kernel has dropped its pages.
//
// The kernel asks and takes an answer under the directory's lock, which each change of names takes,
// too: what is here counted as changed after the volume changed and before the change is answered
// is seen in the right order. Thread-safe.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "gpu_engine/base/mutex.h"
#include "metadata/format/rows.h"

namespace nacre::fs {

class Listings {
 public:
  // The directory's names changed, or its times, which the kernel compares as well.
  void changed(metadata::InodeNumber directory);
  // A process (0: unknown) is about to be given a piece of it, the first one of a listing or not.
  void give(metadata::InodeNumber directory, pid_t process, bool is_first);
  // It is about to be given the end. True: the kernel must drop what it keeps of it before.
  bool end(metadata::InodeNumber directory, pid_t process);
  // The kernel has forgotten the directory.
  void forget(metadata::InodeNumber directory) noexcept;

 private:
  static constexpr std::uint64_t none = UINT64_MAX;
  // Readers of one directory that are followed at a time. The end of a further reader's listing is
  // not recognised, so the kernel keeps no copy of it.
  static constexpr std::size_t listing_count_max = 8;
  struct Listing {
    pid_t process = 0;
    std::uint64_t version = none;  // when it began; none: there are several of this process
  };
  struct Directory {
    std::uint64_t version = 0;
    std::uint64_t oldest = none;  // version of a piece that may lie in an unfinished listing
    std::vector<Listing> listings;
  };

  Mutex mutex_;
  // Bounded by the directories that the kernel knows.
  std::unordered_map<std::uint64_t, Directory> directories_ NACRE_GUARDED_BY(mutex_);
};

}  // namespace nacre::fs
