// SPDX-License-Identifier: Apache-2.0
// nacre: everything about volumes that mkfs.nacre, mount.nacre and fsck.nacre do not do. "nacre
// mkfs", "nacre mount" and "nacre fsck" call these; "nacre help COMMAND" is "nacre COMMAND --help".
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "tools/cli/command_line.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/standard_streams.h"
#include "tools/cli/terminal.h"
#include "tools/nacre/commands.h"

namespace {

using namespace nacre::tools;

// Runs the program of that name next to this one, or else in the search path. Returns only if there
// is none.
void become(const std::string& program, char** argv) {
  char self[PATH_MAX];
  const ssize_t size = ::readlink("/proc/self/exe", self, sizeof self);
  if (size > 0 && size < static_cast<ssize_t>(sizeof self)) {
    const std::string_view path(self, static_cast<std::size_t>(size));
    const std::string sibling = std::string(path.substr(0, path.rfind('/') + 1)) + program;
    ::execv(sibling.c_str(), argv);
  }
  ::execvp(program.c_str(), argv);
}

// Handles a command that is a program of its own here: "nacre mount VOLUME MOUNTPOINT".
int run_program(std::string_view word, int argc, char** argv) {
  std::string program = std::string(word) + ".nacre";
  std::vector<char*> words = {program.data()};
  words.insert(words.end(), argv + 2, argv + argc);
  words.push_back(nullptr);
  become(program, words.data());
  print_error(fmt::format("{} is the program {}, which is not installed here", word, program));
  return exit_usage;
}

bool is_program(std::string_view word) {
  return word == "mkfs" || word == "mount" || word == "fsck";
}

// So that a message about commands names these as well. main() has run them before, unless an
// option comes first.
void add_programs(CLI::App& app, Action& action) {
  for (const std::string name : {"mkfs", "mount", "fsck"}) {
    CLI::App* command = app.add_subcommand(name, "")->group("")->allow_extras();
    command->callback([&action, name] {
      action = [name] {
        print_error(fmt::format("give {0} as the first word: nacre help {0}", name));
        return exit_usage;
      };
    });
  }
}

void add_commands(CLI::App& app, Action& action) {
  add_backup_command(app, action);
  add_file_command(app, action);
  add_key_command(app, action);
  add_lock_command(app, action);
  add_scrub_command(app, action);
  add_stats_command(app, action);
  add_sync_command(app, action);
  add_top_command(app, action);
  add_trim_command(app, action);
  add_umount_command(app, action);
  add_unlock_command(app, action);
  add_dump_command(app, action);
  add_bench_command(app, action);
  add_crypt_command(app, action);
#ifdef NACRE_WEB
  add_web_command(app, action);
#endif
  add_witness_command(app, action);
  add_version_command(app, action);
  add_programs(app, action);
}

// Whether there is a command of these words, as in "nacre help key add".
bool names_command(const std::vector<char*>& words) {
  Action action;
  CLI::App app;
  add_commands(app, action);
  const CLI::App* at = &app;
  for (const char* word : words) {
    const auto commands = at->get_subcommands({});
    const auto named = std::find_if(commands.begin(), commands.end(), [&](const CLI::App* command) {
      return command->get_name() == word;
    });
    if (named == commands.end()) return false;
    at = *named;
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view word = argc > 1 ? argv[1] : "";
  std::vector<char*> words(argv, argv + argc);
  std::string help = "--help";
  if (word == "help") {
    words.erase(words.begin() + 1);
    // Without --help, the message says which word is no command.
    if (names_command({words.begin() + 1, words.end()})) words.push_back(help.data());
  }
  argc = static_cast<int>(words.size());
  words.push_back(nullptr);
  argv = words.data();
  if (argc > 1 && is_program(argv[1])) {
    take_standard_streams();
    set_program_name("nacre");
    return run_program(argv[1], argc, argv);
  }
  return run_command_line("nacre", "Look at Nacre volumes and control mounted ones", argc, argv,
                          [](CLI::App& app) -> Action {
                            auto action = std::make_shared<Action>();
                            app.require_subcommand(1);
                            app.footer(
                                "Examples:\n"
                                "  nacre stats ~/private         how a mounted volume is doing\n"
                                "See also: mkfs.nacre, mount.nacre, fsck.nacre, man nacre");
                            add_commands(app, *action);
                            return [action] { return (*action)(); };
                          });
}
