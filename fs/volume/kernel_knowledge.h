// SPDX-License-Identifier: Apache-2.0
// What the kernel knows of a volume that is closed, and opened again behind the same mount: the
// kernel names files by the numbers of their inodes, which are the volume's own, and does not
// notice. It holds numbers only.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "metadata/format/rows.h"

namespace nacre::fs {

struct KernelKnowledge {
  // How often each inode was looked up, and not forgotten. Those among them whose last name is gone
  // live on.
  std::vector<std::pair<metadata::InodeNumber, std::uint64_t>> lookups;
  // Inodes that were made without a name and may still get one.
  std::vector<metadata::InodeNumber> linkable;
};

}  // namespace nacre::fs
