// SPDX-License-Identifier: Apache-2.0
// See socket_path.h.
#include "fs/control/socket_path.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace nacre::fs {

namespace {

Error system_error(const std::string& path, int error) {
  const auto code = error == EACCES   ? ErrorCode::permission
                    : error == EROFS  ? ErrorCode::read_only
                    : error == ENOSPC ? ErrorCode::no_space
                    : error == ENOENT ? ErrorCode::not_found
                                      : ErrorCode::io;
  return {code, fmt::format("{}: {}", path, strerror(error))};
}

// A runtime folder as the environment names it; empty when it does not, or not with a full path.
std::string runtime_folder_of_environment() {
  const char* folder = ::secure_getenv("XDG_RUNTIME_DIR");
  return folder != nullptr && folder[0] == '/' ? folder : "";
}

bool belongs_to(const std::string& path, uid_t owner) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == owner;
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
                  fmt::format("{} is not a directory: somebody else put it there", path));
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

Result<SocketFolder> SocketFolder::make_own() {
  const uid_t owner = ::geteuid();
  if (owner == 0) return open("/run/nacre", owner, true);
  const std::string runtime = runtime_folder_of_environment();
  if (!runtime.empty() && belongs_to(runtime, owner)) return open(runtime + "/nacre", owner, true);
  NACRE_ASSIGN(const auto parent, open(fallback_folder(owner), owner, true));
  return open(parent.path() + "/nacre", owner, true);
}

std::vector<SocketFolder> SocketFolder::find(uid_t owner) {
  std::vector<std::string> parents;
  if (owner == 0) {
    parents.emplace_back("/run");
  } else {
    const std::string runtime = runtime_folder_of_environment();
    const std::string usual = fmt::format("/run/user/{}", owner);
    if (!runtime.empty() && belongs_to(runtime, owner)) parents.push_back(runtime);
    if (runtime != usual && belongs_to(usual, owner)) parents.push_back(usual);
    if (open(fallback_folder(owner), owner, false)) parents.push_back(fallback_folder(owner));
  }
  std::vector<SocketFolder> folders;
  for (const auto& parent : parents) {
    if (auto folder = open(parent + "/nacre", owner, false)) folders.push_back(std::move(*folder));
  }
  return folders;
}

SocketFolder::SocketFolder(SocketFolder&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), path_(std::move(other.path_)) {}

SocketFolder& SocketFolder::operator=(SocketFolder&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(path_, other.path_);
  return *this;
}

SocketFolder::~SocketFolder() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

std::string SocketFolder::address_of(const std::string& name) const {
  return fmt::format("/proc/self/fd/{}/{}", descriptor_, name);
}

std::string socket_name(unsigned device_major, unsigned device_minor) {
  return fmt::format("{}-{}.sock", device_major, device_minor);
}

}  // namespace nacre::fs
