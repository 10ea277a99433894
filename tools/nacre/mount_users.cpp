// SPDX-License-Identifier: Apache-2.0
#include "tools/nacre/mount_users.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <set>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "gpu_engine/base/printable.h"
#include "tools/cli/own_files.h"
#include "tools/nacre/process_uses.h"

namespace nacre::tools {

namespace {

namespace files = std::filesystem;

constexpr std::size_t named_max = 10;
// Another file system that does not answer may keep the search waiting.
constexpr std::chrono::seconds search_limit{10};

struct Users {
  std::vector<std::string> mounts, processes;
  // Where the volume is mounted, in all namespaces. Of this one it is only the mount itself.
  std::set<std::string> places;
};

bool is_of(const fs::MountEntry& entry, const fs::MountEntry& mount) {
  return entry.device_major == mount.device_major && entry.device_minor == mount.device_minor;
}

void find_mounts(const std::vector<fs::MountEntry>& table, const fs::MountEntry& mount,
                 const std::string& where, Users& users) {
  for (const auto& other : table) {
    if (other.mountpoint == mount.mountpoint || !lies_below(other.mountpoint, mount.mountpoint)) {
      continue;
    }
    users.mounts.push_back(fmt::format("{} is mounted within it{} (unmount that first)",
                                       printable(other.mountpoint), where));
  }
}

// In the mount namespace of a process.
void find_elsewhere(const files::path& folder, const std::string& process,
                    const fs::MountEntry& mount, Users& users) {
  const auto table = fs::read_mount_table(folder.string());
  if (!table) return;
  for (const auto& entry : *table) {
    if (!is_of(entry, mount)) continue;
    users.places.insert(entry.mountpoint);
    find_mounts(*table, entry, fmt::format(", for {}", process), users);
  }
}

void find_processes(const fs::MountEntry& mount, Users& users) {
  const MountedDevice device(mount.device_major, mount.device_minor);
  std::error_code error;
  const auto own = files::read_symlink("/proc/self/ns/mnt", error);
  std::set<std::string> seen;
  for (const auto& entry : files::directory_iterator("/proc", error)) {
    const std::string number = entry.path().filename();
    if (!std::all_of(number.begin(), number.end(), [](char c) { return c >= '0' && c <= '9'; })) {
      continue;
    }
    std::error_code unseen;
    const auto other = files::read_symlink(entry.path() / "ns/mnt", unseen);
    const bool is_elsewhere = !unseen && other != own;
    const std::string name = name_of_process(entry.path());
    if (is_elsewhere && seen.insert(other).second) {
      find_elsewhere(entry.path(), name, mount, users);
    }
    for (const std::string& use : device.uses_of(entry.path())) {
      users.processes.push_back(
          fmt::format("{} {}{}", name, use, is_elsewhere ? " (in another mount namespace)" : ""));
    }
  }
}

void find_loop_devices(Users& users) {
  std::error_code error;
  for (const auto& entry : files::directory_iterator("/sys/block", error)) {
    std::ifstream file(entry.path() / "loop/backing_file");
    std::string path;
    if (!std::getline(file, path)) continue;
    for (const auto& place : users.places) {
      if (!lies_below(path, place)) continue;
      const std::string device = fmt::format("/dev/{}", entry.path().filename().string());
      users.processes.push_back(fmt::format("the loop device {0} is made of {1} (losetup -d {0})",
                                            device, printable(path)));
      break;
    }
  }
}

std::vector<std::string> find_users(const fs::MountEntry& mount) {
  Users users;
  users.places.insert(mount.mountpoint);
  if (const auto table = fs::read_mount_table()) find_mounts(*table, mount, "", users);
  find_processes(mount, users);
  find_loop_devices(users);
  users.mounts.insert(users.mounts.end(), users.processes.begin(), users.processes.end());
  return std::move(users.mounts);
}

}  // namespace

std::string who_uses(const fs::MountEntry& mount) {
  std::packaged_task<std::vector<std::string>()> task([mount] { return find_users(mount); });
  auto answer = task.get_future();
  std::thread(std::move(task)).detach();
  std::vector<std::string> users;
  if (answer.wait_for(search_limit) == std::future_status::ready) users = answer.get();
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
