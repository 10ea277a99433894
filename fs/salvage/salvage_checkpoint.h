// SPDX-License-Identifier: Apache-2.0
// The newest checkpoint among found records of which every part is there.
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

  // Its rows once more, from the start.
  Result<> read(RecordOpener& opener, const metadata::VisitRow& visit) const;
};

// None when there is none. Those that are not whole are errors among the findings, and skipped.
Result<std::optional<FoundCheckpoint>> find_checkpoint(FoundRecords& records, RecordOpener& opener,
                                                       FindingList& findings);

}  // namespace nacre::fs
