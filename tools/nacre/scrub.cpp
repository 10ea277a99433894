// SPDX-License-Identifier: Apache-2.0
// nacre scrub VOLUME|MOUNTPOINT: verifies every checksum of a volume. A mounted volume does it
// itself while it is used, and this command starts, watches and steers that. A volume that is not
// mounted is read here, without a key. With a key the command names the files that are hit.
#include <unistd.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "fs/check/checker.h"
#include "fs/control/control_client.h"
#include "fs/control/mount_table.h"
#include "fs/scrub/rate_limit.h"
#include "metadata/backing/volume_lock.h"
#include "tools/cli/command_line.h"
#include "tools/cli/engine_option.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/hardening.h"
#include "tools/cli/size_argument.h"
#include "tools/cli/terminal.h"
#include "tools/cli/volume_access.h"
#include "tools/fsck/fsck_report.h"
#include "tools/nacre/commands.h"
#include "tools/nacre/scrub_report.h"

namespace nacre::tools {

namespace {

using fs::ScrubCommand;
using nlohmann::json;

constexpr std::chrono::milliseconds watch_interval{500};

struct ScrubArguments {
  std::string path;
  SecretOptions secret;
  std::string rate;
  std::string engine;
  bool background = false;
  bool pause = false;
  bool resume = false;
  bool stop = false;
  bool status = false;
  bool json = false;

  bool has_key() const { return secret.names_passphrase() || !secret.identity.empty(); }
  ScrubCommand command() const {
    if (pause) return ScrubCommand::pause;
    if (resume) return ScrubCommand::resume;
    if (stop) return ScrubCommand::stop;
    return status ? ScrubCommand::status : ScrubCommand::begin;
  }
};

Result<json> ask(const fs::MountEntry& mount, ScrubCommand command,
                 std::optional<std::uint64_t> rate) {
  NACRE_ASSIGN(auto client, fs::ControlClient::connect(mount));
  return client.scrub(command, rate);
}

// Watches the scrub until it ends or is paused.
Result<json> watch(const fs::MountEntry& mount, json scrub, ProgressPrinter& printer) {
  while (text_of(scrub, "state") == "running") {
    printer.update({.stage = "scrub",
                    .done = number_of(scrub, "done_bytes"),
                    .total = number_of(scrub, "total_bytes")});
    std::this_thread::sleep_for(watch_interval);
    auto now = ask(mount, ScrubCommand::status, {});
    if (!now) {
      return fail(now.error().code,
                  fmt::format("{}. A scrub that was under way goes on with the next mount",
                              now.error().message));
    }
    scrub = std::move(*now);
  }
  return scrub;
}

int scrub_mount(const fs::MountEntry& mount, const ScrubArguments& arguments,
                std::optional<std::uint64_t> rate, ProgressPrinter& printer) {
  if (!arguments.engine.empty()) {
    return report({ErrorCode::invalid_argument,
                   fmt::format("--engine: {} is scrubbed with the engine that it was mounted with",
                               mount.mountpoint)});
  }
  auto scrub = ask(mount, arguments.command(), rate);
  const bool watches = !arguments.background && (arguments.command() == ScrubCommand::begin ||
                                                 arguments.command() == ScrubCommand::resume);
  if (scrub && watches) scrub = watch(mount, std::move(*scrub), printer);
  printer.clear();
  if (!scrub) return report(scrub.error());
  if (arguments.json) {
    print_as_json(*scrub);
  } else {
    print_scrub(mount.mountpoint, *scrub);
    if (number_of(*scrub, "damage_count") != 0) {
      print_safely(
          "To see what a repair would do, once it is unmounted: fsck.nacre --repair --dry-run {}\n",
          printable(mount.source));
    }
  }
  if (!text_of(*scrub, "error").empty()) return exit_operational;
  return number_of(*scrub, "damage_count") == 0 ? exit_fine : exit_damage;
}

Result<fs::CheckReport> scrub_volume(const ScrubArguments& arguments, std::uint64_t rate,
                                     ProgressPrinter& printer) {
  fs::RateLimit limit(rate);
  const fs::ScrubOptions options{
      .progress = [&](const fs::Progress& state) { printer.update(state); },
      .passed = [&](std::uint64_t bytes) -> Result<> {
        std::this_thread::sleep_for(limit.after(bytes, fs::RateLimit::Clock::now()));
        return {};
      }};
  NACRE_ASSIGN(const auto choice,
               parse_engine(arguments.engine.empty() ? "auto" : arguments.engine));
  const bool has_key = arguments.has_key();
  VolumePlace place;
  if (has_key) {
    NACRE_ASSIGN(place, find_volume(arguments.path));
  } else {
    NACRE_ASSIGN(place, open_place(arguments.path));
    NACRE_ASSIGN(const auto state, metadata::inspect_directory(*place.directory));
    if (state != metadata::DirectoryState::volume && state != metadata::DirectoryState::damaged) {
      return fail(ErrorCode::not_found,
                  fmt::format("{} is neither a volume nor where one is mounted", arguments.path));
    }
  }
  NACRE_ASSIGN(const auto lock,
               metadata::VolumeLock::acquire(place.path, {.mode = metadata::LockMode::shared}));
  metadata::VolumeKeys volume;
  if (has_key) {
    NACRE_ASSIGN(const auto secret, read_secret(arguments.secret, place.path));
    NACRE_ASSIGN(volume, unlock_quietly(place, secret, arguments.secret));
    warn_of_legacy_cipher(place, volume.superblock, volume.keyring);
  }
  NACRE_ASSIGN(const auto engine,
               engine::Engine::create(engine_options(
                   choice, [](std::string_view text) { print_error(std::string(text)); })));
  return has_key ? fs::scrub_volume(place.directory, volume, *engine, options)
                 : fs::scrub_volume(*place.directory, *engine, options);
}

int scrub_offline(const ScrubArguments& arguments, std::uint64_t rate, ProgressPrinter& printer) {
  if (arguments.command() != ScrubCommand::begin || arguments.background) {
    return report({ErrorCode::invalid_argument,
                   fmt::format("{} is not mounted: --pause, --resume, --stop, --status and "
                               "--background are for a mounted volume; nacre stats with a key "
                               "tells what its last scrub found",
                               arguments.path)});
  }
  harden_process();
  const auto checked = scrub_volume(arguments, rate, printer);
  printer.clear();
  if (!checked) return report(checked.error());
  if (arguments.json) {
    print_report_json(arguments.path, *checked);
  } else {
    print_report(arguments.path, *checked);
    print_advice(arguments.path, *checked, arguments.has_key());
  }
  return checked->findings.error_count() == 0 ? exit_fine : exit_damage;
}

std::optional<fs::MountEntry> mount_of(const std::string& path) {
  if (auto mount = fs::find_nacre_mount(path)) return std::move(*mount);
  const auto place = open_place(path);
  return place ? fs::find_mount_of_volume(place->path) : std::nullopt;
}

int run(const ScrubArguments& arguments) {
  std::optional<std::uint64_t> rate;
  if (!arguments.rate.empty()) {
    const auto parsed = parse_size(arguments.rate);
    if (!parsed) return report(parsed.error());
    rate = *parsed;
  }
  ProgressPrinter printer(!arguments.json || ::isatty(STDERR_FILENO) != 0);
  if (const auto mount = mount_of(arguments.path)) {
    return scrub_mount(*mount, arguments, rate, printer);
  }
  return scrub_offline(arguments, rate.value_or(0), printer);
}

}  // namespace

void add_scrub_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("scrub", "Verify every checksum of a volume");
  auto arguments = std::make_shared<ScrubArguments>();
  command->add_option("VOLUME", arguments->path, "A volume's directory, or where one is mounted")
      ->required();
  command->add_option("--rate", arguments->rate,
                      "Read at most this many bytes a second; 0: no limit. The default is 64M for "
                      "a mounted volume, and no limit for one that is not");
  auto* begin = command->add_flag("--background", arguments->background,
                                  "Return at once; the mounted volume continues");
  auto* pause =
      command->add_flag("--pause", arguments->pause, "Pause the scrub, also across mounts");
  auto* resume = command->add_flag("--resume", arguments->resume, "Continue a paused scrub");
  auto* stop = command->add_flag("--stop", arguments->stop, "Give the scrub up");
  auto* status = command->add_flag("--status", arguments->status, "Only show its state");
  pause->excludes(resume)->excludes(stop)->excludes(status)->excludes(begin);
  stop->excludes(resume)->excludes(status)->excludes(begin);
  status->excludes(resume)->excludes(begin);
  command->add_flag("--json", arguments->json, "As JSON");
  command
      ->add_option("--engine", arguments->engine,
                   "What computes the checksums of a volume that is not mounted: auto, cpu or cuda")
      ->check(CLI::IsMember({"auto", "cpu", "cuda"}));
  add_secret_options(*command, arguments->secret);
  command->footer(
      "A mounted volume does the scrub itself: Ctrl-C ends only the watching.\n"
      "Examples:\n"
      "  nacre scrub ~/private                      while it is used; Ctrl-C is safe\n"
      "  nacre scrub --rate 200M /srv/vault         not mounted: needs no passphrase\n"
      "Exit status: 0 nothing found, 2 usage, 4 damage found, 8 failed, 16 wrong key,\n"
      "32 in use");
  command->callback([&action, arguments] { action = [arguments] { return run(*arguments); }; });
}

}  // namespace nacre::tools
