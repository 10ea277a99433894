// SPDX-License-Identifier: Apache-2.0
// Small workloads for the crash tests. Each finds a volume that was just opened and leaves it open;
// steps between syncs are few, so that a crash between any two of them shows.
#pragma once

#include <cstdint>

#include "tests/crash/worked_volume.h"

namespace nacre::tests {

// Makes, links, renames, exchanges and removes files and directories, with xattrs, modes and
// symlinks.
void change_names(WorkedVolume& volume);
// Writes contents of a few bytes to many chunks, with holes, and cuts and punches them.
void change_contents(WorkedVolume& volume);
// Closes and opens the volume again and again, with files that were deleted while open.
void reopen_often(WorkedVolume& volume);
// Writes three or more checkpoints between changes, and one at closing.
void write_checkpoints(WorkedVolume& volume);
// Allocates and zeroes space, and grows files into it, between writes and truncations.
void allocate_and_zero(WorkedVolume& volume);
// Compacts half-dead segments between changes, and again after reopening.
void compact_often(WorkedVolume& volume);
// Writes more dirty bytes than one flush takes by default, as a stream and sparsely.
void write_much(WorkedVolume& volume);
// Does random steps, which are the same for the same seed.
void work_at_random(WorkedVolume& volume, std::uint64_t seed);

}  // namespace nacre::tests
