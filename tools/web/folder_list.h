// SPDX-License-Identifier: Apache-2.0
// What the chooser of files shows of a folder: names, kinds and sizes, with the user's own rights.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "gpu_engine/base/result.h"

namespace nacre::tools::web {

inline constexpr std::size_t listed_count_max = 10000;

// The answer of GET /api/files (API.md). Links are named, and followed only to tell whether they
// lead to a folder or a file. Errors: not_found, not_directory, permission.
Result<nlohmann::json> list_folder(const std::string& path, bool with_hidden);

// The places that the chooser offers: the home and the folders in it that have a known purpose,
// mounted volumes, removable disks, the root.
nlohmann::json list_places();

}  // namespace nacre::tools::web
