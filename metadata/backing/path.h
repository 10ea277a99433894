// SPDX-License-Identifier: Apache-2.0
// Decides which paths within a volume's folder are valid. Pure functions, which look at no file.
#pragma once

#include <string_view>

#include "gpu_engine/base/result.h"

namespace nacre::metadata {

struct PathParts {
  std::string_view folder;  // empty: the volume's folder itself
  std::string_view name;
};

// Splits "name" or "folder/name". Both views point into path. Error: invalid_argument for anything
// else: an empty or absolute path, an empty part, "." or "..", a second '/', a NUL byte, or a part
// of more than 255 bytes.
Result<PathParts> split_path(std::string_view path);

// Checks the name of a folder to list. It may be empty. Error: invalid_argument.
Result<void> check_folder(std::string_view folder);

// Checks the name of a folder to make. Error: invalid_argument, also for a name with '/'.
Result<void> check_top_folder(std::string_view path);

// Error: invalid_argument unless both paths are valid for split_path() and in the same folder.
Result<void> check_same_folder(std::string_view from, std::string_view to);

}  // namespace nacre::metadata
