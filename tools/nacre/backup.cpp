// SPDX-License-Identifier: Apache-2.0
// nacre backup VOLUME|MOUNTPOINT TARGET: makes TARGET a complete volume with what the source holds,
// and copies what is not there yet. For a mounted volume the daemon says which files
// belong together and keeps them in place meanwhile, while writers continue. No key is needed,
// because sealed bytes are only copied.
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <string>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "fs/backup/backup.h"
#include "fs/backup/backup_target.h"
#include "fs/backup/closed_volume.h"
#include "fs/check/checker.h"
#include "fs/control/control_client.h"
#include "fs/control/mount_table.h"
#include "metadata/backing/volume_lock.h"
#include "metadata/text/exact_bytes.h"
#include "tools/cli/command_line.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/size_argument.h"
#include "tools/cli/terminal.h"
#include "tools/cli/volume_access.h"
#include "tools/nacre/commands.h"
#include "tools/nacre/mounted_volume.h"

namespace nacre::tools {

namespace {

using nlohmann::json;

constexpr std::chrono::milliseconds backup_info_patience{30'000};
constexpr std::size_t finding_count_max = 20;

struct BackupArguments {
  std::string path;
  std::string target;
  std::string rate;
  bool verify = false;
  bool json = false;
};

struct Outcome {
  std::string target;
  fs::BackupReport copied;
  std::optional<fs::CheckReport> verified;
};

// The volume that a path on the command line means, and where its files are.
struct Source {
  VolumePlace place;
  std::optional<fs::MountEntry> mount;  // a writable mount, whose daemon must be asked
  std::string mountpoint;               // of any mount
};

Result<Source> source_of_mount(const fs::MountEntry& mount) {
  NACRE_ASSIGN(auto client, fs::ControlClient::connect(mount));
  NACRE_ASSIGN(const auto info, client.request("info", backup_info_patience));
  const auto text = [&](const char* name) {
    const auto at = info.find(name);
    return at != info.end() && at->is_string() ? at->get<std::string>() : std::string();
  };
  NACRE_ASSIGN(auto place, open_place(metadata::get_bytes(info, "volume").value_or("")));
  NACRE_TRY(client.check_serves(mount, place.path));
  const auto superblock = metadata::find_superblock(*place.directory);
  if (!superblock || hex(superblock->superblock.claims.volume_id) != text("volume_id")) {
    return fail(
        ErrorCode::not_found,
        fmt::format("{} is not the volume that is mounted at {} any more: its directory was "
                    "moved; unmount it and give the directory",
                    place.path, mount.mountpoint));
  }
  Source source{.place = std::move(place), .mountpoint = mount.mountpoint};
  if (!mount.read_only) source.mount = mount;
  return source;
}

Result<Source> find_source(const std::string& path) {
  if (const auto mount = fs::find_nacre_mount(path)) return source_of_mount(*mount);
  auto place = find_unmounted_volume(path);
  if (!place) return tl::unexpected(place.error());
  if (const auto mount = fs::find_mount_of_volume(place->path)) return source_of_mount(*mount);
  return Source{.place = std::move(*place)};
}

bool is_within(const std::string& path, const std::string& folder) {
  return path == folder || path.starts_with(folder == "/" ? folder : folder + "/");
}

// The copy must not lie within its source, nor the source within the copy.
Result<> check_apart(const Source& source, const VolumePlace& target) {
  const auto refuse = [&](std::string_view why) {
    return fail(ErrorCode::invalid_argument, fmt::format("{} {}; give a folder elsewhere, best on "
                                                         "another disk",
                                                         target.path, why));
  };
  struct stat status {};
  struct stat source_status {};
  if (::stat(target.path.c_str(), &status) != 0 ||
      ::stat(source.place.path.c_str(), &source_status) != 0) {
    return fail(ErrorCode::io, fmt::format("{}: {}", target.path, strerror(errno)));
  }
  if (status.st_dev == source_status.st_dev && status.st_ino == source_status.st_ino) {
    return refuse("is the volume itself");
  }
  if (is_within(target.path, source.place.path)) return refuse("lies within the volume");
  if (is_within(source.place.path, target.path)) return refuse("holds the volume itself");
  if (!source.mountpoint.empty() && is_within(target.path, source.mountpoint)) {
    return refuse("lies within the mounted volume");
  }
  if (source.mount && ::gnu_dev_major(status.st_dev) == source.mount->device_major &&
      ::gnu_dev_minor(status.st_dev) == source.mount->device_minor) {
    return refuse("lies within the mounted volume");
  }
  return {};
}

Result<VolumePlace> open_target(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    return fail(errno == EACCES   ? ErrorCode::permission
                : errno == ENOENT ? ErrorCode::not_found
                                  : ErrorCode::io,
                fmt::format("{}: {}", path, strerror(errno)));
  }
  return open_place(path);
}

Result<fs::BackupReport> copy(const Source& source, const VolumePlace& target,
                              fs::BackupOptions options, ProgressPrinter& printer) {
  const auto progress = [&](const fs::Progress& state) { printer.update(state); };
  if (!source.mount) {
    const auto lock =
        metadata::VolumeLock::acquire(source.place.path, {.mode = metadata::LockMode::shared});
    if (!lock && lock.error().code == ErrorCode::busy) {
      return fail(ErrorCode::busy, fmt::format("{}. Run nacre backup there, or unmount it first",
                                               lock.error().message));
    }
    if (!lock) return tl::unexpected(lock.error());
    NACRE_ASSIGN(const auto what, fs::list_closed_volume(*source.place.directory));
    return fs::back_up(*source.place.directory, what, *target.directory, options, progress);
  }
  // Root may not look into another user's mount.
  if (const auto written = write_back(source.mount->mountpoint);
      !written && written.error().code != ErrorCode::permission &&
      written.error().code != ErrorCode::no_space) {
    return tl::unexpected(written.error());
  }
  // The files stay in place as long as the connection is open.
  NACRE_ASSIGN(auto client, fs::ControlClient::connect(*source.mount));
  NACRE_ASSIGN(auto snapshot, client.begin_backup());
  options.check_hold = [&](std::chrono::milliseconds patience) {
    return client.check_backup(patience);
  };
  return fs::back_up(*source.place.directory, {.snapshot = std::move(snapshot)}, *target.directory,
                     options, progress);
}

Result<Outcome> back_up(const BackupArguments& arguments, ProgressPrinter& printer) {
  fs::BackupOptions options;
  if (!arguments.rate.empty()) {
    NACRE_ASSIGN(options.rate_bytes_per_second, parse_size(arguments.rate));
  }
  NACRE_ASSIGN(const auto source, find_source(arguments.path));
  NACRE_ASSIGN(const auto target, open_target(arguments.target));
  NACRE_TRY(check_apart(source, target));
  // This comes before the lock, which would make a file in a folder that is not ours.
  NACRE_TRY(fs::check_backup_target(*source.place.directory, *target.directory));
  NACRE_ASSIGN(const auto lock,
               metadata::VolumeLock::acquire(target.path, {.mode = metadata::LockMode::exclusive}));
  Outcome outcome{.target = target.path};
  NACRE_ASSIGN(outcome.copied, copy(source, target, options, printer));
  if (arguments.verify) {
    NACRE_ASSIGN(const auto engine, engine::Engine::create({.choice = engine::EngineChoice::cpu}));
    NACRE_ASSIGN(
        outcome.verified,
        fs::scrub_volume(*target.directory, *engine,
                         {.progress = [&](const fs::Progress& state) { printer.update(state); }}));
  }
  return outcome;
}

void print(const Outcome& outcome, bool as_json) {
  const fs::BackupReport& copied = outcome.copied;
  if (!as_json) {
    print_safely(
        "{}: {} in {} files; {} in {} files copied, {} removed{}\n", printable(outcome.target),
        format_bytes(copied.total_bytes), copied.file_count, format_bytes(copied.copied_bytes),
        copied.copied_file_count, copied.removed_file_count,
        outcome.verified && outcome.verified->findings.error_count() == 0 ? "; verified" : "");
    return;
  }
  json object = {{"file_count", copied.file_count},
                 {"total_bytes", copied.total_bytes},
                 {"copied_file_count", copied.copied_file_count},
                 {"copied_bytes", copied.copied_bytes},
                 {"removed_file_count", copied.removed_file_count},
                 {"damage_count", copied.damage_count}};
  metadata::put_bytes(object, "target", outcome.target);
  if (outcome.verified) {
    object["verify_error_count"] = outcome.verified->findings.error_count();
  }
  print_as_json(object);
}

// Reports damage in the source and in the target.
int report_damage(const Outcome& outcome) {
  int code = exit_fine;
  if (const auto count = outcome.copied.damage_count; count > 0) {
    for (std::size_t i = 0; i < std::min(outcome.copied.damage.size(), finding_count_max); ++i)
      print_error(printable(outcome.copied.damage[i].message));
    print_error(
        fmt::format("{} places of the source are damaged, and were copied as they are where "
                    "the backup did not have them; fsck.nacre --deep says which files are "
                    "hit",
                    count));
    code = exit_damage;
  }
  if (outcome.verified && outcome.verified->findings.error_count() > 0) {
    std::size_t shown = 0;
    for (const fs::Finding& finding : outcome.verified->findings.findings()) {
      if (finding.severity != fs::Severity::error || shown++ == finding_count_max) continue;
      print_error(printable(fmt::format("{}/{}: {}", outcome.target, finding.file, finding.what)));
    }
    print_error(
        "the backup is damaged: remove the files named above and run nacre backup again, "
        "which copies them anew");
    code = exit_damage;
  }
  return code;
}

int run(const BackupArguments& arguments) {
  ProgressPrinter printer(true);
  const auto outcome = back_up(arguments, printer);
  printer.clear();
  if (!outcome) return report(outcome.error());
  print(*outcome, arguments.json);
  return report_damage(*outcome);
}

}  // namespace

void add_backup_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "backup", "Make a folder a complete copy of a volume, mounted or not; copy what is new");
  auto arguments = std::make_shared<BackupArguments>();
  command->add_option("VOLUME", arguments->path, "A volume's directory, or where one is mounted")
      ->required();
  command
      ->add_option("TARGET", arguments->target,
                   "An empty folder, or one that holds an earlier backup of this volume")
      ->required();
  command->add_option("--rate", arguments->rate,
                      "Bytes to copy in a second at most; K, M and G count in powers of 1024");
  command->add_flag("--verify", arguments->verify,
                    "Read the whole backup afterwards and check every checksum in it");
  command->add_flag("--json", arguments->json, "As JSON");
  command->footer(
      "TARGET is a volume: mount it, or copy it back. Needs no passphrase.\n"
      "Examples:\n"
      "  nacre backup ~/private /mnt/stick/private\n"
      "  nacre backup --verify --rate 20M /srv/vault /mnt/stick/vault\n"
      "Exit status: 0 done, 2 usage, 4 damage was found, 8 failed, 32 in use");
  command->callback([&action, arguments] { action = [arguments] { return run(*arguments); }; });
}

}  // namespace nacre::tools
