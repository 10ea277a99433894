// SPDX-License-Identifier: Apache-2.0
// nacre key rotate, nacre key status.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "fs/control/mount_table.h"
#include "tools/cli/volume_access.h"
#include "tools/nacre/commands.h"

namespace nacre::tools {

void add_rotate_command(CLI::App& key, Action& action);
void add_key_status_command(CLI::App& key, Action& action);

// A mounted volume, by its entry in the mount table; or one that is not mounted.
using RotationTarget = std::variant<fs::MountEntry, VolumePlace>;
// path: a volume's directory, or where one is mounted. Error: not_found.
Result<RotationTarget> find_rotation_target(const std::string& path);

// Prints for people what the object "rotation" of a daemon's reply says.
void print_rotation(const nlohmann::json& rotation);

struct RotateOptions {
  std::string cipher, codec, rate;  // empty: as it is
  std::string engine;               // for a volume that is not mounted; empty: cpu
  int level = 0;
  int format = 0;  // 2: move the volume to it; 0: as the program has it
  bool allow_legacy_cipher = false;
  bool accept_unreadable = false;  // as in fs::RotationOptions
  bool wait = true;                // for a mounted volume: wait until it is done
  bool afresh = false;             // finish an interrupted rotation, and then start another one
  std::vector<std::string> passphrase_files;  // rotation_seals.h
};
// Starts or continues a rotation and shows progress. Returns the exit code.
int rotate_keys(const std::string& path, const SecretOptions& secret, const RotateOptions& options);
// Call it before a recipient is removed. A rotation that is under way has made its new key for all
// recipients of that time. So it revokes nothing, and a second one cannot run at once. Error: busy.
Result<> check_may_revoke(const fs::MountEntry& mount);

}  // namespace nacre::tools
