// SPDX-License-Identifier: Apache-2.0
// The scrub of a volume that is not mounted: verifies every CRC of its segments and of db/, without
// any key, in large payloads of the engine. It finds rot, not malice, and can run wherever the
// bytes lie.
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
  // Bytes behind the last good record of a segment of which only the sealed database knows whether
  // they count.
  std::uint64_t unverified_bytes = 0;
};

struct ScrubOptions {
  ProgressFunction progress = {};
  // After each stretch of so many bytes: may wait, to keep to a rate; its error ends the scrub.
  std::function<Result<>(std::uint64_t bytes)> passed = {};
};

// Every segment file; volume_id: none when not even the superblock says it. Without keys nobody
// knows how much of a segment was committed, so a tail that does not verify is a note ("unverified
// tail"), not damage.
Result<> scrub_segments(metadata::BackingDirectory& directory, engine::Engine& engine,
                        const std::optional<engine::VolumeId>& volume_id, ScrubCounts& counts,
                        FindingList& findings, const ScrubOptions& options);

// The same up to the sizes that the database knows: a finding names the files that are hit, or says
// that none is. Errors are the database's too.
Result<> scrub_known_segments(metadata::BackingDirectory& directory, engine::Engine& engine,
                              const metadata::Database& database, const engine::VolumeId& volume_id,
                              ScrubCounts& counts, FindingList& findings,
                              const ScrubOptions& options);

// Every file of db/. needed: Database::needed_files(); none when nobody can tell (no key, or a
// database that does not open). Damage in a file that nothing depends on is a note: an unclean stop
// leaves such files. One that cannot be read is an error always. Where only the name speaks, it
// speaks for LOG, OPTIONS and *.dbtmp.
Result<> scrub_database(metadata::BackingDirectory& directory,
                        const std::optional<std::set<std::string>>& needed, ScrubCounts& counts,
                        FindingList& findings, const ScrubOptions& options);

}  // namespace nacre::fs
