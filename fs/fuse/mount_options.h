// SPDX-License-Identifier: Apache-2.0
// The text after -o: what the file system, the volume and the kernel are told at mounting.
#pragma once

#include <string_view>

#include "fs/fuse/fuse_session.h"
#include "fs/mount/mounted.h"
#include "gpu_engine/base/result.h"

namespace nacre::fs {

// Reads "a,b=c,…" into the two; may be called several times, later options win. Options that only
// concern mount(8) and /etc/fstab are accepted and ignored. invalid_argument names the option that
// is not known, or whose value is not one, and what exists.
Result<> parse_mount_options(std::string_view text, FuseOptions& fuse, VolumeOptions& volume);

}  // namespace nacre::fs
