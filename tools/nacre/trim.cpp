// SPDX-License-Identifier: Apache-2.0
// nacre trim VOLUME|MOUNTPOINT: frees the space of overwritten and deleted data, by rewriting
// segments that hold a good share of it. A mounted volume does it itself while it is used; one that
// is not mounted is opened for it.
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <string>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "fs/control/control_client.h"
#include "fs/control/mount_table.h"
#include "fs/control/stats_json.h"
#include "fs/mount/mounted.h"
#include "metadata/backing/volume_lock.h"
#include "tools/cli/command_line.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/hardening.h"
#include "tools/cli/terminal.h"
#include "tools/cli/volume_access.h"
#include "tools/nacre/commands.h"
#include "tools/nacre/mounted_volume.h"
#include "tools/nacre/offline_volume.h"

namespace nacre::tools {

namespace {

using nlohmann::json;

constexpr std::chrono::milliseconds trim_progress_interval{500};
constexpr std::chrono::milliseconds stats_patience{2000};

struct TrimArguments {
  std::string path;
  SecretOptions secret;
  bool json = false;
};

// A number from a reply that is not trusted; 0 if it is missing.
std::uint64_t reply_number(const json& object, const char* name) {
  const auto at = object.is_object() ? object.find(name) : object.end();
  return at != object.end() && at->is_number_unsigned() ? at->get<std::uint64_t>() : 0;
}

// What a trim would still free; none if the daemon does not say.
std::optional<std::uint64_t> reclaimable_bytes(const fs::MountEntry& mount) {
  auto client = fs::ControlClient::connect(mount);
  if (!client) return std::nullopt;
  const auto reply = client->request("stats", stats_patience);
  if (!reply) return std::nullopt;
  const auto found = json::json_pointer("/stats/segments/reclaimable_bytes");
  if (!reply->contains(found) || !reply->at(found).is_number_unsigned()) return std::nullopt;
  return reply->at(found).get<std::uint64_t>();
}

Result<json> trim_mount(const fs::MountEntry& mount, ProgressPrinter& printer) {
  if (mount.read_only) {
    return fail(ErrorCode::read_only, fmt::format("{} is mounted read-only", mount.mountpoint));
  }
  // Otherwise the kernel's dirty pages would be written only after the trim. Root may not look into
  // another user's mount.
  if (const auto written = write_back(mount.mountpoint);
      !written && written.error().code != ErrorCode::permission) {
    return tl::unexpected(written.error());
  }
  NACRE_ASSIGN(auto client, fs::ControlClient::connect(mount));
  const std::uint64_t total = reclaimable_bytes(mount).value_or(0);
  auto reply = std::async(std::launch::async, [&] { return client.request("trim"); });
  while (reply.wait_for(trim_progress_interval) != std::future_status::ready) {
    const auto left = reclaimable_bytes(mount);
    if (!left) continue;
    printer.update({.stage = "trim", .done = total - std::min(total, *left), .total = total});
  }
  NACRE_ASSIGN(const auto answer, reply.get());
  const auto found = answer.find("trim");
  return found != answer.end() ? *found : json::object();
}

Result<json> trim_volume(const VolumePlace& place, const SecretOptions& secret_options,
                         ProgressPrinter& printer) {
  harden_process();
  // If another process holds the volume, the user learns it before typing a passphrase.
  NACRE_ASSIGN(const auto lock,
               metadata::VolumeLock::acquire(place.path, {.mode = metadata::LockMode::exclusive}));
  NACRE_ASSIGN(const auto secret, read_secret(secret_options, place.path));
  NACRE_ASSIGN(const auto keys, unlock(place, secret, secret_options));
  NACRE_ASSIGN(const auto volume, open_offline(place, keys, secret_options));
  const auto report =
      volume->compact(fs::CompactionGoal::everything, [&](std::uint64_t done, std::uint64_t total) {
        printer.update({.stage = "trim", .done = done, .total = total});
      });
  const auto closed = close_offline(place, keys, *volume);
  if (!report) return tl::unexpected(report.error());
  NACRE_TRY(closed);
  return fs::to_json(*report);
}

Result<json> trim(const TrimArguments& arguments, ProgressPrinter& printer) {
  if (const auto mount = fs::find_nacre_mount(arguments.path)) return trim_mount(*mount, printer);
  const auto place = find_unmounted_volume(arguments.path);
  if (!place) return tl::unexpected(place.error());
  if (const auto mount = fs::find_mount_of_volume(place->path)) return trim_mount(*mount, printer);
  return trim_volume(*place, arguments.secret, printer);
}

int run(const TrimArguments& arguments) {
  ProgressPrinter printer(true);
  const auto report_json = trim(arguments, printer);
  printer.clear();
  if (!report_json) return report(report_json.error());
  const auto immovable = reply_number(*report_json, "immovable_segment_count");
  if (arguments.json) {
    print_as_json(*report_json);
  } else {
    print_safely("{} freed: {} segments rewritten, {} of them moved\n",
                 format_bytes(reply_number(*report_json, "freed_bytes")),
                 reply_number(*report_json, "segment_count"),
                 format_bytes(reply_number(*report_json, "moved_bytes")));
  }
  if (immovable == 0) return exit_fine;
  print_error(
      fmt::format("{} segments hold records that cannot be opened and stay as they are: run "
                  "fsck.nacre --deep to see which files are hit",
                  immovable));
  return exit_damage;
}

}  // namespace

void add_trim_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("trim", "Free the space of overwritten and deleted data");
  auto arguments = std::make_shared<TrimArguments>();
  command->add_option("VOLUME", arguments->path, "A volume's directory, or where one is mounted")
      ->required();
  command->add_flag("--json", arguments->json, "As JSON");
  add_secret_options(*command, arguments->secret);
  command->footer(
      "Examples:\n"
      "  nacre trim ~/private\n"
      "Exit status: 0 done, 2 usage, 4 damaged records are in the way, 8 failed,\n"
      "16 wrong key, 32 in use");
  command->callback([&action, arguments] { action = [arguments] { return run(*arguments); }; });
}

}  // namespace nacre::tools
