// SPDX-License-Identifier: Apache-2.0
#include "fs/control/socket_path.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "fs/control/mount_table.h"

namespace nacre::fs {

namespace {

constexpr std::string_view volume_prefix = "control.";
constexpr std::string_view socket_suffix = ".sock";

Error system_error(const std::string& path, int error) {
  const auto code = error == EACCES   ? ErrorCode::permission
                    : error == EROFS  ? ErrorCode::read_only
                    : error == ENOSPC ? ErrorCode::no_space
                    : error == ENOENT ? ErrorCode::not_found
                                      : ErrorCode::io;
  return {code, fmt::format("{}: {}", path, strerror(error))};
}

// The runtime folder that the environment names. Empty if it names none, or not by an absolute
// path.
std::string runtime_folder_of_environment() {
  const char* folder = ::secure_getenv("XDG_RUNTIME_DIR");
  return folder != nullptr && folder[0] == '/' ? folder : "";
}

bool belongs_to(const std::string& path, uid_t owner) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == owner;
}

bool lies_below(const std::string& path, const std::string& mountpoint) {
  return !mountpoint.empty() && (absolute_path(path) + "/").starts_with(mountpoint + "/");
}

std::string fallback_folder(uid_t owner) {
  return fmt::format("/tmp/nacre-{}", owner);
}

}  // namespace

Result<SocketFolder> SocketFolder::open(const std::string& path, uid_t owner, bool make) {
  if (make && ::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    return tl::unexpected(system_error(path, errno));
  }
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (descriptor < 0) {
    if (errno == ELOOP || errno == ENOTDIR) {
      return fail(ErrorCode::not_permitted,
                  fmt::format("{} is not a directory: another user may have put it there", path));
    }
    return tl::unexpected(system_error(path, errno));
  }
  SocketFolder folder(descriptor, path);
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) return tl::unexpected(system_error(path, errno));
  if (status.st_uid != owner || (status.st_mode & 077) != 0) {
    return fail(ErrorCode::not_permitted,
                fmt::format("{} must belong to user {} and be closed to others (mode 0700); it "
                            "belongs to user {} and has mode {:04o}",
                            path, owner, status.st_uid, status.st_mode & 07777));
  }
  return folder;
}

Result<SocketFolder> SocketFolder::make_own(const std::string& mountpoint) {
  const uid_t owner = ::geteuid();
  if (owner == 0) {
    auto folder = open("/run/nacre", owner, true);
    return folder ? std::move(folder) : make_fallback(mountpoint);
  }
  const std::string runtime = runtime_folder_of_environment();
  if (!runtime.empty() && !lies_below(runtime, mountpoint) && belongs_to(runtime, owner)) {
    return open(runtime + "/nacre", owner, true);
  }
  return make_fallback(mountpoint);
}

Result<SocketFolder> SocketFolder::make_fallback(const std::string& mountpoint) {
  const uid_t owner = ::geteuid();
  if (lies_below(fallback_folder(owner), mountpoint)) {
    return fail(ErrorCode::unsupported, "the mount lies over /tmp");
  }
  NACRE_ASSIGN(const auto parent, open(fallback_folder(owner), owner, true));
  return open(parent.path() + "/nacre", owner, true);
}

Result<SocketFolder> SocketFolder::of_volume(const std::string& volume_directory) {
  const int descriptor = ::open(volume_directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return tl::unexpected(system_error(volume_directory, errno));
  SocketFolder folder(descriptor, volume_directory);
  folder.is_volume_ = true;
  return folder;
}

std::vector<SocketFolder> SocketFolder::find(uid_t owner, const std::string& source) {
  std::vector<std::string> parents;
  if (owner == 0) {
    parents.emplace_back("/run");
  } else {
    const std::string runtime = runtime_folder_of_environment();
    const std::string usual = fmt::format("/run/user/{}", owner);
    if (!runtime.empty() && belongs_to(runtime, owner)) parents.push_back(runtime);
    if (runtime != usual && belongs_to(usual, owner)) parents.push_back(usual);
  }
  if (open(fallback_folder(owner), owner, false)) parents.push_back(fallback_folder(owner));
  std::vector<SocketFolder> folders;
  for (const auto& parent : parents) {
    if (auto folder = open(parent + "/nacre", owner, false)) folders.push_back(std::move(*folder));
  }
  if (source.starts_with('/')) {
    if (auto folder = of_volume(source)) folders.push_back(std::move(*folder));
  }
  return folders;
}

SocketFolder::SocketFolder(SocketFolder&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      path_(std::move(other.path_)),
      is_volume_(other.is_volume_) {}

SocketFolder& SocketFolder::operator=(SocketFolder&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(path_, other.path_);
  std::swap(is_volume_, other.is_volume_);
  return *this;
}

SocketFolder::~SocketFolder() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

std::string SocketFolder::address_of(const std::string& name) const {
  return fmt::format("/proc/self/fd/{}/{}", descriptor_, name);
}

std::string SocketFolder::name_of(unsigned device_major, unsigned device_minor) const {
  return fmt::format("{}{}-{}{}", is_volume_ ? volume_prefix : "", device_major, device_minor,
                     socket_suffix);
}

void SocketFolder::remove_stale_sockets() const {
  const int descriptor = ::openat(descriptor_, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::fdopendir(descriptor), ::closedir);
  if (!stream) {
    ::close(descriptor);
    return;
  }
  while (const dirent* entry = ::readdir(stream.get())) {
    const std::string_view name = entry->d_name;
    if (!name.starts_with(volume_prefix) || !name.ends_with(socket_suffix)) continue;
    struct stat status {};
    if (::fstatat(descriptor_, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISSOCK(status.st_mode)) {
      ::unlinkat(descriptor_, entry->d_name, 0);
    }
  }
}

}  // namespace nacre::fs
