// SPDX-License-Identifier: Apache-2.0
// The scrub: verifies every CRC of a volume's segments and of db/, without any key. It finds rot,
// not malice, and can run wherever the bytes lie.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "fs/maintenance/finding.h"
#include "gpu_engine/record/record.h"
#include "metadata/backing/backing.h"
#include "metadata/format/rows.h"

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

// Every segment file; volume_id: none when not even the superblock says it. Without keys nobody
// knows how much of a segment was committed, so a tail that does not verify is a note ("unverified
// tail"), not damage.
Result<> scrub_segments(metadata::BackingDirectory& directory,
                        const std::optional<engine::VolumeId>& volume_id, ScrubCounts& counts,
                        FindingList& findings, const ProgressFunction& progress);

// Every file of db/. needed: Database::needed_files(); none when nobody can tell (no key, or a
// database that does not open). Damage in a file that nothing depends on is a note: an unclean stop
// leaves such files. One that cannot be read is an error always. Where only the name speaks, it
// speaks for LOG, OPTIONS and *.dbtmp.
Result<> scrub_database(metadata::BackingDirectory& directory,
                        const std::optional<std::set<std::string>>& needed, ScrubCounts& counts,
                        FindingList& findings, const ProgressFunction& progress);

}  // namespace nacre::fs
