// SPDX-License-Identifier: Apache-2.0
// Reads a log or manifest whose frames may be damaged: every record in good frames.
//
// After a bad frame, a record is assumed to begin only where one must: a frame ends early if
// RocksDB flushes after a record, so the frame after a short one begins with a record.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "metadata/backing/backing.h"
#include "metadata/keys/keys.h"
#include "metadata/sealed_fs/frame_layout.h"

namespace nacre::metadata {

struct RescuedLog {
  std::vector<std::string> records;
  std::uint64_t frame_count = 0;  // good frames, and those known to be missing before a good one
  // Stored bytes of frames that cannot be read, if a good frame follows them.
  std::uint64_t lost_bytes = 0;
  std::optional<LogWitness> witness;  // the last good one
  FileHeader header;                  // the default one if the file cannot be read at all
  std::optional<ManifestLink> link;   // of a manifest of format 2
  // Empty if no frame is damaged for which a later frame vouches.
  std::vector<Error> damage;
};

// Errors: not_found, out_of_memory. If a file cannot be read at all, all of it counts as damage.
Result<RescuedLog> rescue_log(BackingDirectory& directory, const std::string& path,
                              const KeyTree& keys);

struct NumberedLog {
  std::uint64_t number = 0;
  RescuedLog content;
};
// Takes out logs of other branches of the volume's history, whose keys are right, too: in format 2
// each log names the one before it by its salt. logs: oldest first. The numbers of those.
std::vector<std::uint64_t> drop_logs_of_other_branches(std::vector<NumberedLog>& logs);
// False where in format 2 neither the newest log knows the manifest nor the manifest one of the
// logs.
bool is_of_their_branch(const RescuedLog& manifest, const std::vector<NumberedLog>& logs);

}  // namespace nacre::metadata
