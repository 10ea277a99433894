// SPDX-License-Identifier: Apache-2.0
// Directory listings that the kernel keeps. Since no OPENDIR is sent, it keeps the content of the
// replies to READDIR, and compares the directory's version only when a process begins to list. A
// listing that was begun before a change and is completed after it counts as complete for processes
// that began in between: they get the rest of it, with names that are gone and without names that
// are new. So if a change overtook a listing, its end is answered only when the kernel has dropped
// its pages.
//
// The kernel asks and takes an answer under the directory's lock, which each change of names takes,
// too. So the order is right if a change is counted here after the volume changed and before the
// change is answered. Thread-safe.
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
  // Notes that the directory's names changed, or its times, which the kernel compares as well.
  void changed(metadata::InodeNumber directory);
  // Notes that a process (0: unknown) is about to get a piece of the directory. is_first says
  // whether it is the first piece of a listing.
  void give(metadata::InodeNumber directory, pid_t process, bool is_first);
  // Notes that the process is about to get the end. Returns true if the kernel must first drop what
  // it keeps of the directory.
  bool end(metadata::InodeNumber directory, pid_t process);
  // Notes that the kernel has forgotten the directory.
  void forget(metadata::InodeNumber directory) noexcept;

 private:
  static constexpr std::uint64_t none = UINT64_MAX;
  // The number of readers of one directory that are followed at a time. The end of another reader's
  // listing is not recognised, so the kernel keeps no copy of it.
  static constexpr std::size_t listing_count_max = 8;
  struct Listing {
    pid_t process = 0;
    // The directory's version when the listing began. none: this process has several listings.
    std::uint64_t version = none;
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
