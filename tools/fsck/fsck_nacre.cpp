// SPDX-License-Identifier: Apache-2.0
// fsck.nacre: checks a volume that is not mounted, and repairs it when asked to.
//
//   (nothing)   structure: superblock, keyring, every row of every table against the others
//   --scrub     also every CRC of segments and db/; without other options it needs no key
//   --salvage   makes the volume anew in another directory (fsck_salvage.h)
//   --deep      also opens every record: authenticates, decompresses, compares with the maps
//   --repair    plans a repair, writes the plan down, makes it; --dry-run, --undo (fsck_repair.h)
#include <unistd.h>

#include <cstdio>
#include <memory>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "fs/check/checker.h"
#include "fs/control/control_client.h"
#include "fs/repair/plan_hash.h"
#include "gpu_engine/engine.h"
#include "metadata/backing/volume_lock.h"
#include "tools/cli/command_line.h"
#include "tools/cli/engine_option.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/hardening.h"
#include "tools/cli/help_text.h"
#include "tools/cli/terminal.h"
#include "tools/cli/volume_access.h"
#include "tools/cli/volume_age_check.h"
#include "tools/fsck/fsck_repair.h"
#include "tools/fsck/fsck_report.h"
#include "tools/fsck/fsck_salvage.h"

namespace nacre::tools {
namespace {

struct Arguments {
  std::string volume;
  SecretOptions secret;
  OutsideWitnessOptions witness;
  bool scrub = false;
  bool deep = false;
  RepairArguments repair;
  bool json = false;
  std::string engine = "auto";
  std::string salvage_target;
  std::string salvage_history;

  bool wants_keys() const {
    return deep || !scrub || secret.names_passphrase() || !secret.identity.empty() ||
           witness.is_named();
  }
};

// Nobody may write during the check; other checks and read-only mounts may read.
Result<metadata::VolumeLock> lock(const VolumePlace& place) {
  auto held = metadata::VolumeLock::acquire(place.path, {.mode = metadata::LockMode::shared});
  if (!held && held.error().code == ErrorCode::busy) {
    const auto mount = fs::find_mount_by_lock(place.path);
    return fail(ErrorCode::busy,
                fmt::format("{}. Unmount it first: a mounted volume changes while it is checked{}",
                            held.error().message,
                            mount ? fmt::format(" (nacre umount {0}). 'nacre scrub {0}' verifies "
                                                "all checksums while it is mounted",
                                                mount->mountpoint)
                                  : ""));
  }
  return held;
}

Result<fs::CheckReport> check(const Arguments& arguments, ProgressPrinter& printer) {
  const auto progress = [&](const fs::Progress& state) { printer.update(state); };
  if (!arguments.wants_keys()) {
    NACRE_ASSIGN(const auto place, open_place(arguments.volume));
    NACRE_ASSIGN(const auto state, metadata::inspect_directory(*place.directory));
    // Without a superblock the rest can still be scrubbed, but an arbitrary directory is refused.
    if (state != metadata::DirectoryState::volume && state != metadata::DirectoryState::damaged) {
      NACRE_TRY(find_volume(arguments.volume));  // its message says more
      return fail(ErrorCode::not_found, fmt::format("{} is not a Nacre volume", arguments.volume));
    }
    NACRE_ASSIGN(const auto held, lock(place));
    NACRE_ASSIGN(const auto engine, engine::Engine::create({.choice = engine::EngineChoice::cpu}));
    return fs::scrub_volume(*place.directory, *engine, {.progress = progress});
  }
  NACRE_ASSIGN(const auto place, find_volume(arguments.volume));
  auto witness = arguments.witness;
  NACRE_TRY(settle_outside_witness(witness, place.path));
  // If another process holds the volume, the user learns it before typing a passphrase.
  NACRE_ASSIGN(const auto held, lock(place));
  NACRE_ASSIGN(const auto secret, read_secret(arguments.secret, place.path));
  NACRE_ASSIGN(const auto volume, unlock_quietly(place, secret, arguments.secret));
  warn_of_legacy_cipher(place, volume.superblock, volume.keyring);
  NACRE_ASSIGN(auto outside, open_outside_witness(witness, volume, print_warning));
  NACRE_TRY(check_age(place, volume, arguments.secret, outside ? &*outside : nullptr));
  NACRE_ASSIGN(const auto choice, parse_engine(arguments.engine));
  NACRE_ASSIGN(const auto engine,
               engine::Engine::create(engine_options(
                   choice, [](std::string_view text) { print_error(std::string(text)); })));
  return fs::check_volume(place.directory, volume, *engine,
                          {.scrub = arguments.scrub, .deep = arguments.deep}, progress);
}

int run(const Arguments& arguments) {
  if (!arguments.salvage_target.empty()) {
    return salvage({.volume = arguments.volume,
                    .target = arguments.salvage_target,
                    .history = arguments.salvage_history,
                    .secret = arguments.secret,
                    .engine = arguments.engine,
                    .json = arguments.json});
  }
  harden_process();
  if (arguments.repair.is_asked_for()) {
    return run_repair(arguments.volume, arguments.secret, arguments.witness, arguments.engine,
                      arguments.repair, arguments.json);
  }
  ProgressPrinter printer(!arguments.json || ::isatty(STDERR_FILENO) != 0);
  const auto checked = check(arguments, printer);
  printer.clear();
  if (!checked) return report(checked.error());
  if (arguments.json) {
    print_report_json(arguments.volume, *checked);
  } else {
    print_report(arguments.volume, *checked);
    print_advice(arguments.volume, *checked, arguments.wants_keys());
  }
  if (std::fflush(stdout) != 0) {
    print_error("the report could not be written");
    return exit_operational;
  }
  return checked->findings.error_count() == 0 ? exit_fine : exit_damage;
}

std::function<int()> add_arguments(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  // A script's unset variable gives an empty name. That must not turn the repair into a mere check.
  const CLI::Validator named(
      [](const std::string& name) { return name.empty() ? "it names nothing" : std::string(); },
      "");
  const CLI::Validator plan_hash(
      [](const std::string& hash) {
        return fs::seed_of_hash(hash) ? std::string() : "a plan's hash has 64 hexadecimal digits";
      },
      "");
  app.add_option("VOLUME", arguments->volume, "The volume's directory; it must not be mounted")
      ->required();
  app.add_flag("--scrub", arguments->scrub,
               "Verify every checksum of segments and database; without other options it needs "
               "no key");
  app.add_flag("--deep", arguments->deep,
               "Open every record as well: authenticate, decompress, compare with the maps");
  auto* repair = app.add_flag("--repair", arguments->repair.repair,
                              "Repair what is found; every record is opened for it");
  app.add_flag("--dry-run", arguments->repair.dry_run,
               "Only print what --repair or --undo would do");
  app.add_flag("--drop-damaged", arguments->repair.drop_damaged,
               "Replace what is lost by holes, which read as zeros")
      ->needs(repair);
  app.add_flag("--accept-unreadable", arguments->repair.accept_unreadable,
               "Treat what the disk cannot read of db/ as lost; older rows take its place")
      ->needs(repair);
  app.add_option("--expect-plan", arguments->repair.plan_hash,
                 "Repair only if the plan has this hash, which --dry-run prints; otherwise change "
                 "nothing")
      ->type_name("HASH")
      ->check(plan_hash)
      ->needs(repair);
  app.add_option("--undo", arguments->repair.undo,
                 "Undo the repair of this plan, if nothing changed since")
      ->type_name("PLAN")
      ->check(named)
      ->excludes(repair);
  app.add_option(
         "--salvage", arguments->salvage_target,
         "If db/ is lost: make a new volume in this directory from the segments; the directory "
         "is empty or does not exist yet")
      ->type_name("TARGET")
      ->check(named)
      ->excludes("--scrub")
      ->excludes("--deep")
      ->excludes("--repair")
      ->excludes("--dry-run")
      ->excludes("--undo");
  app.add_option("--history", arguments->salvage_history,
                 "If the segments hold two histories of the volume: the one that counts")
      ->type_name("HEX")
      ->check([](const std::string& text) {
        const bool is_name =
            text.size() >= 8 && text.find_first_not_of("0123456789abcdef") == text.npos;
        return is_name ? "" : "it has eight or more of the digits 0-9 and a-f";
      })
      ->needs("--salvage");
  app.add_flag("--json", arguments->json, "Report as JSON");
  app.add_option("--engine", arguments->engine, "What opens the records: auto, cpu or cuda")
      ->check(CLI::IsMember({"auto", "cpu", "cuda"}));
  add_secret_options(app, arguments->secret);
  add_outside_witness_options(app, arguments->witness);
  // A salvage makes a volume that may be older than what was seen, and its first mount says so.
  app.get_option("--salvage")->excludes("--witness")->excludes("--witness-command");
  mark_seldom(app, {"--drop-damaged", "--accept-unreadable", "--expect-plan", "--undo", "--history",
                    "--engine"});
  app.footer(
      "Examples:\n"
      "  fsck.nacre ~/vault                 structure: files, maps, space\n"
      "  fsck.nacre --scrub ~/vault         every checksum, without the passphrase\n"
      "  fsck.nacre --repair --dry-run ~/vault\n"
      "Exit status: 0 clean, 1 repaired or salvaged, 2 usage, 4 damage found or left,\n"
      "8 could not check, 16 wrong key, 32 in use");
  return [arguments] { return run(*arguments); };
}

}  // namespace
}  // namespace nacre::tools

int main(int argc, char** argv) {
  return nacre::tools::run_command_line("fsck.nacre", "Check a Nacre volume, and repair it", argc,
                                        argv, nacre::tools::add_arguments);
}
