// SPDX-License-Identifier: Apache-2.0
// What the main functions share: parsing with the documented exit codes, and no exception past
// main.
#pragma once

#include <functional>
#include <string>

#include "tools/cli/secret_source.h"

namespace CLI {
class App;
}

namespace nacre::tools {

// Parses and runs: setup adds options and returns what to do once they are parsed. Usage errors end
// with 2, --help and --version with 0, what nobody caught with 8.
int run_command_line(const std::string& program, const std::string& description, int argc,
                     char** argv, const std::function<std::function<int()>(CLI::App&)>& setup);

// --passphrase-file, --passphrase-fd, --passphrase-command (one at most), --identity.
void add_passphrase_options(CLI::App& app, SecretOptions& secret);
// The same three for a passphrase that is to be: --new-passphrase-file and its like.
void add_new_passphrase_options(CLI::App& app, SecretOptions& secret);
void add_secret_options(CLI::App& app, SecretOptions& secret);

}  // namespace nacre::tools
