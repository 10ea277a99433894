// SPDX-License-Identifier: Apache-2.0
// Repairs of volumes in memory: what holds of every one of them.
#pragma once

#include <map>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "fs/check/checker.h"
#include "fs/repair/repair.h"
#include "tests/fs/store_fixture.h"
#include "tests/fs/volume_fixture.h"

namespace nacre::tests {

// Both copies of a superblock and of a keyring, which repairs want to be there.
void store_superblock_and_keyring(MemoryBacking& backing, std::uint32_t chunk_size_bytes);

metadata::VolumeKeys opened_keys(std::uint32_t chunk_size_bytes, std::uint64_t keyring_generation);

// Everything that a repair may change: rows as "table key", and all files but those of db/, the
// plans, and the ballast.
std::map<std::string, std::string> state_of(const std::shared_ptr<MemoryBacking>& backing);

// Returns the differences, one a line, or an empty text. (GoogleTest's own comparison of maps takes
// minutes to print them.)
std::string difference(const std::map<std::string, std::string>& a,
                       const std::map<std::string, std::string>& b);

class Repairer {
 public:
  Repairer(std::shared_ptr<MemoryBacking> backing, metadata::VolumeKeys volume);

  Result<fs::RepairDraft> plan(const fs::RepairOptions& options = {});
  // Plans, saves, applies; the plan's name is empty where there was nothing to do.
  struct Done {
    fs::RepairDraft draft;
    std::string name;
  };
  Result<Done> repair(const fs::RepairOptions& options = {});
  // The same, after a dry run with the same seed. Its plan must have the same hash, so a repair
  // does exactly what the dry run showed, whatever the damage.
  Result<Done> repair_as_shown(fs::RepairOptions options = {});
  fs::CheckReport check();

  // Repairs. Expects the volume to be clean then, a second repair to have nothing to do, an undo to
  // restore every byte, and another repair to give the same result.
  Done expect_repaired(const fs::RepairOptions& options = {});

 private:
  std::shared_ptr<MemoryBacking> backing_;
  metadata::VolumeKeys volume_;
  std::unique_ptr<engine::Engine> engine_;
};

std::string text_of(const fs::FindingList& findings);
std::string text_of(const fs::RepairPlan& plan);

}  // namespace nacre::tests
