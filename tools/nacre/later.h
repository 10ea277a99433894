// SPDX-License-Identifier: Apache-2.0
// Commands and options that this version does not have yet: each says so by name and exits 2.
#pragma once

#include <string>
#include <string_view>

#include "tools/nacre/commands.h"

namespace nacre::tools {

// Prints "WHAT: not in this version" and returns the exit code.
int not_in_this_version(std::string_view what);
// A subcommand that takes anything and says the above.
void add_later_command(CLI::App& parent, Action& action, const std::string& name,
                       const std::string& description);

}  // namespace nacre::tools
