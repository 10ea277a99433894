// SPDX-License-Identifier: Apache-2.0
#include "tools/nacre/mount_users.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "gpu_engine/base/printable.h"
#include "tools/cli/own_files.h"

namespace nacre::tools {

namespace {

namespace files = std::filesystem;

constexpr std::size_t named_max = 5;

bool leads_into(const files::path& link, const std::string& mountpoint) {
  std::error_code error;
  const std::string target = files::read_symlink(link, error);
  return !error && lies_below(target, mountpoint);
}

bool maps_a_file_in(const files::path& process, const std::string& mountpoint) {
  std::ifstream maps(process / "maps");
  for (std::string line; std::getline(maps, line);) {
    const auto path = line.find('/');
    if (path != std::string::npos && lies_below(line.substr(path), mountpoint)) return true;
  }
  return false;
}

// What the process uses there; empty if nothing can be seen.
std::string use_of(const files::path& process, const std::string& mountpoint) {
  if (leads_into(process / "cwd", mountpoint)) return "has its current directory in it";
  if (leads_into(process / "root", mountpoint)) return "has its root directory in it";
  if (leads_into(process / "exe", mountpoint)) return "runs a program from it";
  std::error_code error;
  for (const auto& file : files::directory_iterator(process / "fd", error)) {
    if (leads_into(file.path(), mountpoint)) return "has a file open in it";
  }
  return maps_a_file_in(process, mountpoint) ? "maps a file of it" : "";
}

std::vector<std::string> mounts_within(const fs::MountEntry& mount) {
  std::vector<std::string> found;
  const auto table = fs::read_mount_table();
  if (!table) return found;
  for (const auto& other : *table) {
    if (other.mountpoint != mount.mountpoint && lies_below(other.mountpoint, mount.mountpoint)) {
      found.push_back(
          fmt::format("{} is mounted within it (unmount that first)", printable(other.mountpoint)));
    }
  }
  return found;
}

std::vector<std::string> processes_within(const fs::MountEntry& mount) {
  std::vector<std::string> found;
  std::error_code error;
  for (const auto& entry : files::directory_iterator("/proc", error)) {
    const std::string number = entry.path().filename();
    if (!std::all_of(number.begin(), number.end(), [](char c) { return c >= '0' && c <= '9'; })) {
      continue;
    }
    const std::string use = use_of(entry.path(), mount.mountpoint);
    if (use.empty()) continue;
    std::string name;
    std::ifstream file(entry.path() / "comm");
    std::getline(file, name);
    found.push_back(fmt::format("process {} ({}) {}", number, printable(name), use));
  }
  return found;
}

}  // namespace

std::string who_uses(const fs::MountEntry& mount) {
  auto users = mounts_within(mount);
  const auto processes = processes_within(mount);
  users.insert(users.end(), processes.begin(), processes.end());
  if (users.empty()) {
    return fmt::format(
        "files in it are open, or it is somebody's current directory ('fuser -vm {}', "
        "as root, names them)",
        mount.mountpoint);
  }
  std::string text;
  for (std::size_t i = 0; i < std::min(users.size(), named_max); ++i)
    text += fmt::format("{}{}", i == 0 ? "" : "; ", users[i]);
  if (users.size() > named_max) text += fmt::format("; and {} more", users.size() - named_max);
  return fmt::format("{} ('fuser -vm {}' shows what there is)", text, mount.mountpoint);
}

}  // namespace nacre::tools
