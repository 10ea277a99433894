// SPDX-License-Identifier: Apache-2.0
// Checks paths, so that none leads out of the volume's folder.
#include "metadata/backing/path.h"

#include <fmt/format.h>

namespace nacre::metadata {

namespace {

constexpr std::size_t part_size_bytes_max = 255;

bool part_is_valid(std::string_view part) {
  return !part.empty() && part.size() <= part_size_bytes_max && part != "." && part != ".." &&
         part.find('/') == std::string_view::npos && part.find('\0') == std::string_view::npos;
}

}  // namespace

Result<PathParts> split_path(std::string_view path) {
  PathParts parts{.folder = {}, .name = path};
  const auto slash = path.find('/');
  if (slash != std::string_view::npos) {
    parts = {.folder = path.substr(0, slash), .name = path.substr(slash + 1)};
  }
  const bool valid =
      part_is_valid(parts.name) && (slash == std::string_view::npos || part_is_valid(parts.folder));
  if (!valid) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("'{}' is not a path within a volume directory", path));
  }
  return parts;
}

Result<void> check_folder(std::string_view folder) {
  if (folder.empty() || part_is_valid(folder)) return {};
  return fail(ErrorCode::invalid_argument,
              fmt::format("'{}' is not a folder of a volume directory", folder));
}

Result<void> check_top_folder(std::string_view path) {
  if (part_is_valid(path)) return {};
  return fail(ErrorCode::invalid_argument,
              fmt::format("'{}' is not a folder of a volume directory", path));
}

Result<void> check_same_folder(std::string_view from, std::string_view to) {
  NACRE_ASSIGN(const auto from_parts, split_path(from));
  NACRE_ASSIGN(const auto to_parts, split_path(to));
  if (from_parts.folder == to_parts.folder) return {};
  return fail(ErrorCode::invalid_argument,
              fmt::format("'{}' and '{}' are not in one folder", from, to));
}

}  // namespace nacre::metadata
