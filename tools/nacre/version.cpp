// SPDX-License-Identifier: Apache-2.0
// nacre version
#include <CLI/CLI.hpp>

#include "tools/cli/exit_code.h"
#include "tools/cli/terminal.h"
#include "tools/nacre/commands.h"

namespace nacre::tools {

void add_version_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("version", "Print the version");
  command->footer("Examples:\n  nacre version");
  command->callback([&action] {
    action = [] {
      print_safely("nacre {}\n", NACRE_VERSION);
      return exit_fine;
    };
  });
}

}  // namespace nacre::tools
