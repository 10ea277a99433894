// SPDX-License-Identifier: Apache-2.0
// Putting another keyring in place of a volume's, mounted or not. A volume that is not mounted is
// locked and opened for it. Of a mount, this process opens the keyring with the secret, makes the
// next one and hands its text to the daemon, which holds the lock and the keys and writes it: so
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
// path: a volume's directory, or where one is mounted. not_found for anything else, and the errors
// of find_volume().
Result<KeyTarget> find_key_target(const std::string& path);

// Makes the keyring that comes next; called again, for a later one, when somebody else was faster.
using MakeKeyring = std::function<Result<metadata::Keyring>(const metadata::VolumeKeys& volume)>;
// Reads the secret, opens the volume, and makes what `make` gives its keyring, durably. The new
// one. wrong_key, busy, read_only, rolled_back and the errors of make and KeyringKeeper.
Result<metadata::Keyring> change_keyring(const KeyTarget& target, const SecretOptions& options,
                                         const MakeKeyring& make);

// Of the daemon's keyring.
Result<std::uint64_t> mounted_keyring_generation(const fs::MountEntry& mount);
// busy when the keyring was changed since its generation was asked for.
Result<> hand_over_keyring(const fs::MountEntry& mount, const metadata::Keyring& keyring,
                           const metadata::KeyTree& keys);
// read_only for a mount that is.
Result<> check_writable(const fs::MountEntry& mount);

}  // namespace nacre::tools
