// SPDX-License-Identifier: Apache-2.0
// Small workloads for the crash tests. Each finds a volume that was just opened and leaves it open;
// steps between syncs are few, so that a crash between any two of them shows.
#pragma once

#include <cstdint>

#include "tests/crash/worked_volume.h"

namespace nacre::tests {

// Files and directories made, linked, renamed, exchanged, removed; xattrs, modes, symlinks.
void change_names(WorkedVolume& volume);
// Contents of a few bytes to many chunks, with holes, cut and punched.
void change_contents(WorkedVolume& volume);
// The same volume closed and opened again, with files that were deleted while open.
void reopen_often(WorkedVolume& volume);
// Checkpoints between changes, three and more, and at closing.
void write_checkpoints(WorkedVolume& volume);
// Space set aside, zeroed, and grown into, beside writes and truncations.
void allocate_and_zero(WorkedVolume& volume);
// Segments that are half dead emptied between changes, and again after reopening.
void compact_often(WorkedVolume& volume);
// More dirty bytes than one flush takes by default: streamed, and sparse.
void write_much(WorkedVolume& volume);
// Steps by chance, the same for the same seed.
void work_at_random(WorkedVolume& volume, std::uint64_t seed);

}  // namespace nacre::tests
