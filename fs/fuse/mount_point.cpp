// SPDX-License-Identifier: Apache-2.0
// Checks before mounting, and unmounting through umount2 or fusermount3.
#include "fs/fuse/mount_point.h"

#include <dirent.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "fs/control/control_client.h"
#include "fs/control/dead_mount.h"
#include "fs/control/mount_table.h"

extern char** environ;

namespace nacre::fs {

namespace {

tl::unexpected<Error> mount_point_error(const std::string& path, int error) {
  switch (error) {
    case ENOENT:
      return fail(ErrorCode::not_found,
                  fmt::format("the mount point {0} does not exist: make it with mkdir {0}", path));
    case ENOTDIR:
      return fail(ErrorCode::not_directory,
                  fmt::format("the mount point {} is not a directory", path));
    case ENOTCONN:
      return fail(ErrorCode::busy,
                  fmt::format("a dead mount lies on {0}, its daemon is gone: take it away with "
                              "fusermount3 -u {0} (as root: umount {0})",
                              path));
    case EACCES:
      return fail(ErrorCode::permission,
                  fmt::format("no permission to reach the mount point {}", path));
    default:
      return fail(ErrorCode::io,
                  fmt::format("the mount point {} cannot be used: {}", path, std::strerror(error)));
  }
}

// The name of an entry of the directory, or empty if it has none.
Result<std::string> first_entry(const std::string& path) {
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir(path.c_str()), closedir);
  if (!directory) return mount_point_error(path, errno);
  while (const dirent* entry = readdir(directory.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") return std::string(name);
  }
  return std::string();
}

// Checks for dead and living mounts. A second volume over a living one would hide it, whether its
// root is empty or not.
Result<> check_no_volume_lies_on(const std::string& path, bool may_be_covered) {
  const auto mount = find_nacre_mount(path);
  if (!mount) return {};
  if (is_dead_mount(path)) return mount_point_error(path, ENOTCONN);
  if (may_be_covered) return {};
  return fail(ErrorCode::busy,
              fmt::format("the mount point {0} is in use: the volume {1} is mounted there. Choose "
                          "another, or unmount that one with nacre umount {0}",
                          path, mount->source));
}

// Whether fuse.conf has the line that lets ordinary users pass allow_other.
bool allows_other_users(const std::string& configuration_path) {
  std::ifstream file(configuration_path);
  std::string line;
  while (std::getline(file, line)) {
    const std::size_t begin = line.find_first_not_of(" \t");
    if (begin == std::string::npos) continue;
    const std::size_t end = line.find_last_not_of(" \t\r");
    if (line.substr(begin, end - begin + 1) == "user_allow_other") return true;
  }
  return false;
}

Result<> run_fusermount(const std::string& program, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), program);
  std::vector<char*> raw;
  for (std::string& argument : arguments)
    raw.push_back(argument.data());
  raw.push_back(nullptr);
  pid_t child = 0;
  if (const int error =
          posix_spawn(&child, program.c_str(), nullptr, nullptr, raw.data(), environ)) {
    return fail(ErrorCode::io, fmt::format("cannot run {}: {}", program, std::strerror(error)));
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  return fail(ErrorCode::busy, fmt::format("{} could not unmount", program));
}

}  // namespace

MountEnvironment MountEnvironment::current() {
  MountEnvironment environment;
  const char* path = std::getenv("PATH");
  environment.search_path = fmt::format("{}:/usr/bin:/bin", path == nullptr ? "" : path);
  environment.user = geteuid();
  return environment;
}

Result<std::string> check_mount_point(const std::string& path, bool may_hold_files,
                                      const MountEnvironment& environment) {
  struct stat attributes = {};
  // This comes first, since no process can look into another user's mount.
  NACRE_TRY(check_no_volume_lies_on(path, may_hold_files));
  if (stat(path.c_str(), &attributes) != 0) return mount_point_error(path, errno);
  if (!S_ISDIR(attributes.st_mode)) return mount_point_error(path, ENOTDIR);
  if (!may_hold_files) {
    NACRE_ASSIGN(const std::string entry, first_entry(path));
    if (!entry.empty()) {
      return fail(ErrorCode::not_empty,
                  fmt::format("the mount point {} is not empty (it holds {}): choose an empty "
                              "directory, or pass -o nonempty to cover what is there",
                              path, entry));
    }
  }
  if (environment.user != 0 && access(path.c_str(), W_OK) != 0) {
    return fail(ErrorCode::permission,
                fmt::format("the mount point {} is not writable for you: ordinary users may only "
                            "mount on directories that they can write to",
                            path));
  }
  const std::unique_ptr<char, void (*)(void*)> resolved(realpath(path.c_str(), nullptr), std::free);
  if (!resolved) return mount_point_error(path, errno);
  return std::string(resolved.get());
}

bool take_dead_mount_away(const std::string& path, const MountEnvironment& environment) {
  bool any = false;
  for (;;) {
    const auto mount = find_nacre_mount(path);
    if (!mount || !is_dead_mount(path)) return any;
    remove_dead_socket(*mount);
    if (!unmount(mount->mountpoint, UnmountMode::detach, environment)) return any;
    any = true;
  }
}

Result<> check_fuse(bool allow_other, const MountEnvironment& environment) {
  const std::string& device = environment.device_path;
  const int fd = open(device.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0 && (errno == EACCES || errno == EPERM)) {
    return fail(ErrorCode::permission,
                fmt::format("no permission to open {}: ask for membership in its group", device));
  }
  if (fd < 0) {
    return fail(ErrorCode::unsupported,
                fmt::format("{} cannot be opened ({}): FUSE is missing here. Load it with modprobe "
                            "fuse; in a container, pass the device in (--device {})",
                            device, std::strerror(errno), device));
  }
  close(fd);
  if (environment.user == 0) return {};
  if (!find_fusermount(environment)) {
    return fail(ErrorCode::unsupported,
                "fusermount3 is missing, without which only root can mount: install the package "
                "fuse3");
  }
  if (allow_other && !allows_other_users(environment.configuration_path)) {
    return fail(ErrorCode::not_permitted,
                fmt::format("ordinary users may not pass allow_other here: ask root to add the "
                            "line user_allow_other to {}",
                            environment.configuration_path));
  }
  return {};
}

std::optional<std::string> find_fusermount(const MountEnvironment& environment) {
  std::istringstream stream(environment.search_path);
  std::string place;
  while (std::getline(stream, place, ':')) {
    std::string candidate = place + "/fusermount3";
    if (!place.empty() && access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return std::nullopt;
}

Result<> unmount(const std::string& mount_point, UnmountMode mode,
                 const MountEnvironment& environment) {
  if (environment.user == 0) {
    const int flags = UMOUNT_NOFOLLOW | (mode == UnmountMode::detach ? MNT_DETACH : 0);
    if (umount2(mount_point.c_str(), flags) == 0) return {};
    const int error = errno;
    return fail(error == EBUSY ? ErrorCode::busy : ErrorCode::io,
                fmt::format("cannot unmount {}: {}", mount_point, std::strerror(error)));
  }
  const std::optional<std::string> program = find_fusermount(environment);
  if (!program) return fail(ErrorCode::unsupported, "fusermount3 is missing");
  std::vector<std::string> arguments = {"-u", "-q"};
  if (mode == UnmountMode::detach) arguments.emplace_back("-z");
  arguments.insert(arguments.end(), {"--", mount_point});
  return run_fusermount(*program, std::move(arguments));
}

}  // namespace nacre::fs
