// SPDX-License-Identifier: Apache-2.0
// A mount from the lock to the last commit.
#pragma once

#include "metadata/volume_files.h"
#include "tools/mount/daemon.h"
#include "tools/mount/mount_plan.h"

namespace nacre::tools {

// Waits for a predecessor that is finishing, unlocks, mounts, serves until the volume is unmounted
// or a signal comes, commits and closes. Returns the exit code; errors have been printed (before
// the mount was usable) or logged (after). The plan has been checked; its paths are absolute. The
// secret is wiped as soon as the volume is unlocked.
int serve_volume(const MountPlan& plan, metadata::VolumeSecret secret, Readiness& readiness);

}  // namespace nacre::tools
