// SPDX-License-Identifier: Apache-2.0
// Paths within a volume directory: the one place that says which ones there are.
#pragma once

#include <string_view>

#include "gpu_engine/base/result.h"

namespace nacre::metadata {

struct PathParts {
  std::string_view folder;  // empty: the volume directory itself
  std::string_view name;
};

// Splits "name" or "folder/name"; both views lie in path. invalid_argument for all else: an empty
// or absolute path, an empty part, "." or "..", a second '/', a NUL byte, a part over 255 bytes.
Result<PathParts> split_path(std::string_view path);

// The same for the name of a folder to look into, where empty is allowed.
Result<void> check_folder(std::string_view folder);

// The same for a folder to make: a bare name.
Result<void> check_top_folder(std::string_view path);

// invalid_argument unless both paths (as split_path takes them) lie in one folder.
Result<void> check_same_folder(std::string_view from, std::string_view to);

}  // namespace nacre::metadata
