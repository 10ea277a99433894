// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/new_volume_place.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>

#include "fs/control/mount_table.h"
#include "metadata/volume_files.h"
#include "tools/cli/volume_access.h"

namespace nacre::tools {

namespace {

Result<> check_parent(const std::string& path) {
  std::filesystem::path whole(path);
  if (!whole.has_filename()) whole = whole.parent_path();
  const std::string parent = whole.has_parent_path() ? whole.parent_path().string() : ".";
  if (::access(parent.c_str(), W_OK | X_OK) == 0) return {};
  const auto code = errno == EACCES || errno == EPERM ? ErrorCode::permission
                    : errno == EROFS                  ? ErrorCode::read_only
                    : errno == ENOENT                 ? ErrorCode::not_found
                                                      : ErrorCode::io;
  return fail(code,
              fmt::format("cannot make the directory {}: {}: {}", path, parent, strerror(errno)));
}

// Files that are not a volume's own have no place in its directory.
Result<> check_not_in_volume(const std::string& path) {
  std::error_code error;
  auto at = std::filesystem::weakly_canonical(std::filesystem::absolute(path, error), error);
  if (error) return {};
  if (!at.has_filename()) at = at.parent_path();
  while (at.has_relative_path()) {
    at = at.parent_path();
    const auto directory = metadata::open_posix_directory(at.string());
    if (!directory) continue;
    const auto state = metadata::inspect_directory(**directory);
    if (!state || *state != metadata::DirectoryState::volume) continue;
    return fail(ErrorCode::invalid_argument,
                fmt::format("{} lies within the volume {}: nothing was changed. Give a directory "
                            "elsewhere",
                            path, at.string()));
  }
  return {};
}

Result<> check_no_mount(const std::string& path) {
  const auto mount = fs::find_nacre_mount(path);
  if (!mount) return {};
  return fail(ErrorCode::busy, fmt::format("{} is where the volume {} is mounted: nothing was "
                                           "changed. Give another directory",
                                           path, mount->source));
}

}  // namespace

Result<> check_new_volume_place(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    if (errno != ENOENT) return fail(ErrorCode::io, fmt::format("{}: {}", path, strerror(errno)));
    NACRE_TRY(check_parent(path));
    return check_not_in_volume(path);
  }
  NACRE_TRY(check_no_mount(path));
  NACRE_ASSIGN(const auto place, open_place(path));
  NACRE_ASSIGN(const auto state, metadata::inspect_directory(*place.directory));
  switch (state) {
    case metadata::DirectoryState::volume:
      return fail(ErrorCode::exists,
                  fmt::format("{} already holds a volume: nothing was changed. To make a new one "
                              "there, remove what it holds first",
                              path));
    case metadata::DirectoryState::damaged:
    case metadata::DirectoryState::foreign:
      return fail(ErrorCode::not_empty,
                  fmt::format("{} is not empty: nothing was changed. Give an empty directory, or "
                              "one that does not exist yet",
                              path));
    default:
      return check_not_in_volume(path);
  }
}

}  // namespace nacre::tools
