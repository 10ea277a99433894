// SPDX-License-Identifier: Apache-2.0
// Finds, among all records, the newest checkpoint of which every part is there, and tells whether
// the records come from two histories of the volume.
//
// A copy of the volume that was written to has the same keys and goes on with the same numbers. So
// its checkpoint may have the higher number. What tells the histories apart is the write sessions:
// each has a random salt, and its row is durable before anything that it writes. So a checkpoint
// knows all sessions of its own history that came before it.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "fs/salvage/salvage_scan.h"
#include "metadata/format/checkpoint_stream.h"

namespace nacre::fs {

struct FoundCheckpoint {
  metadata::CheckpointNumber number;
  std::uint32_t session = 0;  // that wrote it: index into FoundRecords::sessions
  metadata::CheckpointRoot root;
  std::vector<const FoundRecord*> parts;
  std::map<std::string, std::string> system_rows;

  // Visits all rows of the checkpoint. May be called again.
  Result<> read(RecordOpener& opener, const metadata::VisitRow& visit) const;
};

// Empty if there is no whole checkpoint. Each newer one that is not whole is skipped, with an error
// among the findings. A checkpoint of a later key epoch is newer, whatever the numbers say: nothing
// is written under an older epoch once there is a newer one.
Result<std::optional<FoundCheckpoint>> find_checkpoint(FoundRecords& records, RecordOpener& opener,
                                                       FindingList& findings);

// The write sessions, as indexes into records.sessions, that are of another history than the
// checkpoint: they are older than it is, and it does not know them. Error: corrupt if the
// checkpoint's rows make no sense.
Result<std::vector<std::uint32_t>> sessions_of_another_history(const FoundCheckpoint& checkpoint,
                                                               const FoundRecords& records);

}  // namespace nacre::fs
