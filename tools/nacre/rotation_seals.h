// SPDX-License-Identifier: Apache-2.0
// What a rotation needs of passphrases in format 2: the seals with which their recipients get the
// new volume key.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "metadata/keys/keyring.h"
#include "tools/cli/volume_access.h"

namespace nacre::tools {

// Whether one of its passphrases has no key pair, so that a rotation needs its seal.
bool needs_seals(const metadata::Keyring& keyring);

// The seal of the passphrase that opened the volume, if it was one, and those of the passphrases in
// files. Errors: wrong_key for a file whose passphrase does not open the volume.
Result<std::vector<metadata::RecipientSeal>> collect_seals(const VolumePlace& place,
                                                           const metadata::KeyringAccess& access,
                                                           const std::vector<std::string>& files);

// Adds the option that names such files.
void add_passphrase_files_option(CLI::App& app, std::vector<std::string>& files);

}  // namespace nacre::tools
