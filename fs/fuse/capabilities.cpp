// SPDX-License-Identifier: Apache-2.0
// Reads the line CapEff of /proc/PID/status.
#include "fs/fuse/capabilities.h"

#include <cstdint>
#include <fstream>
#include <string>

namespace nacre::fs {

bool has_capability(pid_t process, unsigned capability) {
  if (process <= 0) return false;
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  std::string line;
  constexpr std::string_view label = "CapEff:";
  while (std::getline(status, line)) {
    if (!line.starts_with(label)) continue;
    const std::uint64_t effective = std::strtoull(line.c_str() + label.size(), nullptr, 16);
    return (effective >> capability & 1) != 0;
  }
  return false;
}

}  // namespace nacre::fs
