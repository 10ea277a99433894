// SPDX-License-Identifier: Apache-2.0
// nacre: everything about volumes that mkfs.nacre, mount.nacre and fsck.nacre do not do.
#include <memory>

#include <CLI/CLI.hpp>

#include "tools/cli/command_line.h"
#include "tools/nacre/commands.h"

int main(int argc, char** argv) {
  using namespace nacre::tools;
  return run_command_line("nacre", "Look at Nacre volumes and control mounted ones", argc, argv,
                          [](CLI::App& app) -> Action {
                            auto action = std::make_shared<Action>();
                            app.require_subcommand(1);
                            app.footer(
                                "Examples:\n"
                                "  nacre stats ~/private         how a mounted volume is doing\n"
                                "  nacre backup ~/private /mnt/stick/private\n"
                                "  nacre umount ~/private\n"
                                "See also: mkfs.nacre, mount.nacre, fsck.nacre, man nacre");
                            add_backup_command(app, *action);
                            add_file_command(app, *action);
                            add_key_command(app, *action);
                            add_scrub_command(app, *action);
                            add_stats_command(app, *action);
                            add_sync_command(app, *action);
                            add_top_command(app, *action);
                            add_trim_command(app, *action);
                            add_umount_command(app, *action);
                            add_dump_command(app, *action);
                            add_bench_command(app, *action);
                            add_crypt_command(app, *action);
                            add_witness_command(app, *action);
                            add_version_command(app, *action);
                            return [action] { return (*action)(); };
                          });
}
