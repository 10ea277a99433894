// SPDX-License-Identifier: Apache-2.0
// nacre: everything about volumes that mkfs.nacre, mount.nacre and fsck.nacre do not do. "nacre
// mkfs", "nacre mount" and "nacre fsck" call these; "nacre help COMMAND" is "nacre COMMAND --help".
#include <unistd.h>

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
  print_error(fmt::format("{} is a program of its own, {}, which is not here", word, program));
  return exit_usage;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view word = argc > 1 ? argv[1] : "";
  std::vector<char*> words(argv, argv + argc);
  std::string help = "--help";
  if (word == "mkfs" || word == "mount" || word == "fsck") {
    take_standard_streams();
    set_program_name("nacre");
    return run_program(word, argc, argv);
  }
  if (word == "help") {
    words.erase(words.begin() + 1);
    words.push_back(help.data());
  }
  words.push_back(nullptr);
  argc = static_cast<int>(words.size()) - 1;
  argv = words.data();
  return run_command_line("nacre", "Look at Nacre volumes and control mounted ones", argc, argv,
                          [](CLI::App& app) -> Action {
                            auto action = std::make_shared<Action>();
                            app.require_subcommand(1);
                            app.footer(
                                "Examples:\n"
                                "  nacre stats ~/private         how a mounted volume is doing\n"
                                "See also: mkfs.nacre, mount.nacre, fsck.nacre, man nacre");
                            add_backup_command(app, *action);
                            add_file_command(app, *action);
                            add_key_command(app, *action);
                            add_lock_command(app, *action);
                            add_scrub_command(app, *action);
                            add_stats_command(app, *action);
                            add_sync_command(app, *action);
                            add_top_command(app, *action);
                            add_trim_command(app, *action);
                            add_umount_command(app, *action);
                            add_unlock_command(app, *action);
                            add_dump_command(app, *action);
                            add_bench_command(app, *action);
                            add_crypt_command(app, *action);
#ifdef NACRE_WEB
                            add_web_command(app, *action);
#endif
                            add_witness_command(app, *action);
                            add_version_command(app, *action);
                            return [action] { return (*action)(); };
                          });
}
