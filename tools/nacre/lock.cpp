// SPDX-License-Identifier: Apache-2.0
// nacre lock MOUNTPOINT: the daemon closes the volume and wipes its keys, and the mount stays.
// nacre unlock MOUNTPOINT: opens it again. This process derives the volume key, and hands it to the
// daemon that holds the volume's lock; passphrases and private keys never reach the daemon.
#include <unistd.h>

#include <memory>
#include <string>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "fs/control/control_client.h"
#include "fs/control/mount_table.h"
#include "metadata/superblock.h"
#include "metadata/text/exact_bytes.h"
#include "tools/cli/command_line.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/hardening.h"
#include "tools/cli/terminal.h"
#include "tools/cli/volume_access.h"
#include "tools/nacre/commands.h"
#include "tools/nacre/mounted_volume.h"
#include "tools/nacre/patience.h"

namespace nacre::tools {

namespace {

using nlohmann::json;

bool says(const json& reply, const char* name) {
  const auto at = reply.find(name);
  return at != reply.end() && at->is_boolean() && at->get<bool>();
}

// The mount at a path. A user may give the volume instead, which may be mounted or not.
Result<fs::MountEntry> find_mount(const std::string& path) {
  auto mount = fs::find_nacre_mount(path);
  const std::string superblock = fmt::format("{}/{}", path, metadata::superblock_file);
  if (mount || ::access(superblock.c_str(), F_OK) != 0) return mount;
  return fail(mount.error().code,
              fmt::format("{0} is a volume: give the mount point. If the volume is not mounted, "
                          "'nacre mount {0} MOUNTPOINT' mounts it",
                          path));
}

Result<> lock_mount(const std::string& path) {
  NACRE_ASSIGN(const auto mount, find_mount(path));
  // Asks whether the daemon answers, before anything that would wait for it.
  { NACRE_ASSIGN(auto client, fs::ControlClient::connect(mount)); }
  const Patience patience(
      fmt::format("waiting for the volume at {} to make everything durable: its disk is slow, or "
                  "does not answer. Ctrl-C ends the waiting only",
                  mount.mountpoint));
  if (const auto written = write_back(mount.mountpoint);
      !written && written.error().code != ErrorCode::permission) {
    return written;
  }
  NACRE_ASSIGN(auto client, fs::ControlClient::connect(mount));
  NACRE_ASSIGN(const auto reply, client.request("lock"));
  if (!says(reply, "was_open")) print_note(fmt::format("{} was locked already", mount.mountpoint));
  return {};
}

// The volume's folder, as the daemon names it and as its lock confirms.
Result<VolumePlace> place_of(const fs::MountEntry& mount, const fs::ControlClient& client,
                             const json& info) {
  const auto volume = metadata::get_bytes(info, "volume");
  if (!volume) {
    return fail(ErrorCode::io, fmt::format("the daemon of {} does not say which volume it serves",
                                           mount.mountpoint));
  }
  NACRE_ASSIGN(auto place, find_volume(*volume));
  NACRE_TRY(client.check_serves(mount, place.path));
  return place;
}

Result<> unlock_mount(const std::string& path, const SecretOptions& options) {
  NACRE_ASSIGN(const auto mount, find_mount(path));
  NACRE_ASSIGN(auto client, fs::ControlClient::connect(mount));
  NACRE_ASSIGN(const auto info, client.request("info"));
  if (!says(info, "locked")) {
    print_note(fmt::format("{} is not locked", mount.mountpoint));
    return {};
  }
  NACRE_ASSIGN(const auto place, place_of(mount, client, info));
  harden_process();
  NACRE_ASSIGN(const auto secret, read_secret(options, place.path));
  NACRE_ASSIGN(const auto keys, unlock(place, secret, options));
  const ByteView key = keys.access->volume_key.view();
  NACRE_ASSIGN(auto other, fs::ControlClient::connect(mount));
  NACRE_TRY(other.check_serves(mount, place.path));
  NACRE_ASSIGN(const auto reply,
               other.request_with({{"command", "unlock"}, {"key_size_bytes", key.size()}}, key,
                                  std::nullopt));
  if (!says(reply, "was_locked")) {
    print_note(fmt::format("{} was unlocked meanwhile", mount.mountpoint));
  }
  return {};
}

}  // namespace

void add_lock_command(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("lock", "Take the keys out of a mount's memory, and keep the mount");
  auto mountpoint = std::make_shared<std::string>();
  command->add_option("MOUNTPOINT", *mountpoint, "Where the volume is mounted")->required();
  command->footer(
      "Everything is made durable first. Until 'nacre unlock', every use of the mount\n"
      "fails with an I/O error; files that are open stay open.\n"
      "Examples:\n"
      "  nacre lock ~/private\n"
      "Exit status: 0 locked, 2 usage, 8 failed, 32 a command is at work there");
  command->callback([&action, mountpoint] {
    action = [mountpoint] {
      const auto locked = lock_mount(*mountpoint);
      return locked ? exit_fine : report(locked.error());
    };
  });
}

void add_unlock_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("unlock", "Open a mount again that was locked");
  struct Arguments {
    std::string mountpoint;
    SecretOptions secret;
  };
  auto arguments = std::make_shared<Arguments>();
  command->add_option("MOUNTPOINT", arguments->mountpoint, "Where the volume is mounted")
      ->required();
  add_secret_options(*command, arguments->secret);
  command->footer(
      "Examples:\n"
      "  nacre unlock ~/private\n"
      "  nacre unlock --identity ~/me.pem ~/private\n"
      "Exit status: 0 open, 2 usage, 4 not as it was locked, 8 failed, 16 wrong key,\n"
      "32 busy");
  command->callback([&action, arguments] {
    action = [arguments] {
      const auto unlocked = unlock_mount(arguments->mountpoint, arguments->secret);
      return unlocked ? exit_fine : report(unlocked.error());
    };
  });
}

}  // namespace nacre::tools
