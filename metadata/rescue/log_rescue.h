// SPDX-License-Identifier: Apache-2.0
// A log or manifest of which frames may be damaged: every record that lies in good frames.
//
// Behind a bad frame a record is taken to begin only where one must: a frame ends early when
// RocksDB flushes behind a record, so the frame behind a short one begins with a record.
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
  // Stored bytes of frames that cannot be read and that a good frame follows.
  std::uint64_t lost_bytes = 0;
  // Stored bytes behind the last good frame: torn by a crash, or damaged.
  std::uint64_t tail_bytes = 0;
  std::optional<LogWitness> witness;  // the last good one
  FileHeader header;                  // of a file that cannot be read at all the default
  std::optional<ManifestLink> link;   // of a manifest of format 2
  // Empty: no frame is damaged that was written after a later one was known to be on the medium.
  std::vector<Error> damage;
};

// Errors: not_found, out_of_memory. A file that cannot be read at all is all damage.
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
