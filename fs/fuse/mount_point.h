// SPDX-License-Identifier: Apache-2.0
// Checks before a mount is tried, each with an error that says what to do. Also takes a mount down.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "gpu_engine/base/result.h"

namespace nacre::fs {

// The places to look at; tests name other ones.
struct MountEnvironment {
  std::string device_path = "/dev/fuse";
  std::string configuration_path = "/etc/fuse.conf";
  std::string search_path;  // for fusermount3, like PATH
  uid_t user = 0;           // the user who mounts

  static MountEnvironment current();
};

// Returns the mount point's absolute path without symbolic links. Errors: not_found; not_directory;
// not_empty (unless allowed); permission; busy, if a dead mount lies there, or, unless covering it
// is allowed, a Nacre volume.
Result<std::string> check_mount_point(const std::string& path, bool may_hold_files,
                                      const MountEnvironment& environment);

// Frees a mount point on which a Nacre mount lies whose daemon is gone, if this user may. Returns
// true if there was such a mount.
bool take_dead_mount_away(const std::string& path, const MountEnvironment& environment);

// Checks that /dev/fuse is there and may be opened. For an ordinary user also checks that there is
// fusermount3 and, with allow_other, that fuse.conf has the line that permits it.
Result<> check_fuse(bool allow_other, const MountEnvironment& environment);

// The path of fusermount3.
std::optional<std::string> find_fusermount(const MountEnvironment& environment);

enum class UnmountMode : unsigned char {
  when_free,  // fails with busy while files are open
  detach,     // leaves the tree at once, and ends with its last user
};
Result<> unmount(const std::string& mount_point, UnmountMode mode,
                 const MountEnvironment& environment);

}  // namespace nacre::fs
