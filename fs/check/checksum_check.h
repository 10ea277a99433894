// SPDX-License-Identifier: Apache-2.0
// The scrub of a volume that is not mounted: verifies every CRC of its segments and of db/ in large
// payloads of the engine. scrub_segments() and scrub_database() need no key, so they can run on a
// server that only stores the volume; scrub_known_segments() needs the opened database. All find
// damage by the medium, not changes by an attacker.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>

#include "fs/check/finding.h"
#include "gpu_engine/engine.h"
#include "metadata/backing/backing.h"
#include "metadata/tables/database.h"

namespace nacre::fs {

struct ScrubCounts {
  std::uint64_t segment_count = 0;
  std::uint64_t record_count = 0;
  std::uint64_t segment_bytes = 0;
  std::uint64_t database_file_count = 0;
  std::uint64_t database_bytes = 0;
  // Bytes behind the last good record of a segment. Only the sealed database tells whether they
  // belong to the volume.
  std::uint64_t unverified_bytes = 0;
};

struct ScrubOptions {
  ProgressFunction progress = {};
  // Called after each stretch with its number of bytes. It may wait to keep to a rate. Its error
  // ends the scrub.
  std::function<Result<>(std::uint64_t bytes)> passed = {};
};

// Verifies all segment files. volume_id is nullopt if no superblock can be read. Without keys the
// committed size of a segment is not known, so a tail that does not verify is a note ("unverified
// tail") and no damage.
Result<> scrub_segments(metadata::BackingDirectory& directory, engine::Engine& engine,
                        const std::optional<engine::VolumeId>& volume_id, ScrubCounts& counts,
                        FindingList& findings, const ScrubOptions& options);

// The same up to the committed sizes in the database. A finding names the files that are damaged,
// or says that none is. Errors of the database are errors here, too.
Result<> scrub_known_segments(metadata::BackingDirectory& directory, engine::Engine& engine,
                              const metadata::Database& database, const engine::VolumeId& volume_id,
                              ScrubCounts& counts, FindingList& findings,
                              const ScrubOptions& options);

// Verifies all files of db/. needed is the result of Database::needed_files(), or nullopt if there
// is no key or the database does not open. Damage in a file that the database does not need is a
// note, because an unclean stop leaves such files. A file that cannot be read is always an error.
// If needed is nullopt, LOG*, OPTIONS-*, *.dbtmp and *.log.new* count as not needed by their names,
// and an error in a table or manifest says that a check with the key settles it.
Result<> scrub_database(metadata::BackingDirectory& directory,
                        const std::optional<std::set<std::string>>& needed, ScrubCounts& counts,
                        FindingList& findings, const ScrubOptions& options);

}  // namespace nacre::fs
