// SPDX-License-Identifier: Apache-2.0
// Makes a damaged db/ anew, next to the old one. The new db/ has all rows that can be read. Lost
// rows come from the last checkpoint, and lost rows of chunks from the newest records of their
// chunks. The report lists each row that may be older than the lost one.
//
// The new database is not consistent yet; a repair is planned with it as with any other.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fs/check/finding.h"
#include "gpu_engine/engine.h"
#include "metadata/rescue/database_rescue.h"
#include "metadata/volume_files.h"

namespace nacre::fs {

// The source of a row whose newest state may be lost.
enum class RowSource : std::uint8_t {
  older_row,   // an older version of the row in db/
  checkpoint,  // the last checkpoint
  records,     // the newest records of a chunk in segments
  guess,       // numbers and write sessions, derived from other data
};
std::string_view to_string(RowSource source);

struct OlderRows {
  metadata::Table table = metadata::Table::system;
  RowSource source = RowSource::older_row;
  std::optional<metadata::InodeNumber> inode;  // the inode that the rows belong to
  std::uint64_t count = 0;
  std::vector<std::string> paths;
};

struct DatabaseReport {
  FindingList damage;                              // damage of files in db/
  bool may_have_lost_groups = false;               // changes are missing in the log
  bool has_manifest = true;                        // false: removed rows may be back
  std::uint64_t lost_range_count = 0;              // ranges of keys in which rows are gone
  std::optional<std::int64_t> checkpoint_seconds;  // since 1970; of the checkpoint that was used
  std::vector<OlderRows> older;
};

// Returns null if db/ is sound. If the medium cannot read a part of db/, that part may still be
// whole; so the error is then io, with the part, unless accept_unreadable counts it as lost. Other
// errors: missing if there is no db/; out_of_memory.
Result<std::unique_ptr<metadata::DatabaseRescue>> find_database_damage(
    const std::shared_ptr<metadata::BackingDirectory>& directory,
    const std::shared_ptr<const metadata::KeyTree>& keys, bool accept_unreadable);

// view is directory with an empty folder in the place of db/ (database_view.h). Errors: missing if
// no row of db/ can be read, in which case a salvage recovers more; no_space; io; out_of_memory.
Result<DatabaseReport> rebuild_database(
    const std::shared_ptr<metadata::BackingDirectory>& directory,
    const std::shared_ptr<metadata::BackingDirectory>& view, const metadata::DatabaseRescue& rescue,
    const metadata::VolumeKeys& volume, engine::Engine& engine, const ProgressFunction& progress);

}  // namespace nacre::fs
