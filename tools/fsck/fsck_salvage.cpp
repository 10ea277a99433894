// SPDX-License-Identifier: Apache-2.0
#include "tools/fsck/fsck_salvage.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <nlohmann/json.hpp>

#include "fs/salvage/salvage.h"
#include "gpu_engine/engine.h"
#include "metadata/backing/volume_lock.h"
#include "metadata/text/exact_bytes.h"
#include "metadata/text/rfc3339.h"
#include "tools/cli/command_line.h"
#include "tools/cli/engine_option.h"
#include "tools/cli/exit_code.h"
#include "tools/cli/hardening.h"
#include "tools/cli/terminal.h"
#include "tools/cli/volume_access.h"
#include "tools/cli/volume_age_check.h"
#include "tools/fsck/fsck_report.h"

namespace nacre::tools {
namespace {

constexpr std::size_t shown_files_max = 50;
constexpr std::size_t shown_gaps_max = 8;  // of one file

Result<VolumePlace> make_target(const std::string& path, const VolumePlace& source) {
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    return fail(errno == EACCES ? ErrorCode::permission : ErrorCode::io,
                fmt::format("cannot make the directory {}: {}", path, strerror(errno)));
  }
  NACRE_ASSIGN(auto place, open_place(path));
  const auto within = (std::filesystem::path(place.path) / "").string();
  if (within.starts_with(source.path + "/")) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("{} lies within the volume that is to be salvaged", path));
  }
  return place;
}

Result<fs::SalvageReport> run(const SalvageArguments& arguments, ProgressPrinter& printer) {
  NACRE_ASSIGN(const auto source, find_volume(arguments.volume));
  NACRE_ASSIGN(const auto target, make_target(arguments.target, source));
  NACRE_TRY(metadata::check_volume_place(*target.directory));
  NACRE_ASSIGN(const auto source_lock,
               metadata::VolumeLock::acquire(source.path, {.mode = metadata::LockMode::shared}));
  NACRE_ASSIGN(const auto target_lock, metadata::VolumeLock::acquire(target.path, {}));
  NACRE_ASSIGN(const auto secret, read_secret(arguments.secret, source.path));
  NACRE_ASSIGN(const auto volume, unlock(source, secret, arguments.secret));
  NACRE_ASSIGN(const auto choice, parse_engine(arguments.engine));
  NACRE_ASSIGN(const auto engine,
               engine::Engine::create(engine_options(
                   choice, [](std::string_view text) { print_error(std::string(text)); })));
  NACRE_ASSIGN(auto report,
               fs::salvage_volume(
                   *source.directory, volume, target.directory, *engine,
                   [&](const fs::Progress& state) { printer.update(state); }, arguments.history));
  remember_new_volume(target, *volume.keys);
  note_made_age(target, volume);
  return report;
}

nlohmann::json file_json(const fs::SalvagedFile& file) {
  nlohmann::json gaps = nlohmann::json::array();
  for (const auto& gap : file.gaps)
    gaps.push_back({{"offset", gap.offset}, {"size", gap.size}});
  nlohmann::json json = {{"inode", file.inode.value},
                         {"size", file.size},
                         {"chunk_count", file.chunk_count},
                         {"pieced_chunk_count", file.pieced_count},
                         {"gaps", std::move(gaps)}};
  metadata::put_bytes(json, "name", file.name);
  metadata::put_bytes(json, "paths", file.paths);
  return json;
}

void print_gaps(const fs::SalvagedFile& file) {
  std::size_t shown = 0;
  for (const auto& gap : file.gaps) {
    if (++shown > shown_gaps_max) break;
    print_safely("  zeros, not known: {} bytes at {}\n", gap.size, gap.offset);
  }
  if (file.gaps.size() > shown_gaps_max) {
    print_safely("  … and {} more gaps (all: --json)\n", file.gaps.size() - shown_gaps_max);
  }
}

void print_json(const SalvageArguments& arguments, const fs::SalvageReport& report) {
  nlohmann::json json = {{"version", NACRE_VERSION},
                         {"checkpoint", nullptr},
                         {"inode_count", report.inode_count},
                         {"record_count", report.record_count},
                         {"lost_record_count", report.lost_record_count},
                         {"stored_bytes", report.stored_bytes},
                         {"scanned_bytes", report.scanned_bytes},
                         {"error_count", report.findings.error_count()},
                         {"dropped_finding_count", report.findings.dropped_count()},
                         {"findings", to_json(report.findings)},
                         {"lost_and_found", nlohmann::json::array()}};
  metadata::put_bytes(json, "volume", arguments.volume);
  metadata::put_bytes(json, "target", arguments.target);
  if (report.checkpoint_seconds) {
    json["checkpoint"] = metadata::rfc3339(*report.checkpoint_seconds);
  }
  for (const auto& file : report.newer)
    json["lost_and_found"].push_back(file_json(file));
  print_as_json(json);
}

void print_text(const SalvageArguments& arguments, const fs::SalvageReport& report) {
  print_findings(report.findings);
  if (report.checkpoint_seconds) {
    print_safely("{} files and directories as of {}, {} records, {}\n", report.inode_count,
                 metadata::rfc3339(*report.checkpoint_seconds), report.record_count,
                 format_bytes(report.stored_bytes));
  } else {
    print_safely("no checkpoint was found: names, owners and times are lost\n");
  }
  std::size_t shown = 0;
  for (const auto& file : report.newer) {
    if (++shown > shown_files_max) break;
    print_safely("newer: lost+found/{}, {} in {} chunks{}\n", file.name, format_bytes(file.size),
                 file.chunk_count,
                 file.paths.empty() ? "" : fmt::format(", of {}", printable(file.paths.front())));
    print_gaps(file);
  }
  if (report.newer.size() > shown_files_max) {
    print_safely("… and {} more\n", report.newer.size() - shown_files_max);
  }
  const auto errors = report.findings.error_count();
  print_safely("{}: salvaged from {}, {}\n", printable(arguments.target),
               printable(arguments.volume),
               errors == 0 ? "with nothing lost that the checkpoint names"
                           : fmt::format("with {} {} of what is lost", errors,
                                         errors == 1 ? "finding" : "findings"));
  print_safely("{} was not changed: keep it until {} has what you need\n",
               printable(arguments.volume), printable(arguments.target));
}

}  // namespace

int salvage(const SalvageArguments& arguments) {
  harden_process();
  // The new volume is opened and closed here. Its messages are meant for the log of a
  // mount, so only warnings are shown.
  spdlog::set_level(spdlog::level::warn);
  ProgressPrinter printer(!arguments.json || ::isatty(STDERR_FILENO) != 0);
  const auto salvaged = run(arguments, printer);
  printer.clear();
  if (!salvaged) return report(salvaged.error());
  if (arguments.json) {
    print_json(arguments, *salvaged);
  } else {
    print_text(arguments, *salvaged);
  }
  if (std::fflush(stdout) != 0) {
    print_error("the report could not be written");
    return exit_operational;
  }
  return salvaged->findings.error_count() == 0 ? exit_corrected : exit_damage;
}

}  // namespace nacre::tools
