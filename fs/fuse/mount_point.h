// SPDX-License-Identifier: Apache-2.0
// What must be true before a mount is tried, each with an error that says what to do; and taking a
// mount down again.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "gpu_engine/base/result.h"

namespace nacre::fs {

// Where to look; tests look elsewhere.
struct MountEnvironment {
  std::string device_path = "/dev/fuse";
  std::string configuration_path = "/etc/fuse.conf";
  std::string search_path;  // of fusermount3, as PATH
  uid_t user = 0;           // who mounts

  static MountEnvironment current();
};

// The mount point's absolute path without symbolic links. not_found, not_directory, not_empty
// (unless allowed), permission, busy (a dead mount lies there, or, unless covering it is allowed, a
// Nacre volume).
Result<std::string> check_mount_point(const std::string& path, bool may_hold_files,
                                      const MountEnvironment& environment);

// Frees a mount point on which a Nacre mount lies whose daemon is gone, where this user may. True:
// there was one.
bool take_dead_mount_away(const std::string& path, const MountEnvironment& environment);

// /dev/fuse is there and may be opened; for an ordinary user also fusermount3, and with allow_other
// the line in fuse.conf that permits it.
Result<> check_fuse(bool allow_other, const MountEnvironment& environment);

// Where fusermount3 is.
std::optional<std::string> find_fusermount(const MountEnvironment& environment);

enum class UnmountMode : unsigned char {
  when_free,  // busy while files are open
  detach,     // out of the tree at once; ends when the last user leaves
};
Result<> unmount(const std::string& mount_point, UnmountMode mode,
                 const MountEnvironment& environment);

}  // namespace nacre::fs
