// SPDX-License-Identifier: Apache-2.0
// See later.h.
#include "tools/nacre/later.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "tools/cli/exit_code.h"
#include "tools/cli/terminal.h"

namespace nacre::tools {

int not_in_this_version(std::string_view what) {
  print_error(fmt::format("{}: not in this version ({})", what, NACRE_VERSION));
  return exit_usage;
}

void add_later_command(CLI::App& parent, Action& action, const std::string& name,
                       const std::string& description) {
  CLI::App* command = parent.add_subcommand(name, description + " (not in this version)");
  command->allow_extras();
  command->prefix_command();
  const std::string prefix = parent.get_parent() == nullptr ? "" : parent.get_name() + " ";
  command->callback([&action, full_name = prefix + name] {
    action = [full_name] { return not_in_this_version(full_name); };
  });
}

void add_later_commands(CLI::App& app, Action& action) {
  add_later_command(app, action, "crypt", "Encrypt and decrypt single files");
}

}  // namespace nacre::tools
