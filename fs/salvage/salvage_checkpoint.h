// SPDX-License-Identifier: Apache-2.0
// Finds, among all records, the newest checkpoint of which every part is there.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "fs/salvage/salvage_scan.h"
#include "metadata/format/checkpoint_stream.h"

namespace nacre::fs {

struct FoundCheckpoint {
  metadata::CheckpointNumber number;
  metadata::CheckpointRoot root;
  std::vector<const FoundRecord*> parts;
  std::map<std::string, std::string> system_rows;

  // Visits all rows of the checkpoint. May be called again.
  Result<> read(RecordOpener& opener, const metadata::VisitRow& visit) const;
};

// Empty if there is no whole checkpoint. Each newer one that is not whole is skipped, with an error
// among the findings.
Result<std::optional<FoundCheckpoint>> find_checkpoint(FoundRecords& records, RecordOpener& opener,
                                                       FindingList& findings);

}  // namespace nacre::fs
