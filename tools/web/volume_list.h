// SPDX-License-Identifier: Apache-2.0
// The user's volumes and the state of each, from the kernel's mount table, the volume's lock and
// the daemon. Nothing is remembered from one call to the next. Thread-safe.
#pragma once

#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "fs/control/mount_table.h"
#include "gpu_engine/base/result.h"

namespace nacre::tools::web {

// VOLUME objects of API.md: the known volumes of the user in the order of that list, then others
// that are mounted. Daemons that do not answer within two seconds are said not to.
nlohmann::json list_volumes();

// The VOLUME at a path, which is a volume's folder or where one is mounted. Error: not_found.
Result<nlohmann::json> volume_at(const std::string& path);

// The folder of the known or mounted volume at a path, which may also be its mount point; else the
// path. Asks no daemon.
std::string volume_of(const std::string& path);

// The mount of a volume's folder, by the mount table alone; for commands that differ for mounted
// volumes. path may also be where it is mounted.
std::optional<fs::MountEntry> mount_of(const std::string& path);

}  // namespace nacre::tools::web
