// SPDX-License-Identifier: Apache-2.0
// Finds Nacre mounts in the kernel's mount table. Nothing here touches a mounted filesystem, so a
// daemon that hangs cannot block the caller.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpu_engine/base/result.h"

namespace nacre::fs {

inline constexpr std::string_view nacre_mount_type = "fuse.nacre";

struct MountEntry {
  unsigned device_major = 0;
  unsigned device_minor = 0;
  std::string mountpoint;
  std::string type;
  std::string source;
  uid_t owner = 0;  // the user that mounted a FUSE filesystem
  bool read_only = false;
};

// Parses the text of /proc/PID/mountinfo (proc(5)). Lines that are not well-formed are left out.
std::vector<MountEntry> parse_mount_table(std::string_view text);
// Error: io if the table cannot be read.
Result<std::vector<MountEntry>> read_mount_table();
// The mounts that a process sees; process_folder is "/proc/PID".
Result<std::vector<MountEntry>> read_mount_table(const std::string& process_folder);

// Returns the topmost mount on path, taken as it is written or else with its links resolved. Error:
// not_found, with a message for the user, if nothing or another filesystem is mounted there.
Result<MountEntry> find_nacre_mount(const std::string& path);

// Returns the mount whose source in the table is that volume's folder (an absolute path with links
// resolved). Any user can make such a mount, so the result may be used in messages only.
std::optional<MountEntry> find_mount_with_source(const std::string& volume_directory);

// Makes path absolute, without ".", ".." and doubled slashes. It does not access any file.
std::string absolute_path(std::string_view path);

}  // namespace nacre::fs
