// SPDX-License-Identifier: Apache-2.0
// The subcommands of `nacre key`, each in a file of its own; key.cpp puts them together.
#pragma once

#include <string>

#include "metadata/keys/keyring.h"
#include "tools/nacre/commands.h"

namespace nacre::tools {

void add_key_list_command(CLI::App& key, Action& action);
// add, remove, passphrase
void add_key_recipient_commands(CLI::App& key, Action& action);
// backup, restore
void add_key_backup_commands(CLI::App& key, Action& action);

// "passphrase 0123456789abcdef (label)"
std::string describe(const metadata::Recipient& recipient);

}  // namespace nacre::tools
