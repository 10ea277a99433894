// SPDX-License-Identifier: Apache-2.0
// A damaged db/ made anew beside the old one: all rows that can be read; where rows are gone, those
// of the last checkpoint; and where those of chunks are, the newest records of their chunks. What
// is as of an earlier moment is told, row by row.
//
// What is made is not yet consistent: the repair is planned with it as with any other database.
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

// Where a row came from whose newest state may be lost.
enum class RowSource : std::uint8_t {
  older_row,   // an older row of db/ itself
  checkpoint,  // the last checkpoint
  records,     // the newest records of a chunk that lie in segments
  guess,       // numbers and write sessions, from what else there is
};
std::string_view to_string(RowSource source);

struct OlderRows {
  metadata::Table table = metadata::Table::system;
  RowSource source = RowSource::older_row;
  std::optional<metadata::InodeNumber> inode;  // whose they are
  std::uint64_t count = 0;
  std::vector<std::string> paths;
};

struct DatabaseReport {
  FindingList damage;                              // of files of db/
  bool may_have_lost_groups = false;               // the log lacks changes
  bool has_manifest = true;                        // else removed rows may be back
  std::uint64_t lost_range_count = 0;              // stretches of keys of which rows are gone
  std::optional<std::int64_t> checkpoint_seconds;  // since 1970; of the one that was used
  std::vector<OlderRows> older;
};

// None: db/ is sound. A medium that does not read a part of it says nothing of that part, which may
// be whole: io then, with the part, unless accept_unreadable counts it as lost. Errors: missing (no
// db/), out_of_memory.
Result<std::unique_ptr<metadata::DatabaseRescue>> find_database_damage(
    const std::shared_ptr<metadata::BackingDirectory>& directory,
    const std::shared_ptr<const metadata::KeyTree>& keys, bool accept_unreadable);

// view is directory with an empty place for db/ (database_view.h). Errors: missing (nothing of db/
// can be read: salvage does more), no_space, io, out_of_memory.
Result<DatabaseReport> rebuild_database(
    const std::shared_ptr<metadata::BackingDirectory>& directory,
    const std::shared_ptr<metadata::BackingDirectory>& view, const metadata::DatabaseRescue& rescue,
    const metadata::VolumeKeys& volume, engine::Engine& engine, const ProgressFunction& progress);

}  // namespace nacre::fs
