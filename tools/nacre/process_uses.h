// SPDX-License-Identifier: Apache-2.0
// What a process uses of a mounted file system, by the file system's device number. So it is found
// from any mount namespace, under any path, and if the file has no name any more. The kernel
// answers from what it has in memory; no file system is asked.
#pragma once

#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

namespace nacre::tools {

// For a message: "process 7 (bash)". folder is its folder in /proc.
std::string name_of_process(const std::filesystem::path& folder);

class MountedDevice {
 public:
  // Also asks for the Unix sockets that are bound to names on the device.
  MountedDevice(unsigned device_major, unsigned device_minor);

  // "has its current directory in it", "has a file open in it", …, also of single threads. Empty if
  // there is nothing, or nothing that this user may see.
  std::vector<std::string> uses_of(const std::filesystem::path& folder) const;

 private:
  bool holds(const std::filesystem::path& link) const;
  bool is_bound_here(const std::filesystem::path& link) const;
  bool is_mapped(const std::filesystem::path& folder) const;
  void add_files(const std::filesystem::path& thread, const std::string& who,
                 std::vector<std::string>& uses) const;

  unsigned major_;
  unsigned minor_;
  std::set<std::string> sockets_;  // as links to them read: socket:[4711]
};

}  // namespace nacre::tools
