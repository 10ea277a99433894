// SPDX-License-Identifier: Apache-2.0
#include "fs/check/checker.h"

#include <set>

#include <fmt/format.h>

#include "fs/check/chunk_walker.h"
#include "fs/check/path_finder.h"
#include "metadata/backing/two_copies.h"

namespace nacre::fs {

namespace {

// Adds an error of reading the superblock or the keyring. Its message begins with the file's whole
// path, which becomes the finding's file.
void add_located(const metadata::BackingDirectory& directory, const Error& error,
                 FindingList& findings) {
  const std::string folder = directory.description() + "/";
  for (const std::string_view name : {metadata::superblock_file, metadata::keyring_file}) {
    for (const std::string& file : {std::string(name), metadata::copy_name(name)}) {
      if (!error.message.starts_with(folder + file + ": ")) continue;
      return findings.add_error({error.code, error.message.substr(folder.size())}, file);
    }
  }
  findings.add_error(error);
}
void add_warnings(const metadata::BackingDirectory& directory, const std::vector<Error>& warnings,
                  FindingList& findings) {
  for (const Error& warning : warnings)
    add_located(directory, warning, findings);
}

// Adds the error that kept the database from being opened, with the file that the error names.
void add_database_error(const Error& error, FindingList& findings) {
  const std::string folder = fmt::format("{}/", metadata::database_folder);
  const std::string opening = fmt::format("opening the database: {}", folder);
  const std::size_t begin = error.message.starts_with(opening) ? opening.size() - folder.size() : 0;
  const auto end = error.message.find(": ", begin);
  if (error.message.compare(begin, folder.size(), folder) != 0 || end == std::string::npos) {
    return findings.add_error(error);
  }
  findings.add_error({error.code, error.message.substr(begin)},
                     error.message.substr(begin, end - begin));
}

// Verifies the CRCs of a database that cannot be opened. The file that the error names has its
// finding already.
Result<> scrub_unopened_database(metadata::BackingDirectory& directory, const Error& error,
                                 ScrubCounts& counts, FindingList& findings,
                                 const ScrubOptions& options) {
  FindingList all;
  NACRE_TRY(scrub_database(directory, {}, counts, all, options));
  for (const Finding& finding : all.findings()) {
    if (error.message.find(finding.file + ": ") == std::string::npos) findings.add(finding);
  }
  return {};
}

class Check {
 public:
  Check(const std::shared_ptr<metadata::BackingDirectory>& directory,
        const metadata::VolumeKeys& volume, engine::Engine& engine, const CheckOptions& options,
        const ProgressFunction& progress)
      : directory_(directory),
        volume_(volume),
        engine_(engine),
        options_(options),
        progress_(progress) {}

  Result<CheckReport> run() {
    add_warnings(*directory_, volume_.warnings, report_.findings);
    auto database = metadata::Database::open(directory_, volume_.keys, {.read_only = true});
    if (database) {
      check_generation(**database);
      check_superblock_generation(**database);
      NACRE_TRY(check_rows(**database));
    } else {
      add_database_error(database.error(), report_.findings);
    }
    if (options_.scrub || options_.deep) {
      if (database) {
        NACRE_TRY(check_records(**database));
      } else {
        NACRE_TRY(check_records_without_rows());
      }
      if (!report_.scrub) report_.scrub.emplace();
      if (database) {
        NACRE_TRY(scrub_database(*directory_, needed_files(**database), *report_.scrub,
                                 report_.findings, {.progress = progress_}));
      } else {
        NACRE_TRY(scrub_unopened_database(*directory_, database.error(), *report_.scrub,
                                          report_.findings, {.progress = progress_}));
      }
    }
    if (database) add_paths(**database);
    return std::move(report_);
  }

 private:
  // The database has the generation of the newest keyring that the volume was used with.
  void check_generation(const metadata::Database& database) {
    const auto value = database.get(metadata::Table::system, metadata::system_key_keyring);
    if (!value || !*value) return;  // the structure check reports it
    const auto known = metadata::decode_u64(**value);
    if (!known || *known <= volume_.keyring.generation) return;
    report_.findings.add({.verdict = Verdict::rolled_back,
                          .what = fmt::format("the keyring is of generation {}, but the volume was "
                                              "used with generation {}: an older one was put back. "
                                              "Restore the newer keyring",
                                              volume_.keyring.generation, *known),
                          .file = std::string(metadata::keyring_file)});
  }

  // The same check of the superblock, in format 2.
  void check_superblock_generation(const metadata::Database& database) {
    const auto value = database.get(metadata::Table::system, metadata::system_key_superblock);
    if (!value || !*value) return;
    const auto noted = metadata::decode_u64(**value);
    if (!noted) return;  // the structure check says so
    const auto newest = metadata::check_noted_generation(volume_.superblock.generation, *noted);
    if (newest) return;
    report_.findings.add({.verdict = Verdict::rolled_back,
                          .what = newest.error().message,
                          .file = std::string(metadata::superblock_file)});
  }

  Result<> check_rows(const metadata::Database& database) {
    auto counts = check_structure({.directory = *directory_,
                                   .database = database,
                                   .volume_id = volume_.keys->volume_id(),
                                   .chunk_size_bytes = volume_.superblock.chunk_size_bytes,
                                   .findings = report_.findings,
                                   .progress = progress_});
    if (!counts) return add_or_fail(counts.error());
    report_.structure = *counts;
    return {};
  }

  Result<> check_records(const metadata::Database& database) {
    const auto mode = options_.deep ? DeepCheckMode::open : DeepCheckMode::checksum;
    const RecordKeys keys(database, volume_.keys);
    NACRE_ASSIGN(const auto visitor, DeepCheck::create(engine_, keys, mode, report_.findings));
    const auto walked =
        walk_chunks(*directory_, database, volume_.keys->volume_id(), *visitor, progress_);
    visitor->finish();
    if (walked) {
      report_.records = visitor->counts();
      return {};
    }
    NACRE_TRY(add_or_fail(walked.error()));
    return check_records_without_rows();
  }

  // If the rows cannot be read, only the segments themselves can be checked.
  Result<> check_records_without_rows() {
    if (!report_.scrub) report_.scrub.emplace();
    return scrub_segments(*directory_, engine_, volume_.keys->volume_id(), *report_.scrub,
                          report_.findings, {.progress = progress_});
  }

  Result<> add_or_fail(const Error& error) {
    if (error.code == ErrorCode::out_of_memory) return tl::unexpected(error);
    report_.findings.add_error(error);
    return {};
  }

  std::optional<std::set<std::string>> needed_files(const metadata::Database& database) {
    auto files = database.needed_files();
    if (files) return std::move(*files);
    report_.findings.add_error(files.error(), "db");
    return std::nullopt;
  }

  void add_paths(const metadata::Database& database) {
    std::set<metadata::InodeNumber> inodes;
    for (const auto& finding : report_.findings.findings()) {
      if (finding.inode) inodes.insert(*finding.inode);
    }
    const auto paths = find_paths(database, inodes);
    if (!paths) return;  // names that cannot be read have been reported
    for (auto& finding : report_.findings.findings()) {
      if (!finding.inode) continue;
      const auto found = paths->find(*finding.inode);
      if (found != paths->end()) finding.paths = found->second;
    }
  }

  const std::shared_ptr<metadata::BackingDirectory>& directory_;
  const metadata::VolumeKeys& volume_;
  engine::Engine& engine_;
  const CheckOptions& options_;
  const ProgressFunction& progress_;
  CheckReport report_;
};

}  // namespace

Result<CheckReport> check_volume(const std::shared_ptr<metadata::BackingDirectory>& directory,
                                 const metadata::VolumeKeys& volume, engine::Engine& engine,
                                 const CheckOptions& options, const ProgressFunction& progress) {
  return Check(directory, volume, engine, options, progress).run();
}

Result<CheckReport> scrub_volume(metadata::BackingDirectory& directory, engine::Engine& engine,
                                 const ScrubOptions& options) {
  CheckReport report;
  std::optional<engine::VolumeId> volume_id;
  if (const auto superblock = metadata::find_superblock(directory)) {
    volume_id = superblock->superblock.claims.volume_id;
    add_warnings(directory, superblock->warnings, report.findings);
  } else if (superblock.error().code == ErrorCode::unsupported) {
    // Only the newer Nacre can tell damage from a change of the format.
    return tl::unexpected(superblock.error());
  } else if (superblock.error().code == ErrorCode::not_found) {
    report.findings.add({.verdict = Verdict::missing,
                         .what = "both copies of the superblock are missing; put one back from a "
                                 "backup",
                         .file = std::string(metadata::superblock_file)});
  } else {
    add_located(directory, superblock.error(), report.findings);
  }
  if (const auto keyring = metadata::find_keyring(directory)) {
    add_warnings(directory, keyring->warnings, report.findings);
  } else {
    add_located(directory, keyring.error(), report.findings);
  }
  report.scrub.emplace();
  NACRE_TRY(scrub_segments(directory, engine, volume_id, *report.scrub, report.findings, options));
  NACRE_TRY(scrub_database(directory, {}, *report.scrub, report.findings, options));
  return report;
}

Result<CheckReport> scrub_volume(const std::shared_ptr<metadata::BackingDirectory>& directory,
                                 const metadata::VolumeKeys& volume, engine::Engine& engine,
                                 const ScrubOptions& options) {
  CheckReport report;
  FindingList& findings = report.findings;
  add_warnings(*directory, volume.warnings, findings);
  report.scrub.emplace();
  const auto database = metadata::Database::open(directory, volume.keys, {.read_only = true});
  std::optional<std::set<std::string>> needed;
  if (database) {
    NACRE_TRY(scrub_known_segments(*directory, engine, **database, volume.keys->volume_id(),
                                   *report.scrub, findings, options));
    auto files = (*database)->needed_files();
    if (files) {
      needed = std::move(*files);
    } else {
      findings.add_error(files.error(), "db");
    }
  } else {
    add_database_error(database.error(), findings);
    NACRE_TRY(scrub_segments(*directory, engine, volume.keys->volume_id(), *report.scrub, findings,
                             options));
    NACRE_TRY(
        scrub_unopened_database(*directory, database.error(), *report.scrub, findings, options));
    return report;
  }
  NACRE_TRY(scrub_database(*directory, needed, *report.scrub, findings, options));
  return report;
}

}  // namespace nacre::fs
