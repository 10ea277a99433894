// SPDX-License-Identifier: Apache-2.0
// The subcommands of `nacre`. Each adds itself to the parser; the one that the command line names
// becomes the action, which runs after parsing and returns the exit code.
#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace nacre::tools {

using Action = std::function<int()>;

void add_backup_command(CLI::App& app, Action& action);
void add_bench_command(CLI::App& app, Action& action);
void add_crypt_command(CLI::App& app, Action& action);
void add_dump_command(CLI::App& app, Action& action);
void add_file_command(CLI::App& app, Action& action);
void add_key_command(CLI::App& app, Action& action);
void add_lock_command(CLI::App& app, Action& action);
void add_scrub_command(CLI::App& app, Action& action);
void add_stats_command(CLI::App& app, Action& action);
void add_sync_command(CLI::App& app, Action& action);
void add_top_command(CLI::App& app, Action& action);
void add_trim_command(CLI::App& app, Action& action);
void add_umount_command(CLI::App& app, Action& action);
void add_unlock_command(CLI::App& app, Action& action);
void add_version_command(CLI::App& app, Action& action);
void add_web_command(CLI::App& app, Action& action);  // if Nacre has libmicrohttpd
void add_witness_command(CLI::App& app, Action& action);

}  // namespace nacre::tools
