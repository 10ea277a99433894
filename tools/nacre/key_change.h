// SPDX-License-Identifier: Apache-2.0
// Replaces a volume's keyring, mounted or not. A volume that is not mounted is locked and opened
// for it. For a mounted one, this process opens the keyring with the secret, makes the next
// keyring, and hands its text to the daemon, which holds the lock and the keys and writes it. So
// the secret never leaves this process.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "fs/control/mount_table.h"
#include "metadata/volume_files.h"
#include "tools/cli/volume_access.h"

namespace nacre::tools {

struct KeyTarget {
  VolumePlace place;
  std::optional<fs::MountEntry> mount;
};
// path: a volume's directory, or where one is mounted. Errors: not_found for anything else, and
// those of find_volume().
Result<KeyTarget> find_key_target(const std::string& path);

// Makes the next keyring. It is called again, with a later keyring, if another program changed the
// keyring first.
using MakeKeyring = std::function<Result<metadata::Keyring>(const metadata::VolumeKeys& volume)>;
// Reads the secret, opens the volume, durably stores the keyring that `make` gives, and returns it.
// Errors: wrong_key, busy, read_only, rolled_back, and those of make and KeyringKeeper.
Result<metadata::Keyring> change_keyring(const KeyTarget& target, const SecretOptions& options,
                                         const MakeKeyring& make);

// The generation of the daemon's keyring.
Result<std::uint64_t> mounted_keyring_generation(const fs::MountEntry& mount);
// Error: busy if the keyring was changed since its generation was asked for.
Result<> hand_over_keyring(const fs::MountEntry& mount, const metadata::Keyring& keyring,
                           const metadata::KeyTree& keys);
// Error: read_only for a read-only mount.
Result<> check_writable(const fs::MountEntry& mount);

}  // namespace nacre::tools
