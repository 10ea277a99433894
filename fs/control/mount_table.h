// SPDX-License-Identifier: Apache-2.0
// Which Nacre volumes are mounted where, from the kernel's mount table alone: nothing here touches
// the mounted filesystem, so a daemon that hangs cannot hang whoever asks.
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
  uid_t owner = 0;  // of a FUSE mount: who mounted it
  bool read_only = false;
};

// Parses the text of /proc/PID/mountinfo (proc(5)). Lines that are not well-formed are left out.
std::vector<MountEntry> parse_mount_table(std::string_view text);
// io when the table cannot be read.
Result<std::vector<MountEntry>> read_mount_table();

// The topmost mount whose mount point is path: as it is written, else with its links resolved.
// not_found, with words for the user, when nothing or something else than Nacre is mounted there.
Result<MountEntry> find_nacre_mount(const std::string& path);

// Where the volume in that folder (absolute, links resolved) is mounted, by what the table says of
// sources: anybody may have mounted that, so it is for words alone.
std::optional<MountEntry> find_mount_with_source(const std::string& volume_directory);

// path made absolute, without ".", "..", and doubled slashes. Looks at no file.
std::string absolute_path(std::string_view path);

}  // namespace nacre::fs
