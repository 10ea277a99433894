// SPDX-License-Identifier: Apache-2.0
#include "fs/backup/closed_volume.h"

#include <fmt/format.h>

#include "fs/store/segment_table.h"
#include "fs/store/segment_walk.h"
#include "metadata/sealed_fs/epoch_switch.h"
#include "metadata/tables/database.h"
#include "metadata/volume_files.h"

namespace nacre::fs {

namespace {

bool is_for_people_or_unfinished(std::string_view name) {
  return name.starts_with("LOG") || name.ends_with(".dbtmp") || name == "CURRENT";
}

// A move to format 2 may have been cut off after the new keyring was written. Then files of db/ get
// their lasting names only when the volume is opened for writing.
Result<> check_no_switch(metadata::BackingDirectory& directory) {
  const auto keyring = metadata::find_keyring(directory);
  if (!keyring) return {};  // the copying reports the damage
  NACRE_ASSIGN(const bool has_unnamed,
               metadata::has_unnamed_files(directory, std::string(metadata::database_folder),
                                           keyring->keyring.claims.epochs.back().number));
  if (!has_unnamed) return {};
  return fail(ErrorCode::unsupported,
              fmt::format("{}: a rotation of keys was interrupted when it had just begun, so no "
                          "key would open a copy: mount the volume once for writing",
                          directory.description()));
}

Result<> add_segments(metadata::BackingDirectory& directory, BackupSource& source) {
  NACRE_ASSIGN(const auto names, directory.list(metadata::segment_folder));
  for (const std::string& name : names) {
    const std::string path = fmt::format("{}/{}", metadata::segment_folder, name);
    if (name.ends_with(arriving_suffix)) {
      return fail(ErrorCode::unsupported,
                  fmt::format("{}/{}: a backup into this volume was interrupted; run that one to "
                              "its end, or mount the volume once",
                              directory.description(), path));
    }
    if (!segment_number_of(name)) continue;
    NACRE_ASSIGN(const std::uint64_t size, directory.file_size(path));
    // A segment that is shorter than its header was never named by a commit.
    if (size < metadata::segment_header_size_bytes) continue;
    source.snapshot.files.push_back({.path = path, .size = size});
  }
  return {};
}

}  // namespace

Result<BackupSource> list_closed_volume(metadata::BackingDirectory& directory) {
  BackupSource source;
  NACRE_TRY(check_no_switch(directory));
  NACRE_TRY(add_segments(directory, source));
  const std::string current = fmt::format("{}/CURRENT", metadata::database_folder);
  auto content = metadata::read_file(directory, current);
  if (!content && content.error().code == ErrorCode::not_found) {
    return fail(ErrorCode::missing, content.error().message);
  }
  if (!content) return tl::unexpected(content.error());
  source.snapshot.current = std::move(*content);

  NACRE_ASSIGN(const auto names, directory.list(metadata::database_folder));
  std::size_t manifest_count = 0;
  std::size_t log_count = 0;
  for (const std::string& name : names) {
    if (is_for_people_or_unfinished(name)) continue;
    const std::string path = fmt::format("{}/{}", metadata::database_folder, name);
    NACRE_ASSIGN(const std::uint64_t size, directory.file_size(path));
    // A table that is shorter than its header was left by a killed daemon, and no manifest names
    // it.
    if (name.ends_with(".sst") && size < metadata::database_file_size_bytes_min) continue;
    source.snapshot.files.push_back({.path = path, .size = size});
    if (name.starts_with("MANIFEST-")) ++manifest_count;
    if (!name.ends_with(".log")) continue;
    ++log_count;
    NACRE_ASSIGN(const bool has_rows, metadata::log_has_rows(directory, path));
    source.is_clean &= !has_rows;
  }
  source.is_clean &= manifest_count == 1 && log_count == 1;
  return source;
}

}  // namespace nacre::fs
