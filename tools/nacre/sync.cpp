// SPDX-License-Identifier: Apache-2.0
// nacre sync MOUNTPOINT: returns when everything that was written before is durable. sync(1) and
// syncfs(2) alone never reach the daemon.
#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <memory>
#include <string>

#include "fs/control/control_client.h"
#include "fs/control/mount_table.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/terminal.h"
#include "tools/nacre/commands.h"
#include "tools/nacre/mounted_volume.h"
#include "tools/nacre/patience.h"

namespace nacre::tools {

namespace {

Result<> sync_mount(const std::string& path) {
  NACRE_ASSIGN(const auto mount, fs::find_nacre_mount(path));
  // Asks whether the daemon answers, before anything that would wait for it.
  { NACRE_ASSIGN(auto client, fs::ControlClient::connect(mount)); }
  const Patience patience(
      fmt::format("waiting for the volume at {} to make everything durable: its disk is slow, or "
                  "does not answer. Ctrl-C ends the waiting only",
                  mount.mountpoint));
  NACRE_TRY(write_back(mount.mountpoint));
  NACRE_ASSIGN(auto client, fs::ControlClient::connect(mount));
  NACRE_TRY(client.request("sync"));
  return {};
}

}  // namespace

void add_sync_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("sync", "Make everything written to a mount durable");
  auto mountpoint = std::make_shared<std::string>();
  command->add_option("MOUNTPOINT", *mountpoint, "Where the volume is mounted")->required();
  command->footer(
      "Returns when all that was written before is on the disk.\n"
      "Examples:\n"
      "  cp -r photos ~/private/ && nacre sync ~/private\n"
      "Exit status: 0 durable, 2 usage, 8 failed");
  command->callback([&action, mountpoint] {
    action = [mountpoint] {
      const auto synced = sync_mount(*mountpoint);
      return synced ? exit_fine : report(synced.error());
    };
  });
}

}  // namespace nacre::tools
