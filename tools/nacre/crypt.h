// SPDX-License-Identifier: Apache-2.0
// The parts of nacre crypt, each a subcommand of it.
#pragma once

#include "tools/nacre/commands.h"

namespace nacre::tools {

void add_crypt_encrypt_command(CLI::App& crypt, Action& action);
void add_crypt_decrypt_command(CLI::App& crypt, Action& action);
void add_crypt_inspect_command(CLI::App& crypt, Action& action);
void add_crypt_keygen_command(CLI::App& crypt, Action& action);

}  // namespace nacre::tools
