// SPDX-License-Identifier: Apache-2.0
// nacre key rotate, nacre key status.
#pragma once

#include <optional>
#include <string>
#include <variant>

#include <nlohmann/json_fwd.hpp>

#include "fs/control/mount_table.h"
#include "tools/cli/volume_access.h"
#include "tools/nacre/commands.h"

namespace nacre::tools {

void add_rotate_command(CLI::App& key, Action& action);
void add_key_status_command(CLI::App& key, Action& action);

// A volume that is mounted, by its entry in the mount table; or one that is not.
using RotationTarget = std::variant<fs::MountEntry, VolumePlace>;
// path: a volume's directory, or where one is mounted. not_found.
Result<RotationTarget> find_rotation_target(const std::string& path);

// For people: what the object "rotation" of a daemon's reply says.
void print_rotation(const nlohmann::json& rotation);

struct RotateOptions {
  std::string cipher, codec, rate;  // empty: as it is
  std::string engine;               // of a volume that is not mounted; empty: cpu
  int level = 0;
  bool allow_legacy_cipher = false;
  bool wait = true;     // of a mounted volume: until it is done
  bool afresh = false;  // one that was interrupted is finished, and then another one begins
};
// Begins a rotation, or goes on with one; shows progress. The exit code.
int rotate_keys(const std::string& path, const SecretOptions& secret, const RotateOptions& options);
// Before a recipient is taken away: a rotation under way has made its new key for all recipients of
// then, so it revokes nothing, and another one cannot begin beside it. busy.
Result<> check_may_revoke(const fs::MountEntry& mount);

}  // namespace nacre::tools
