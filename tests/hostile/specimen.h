// SPDX-License-Identifier: Apache-2.0
// Whole volumes in memory for the tests of hostile bytes, with every kind of file that a volume may
// have.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "metadata/volume_files.h"
#include "tests/hostile/observed_tree.h"
#include "tests/support/memory_backing.h"
#include "tests/support/open_volume.h"

namespace nacre::tests {

struct Specimen {
  std::string name;
  std::shared_ptr<MemoryBacking> backing;
  // The trees that it may show. The last one is complete. The others are what is left if the end of
  // a live log, for which nothing vouches, is gone.
  std::vector<ObservedTree> trees;
};

// One volume in several states, and another volume made in the same way.
struct Specimens {
  std::shared_ptr<MemoryBacking> early;  // before the keyring and half of the files changed
  Specimen closed;                       // with a repair plan
  Specimen killed;                       // changes in the live log
  // A backup whose copying ended before its files had their last names.
  Specimen arriving;
  // A volume of which some records were moved to format 2, and which was then closed. It has two
  // keys, two epochs and digests.
  Specimen moving;
  // A move to format 2 that was cut off after the new keyring was durable, and before all files of
  // db/ had their names.
  Specimen switching;
  std::shared_ptr<MemoryBacking> other;  // another volume, under the same secret
  std::string plan_name;
};
// The specimens are made once.
const Specimens& specimens();

fs::VolumeOptions specimen_options();
// Returns the keys that the secret of all specimens opens.
Result<metadata::VolumeKeys> open_specimen_keys(MemoryBacking& backing);
// Returns where the records lie that the rows name: by path, offset and size. Other records in a
// segment are dead, and their tags are never verified.
std::map<std::string, std::map<std::uint64_t, std::uint64_t>> named_records(
    const std::shared_ptr<MemoryBacking>& backing, const metadata::VolumeKeys& keys);
Result<OpenVolume> open_specimen(const std::shared_ptr<MemoryBacking>& backing,
                                 const metadata::VolumeKeys& keys, bool read_only = false);

}  // namespace nacre::tests
