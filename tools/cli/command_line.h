// SPDX-License-Identifier: Apache-2.0
// What the main functions share: parsing with the documented exit codes. No exception leaves main.
#pragma once

#include <functional>
#include <string>

#include "tools/cli/secret_source.h"

namespace CLI {
class App;
}

namespace nacre::tools {

// Parses and runs. setup adds options and returns what to do once they are parsed. Usage errors end
// with 2, --help and --version with 0, and exceptions that are not caught elsewhere with 8.
int run_command_line(const std::string& program, const std::string& description, int argc,
                     char** argv, const std::function<std::function<int()>(CLI::App&)>& setup);

// Adds --passphrase-file, --passphrase-fd and --passphrase-command, of which one may be given, and
// --kdf-limit.
void add_passphrase_options(CLI::App& app, SecretOptions& secret);
// Adds the same three for a new passphrase: --new-passphrase-file and so on.
void add_new_passphrase_options(CLI::App& app, SecretOptions& secret);
// Adds the passphrase options, --identity, --fingerprint and --accept-older-state.
void add_secret_options(CLI::App& app, SecretOptions& secret);

}  // namespace nacre::tools
