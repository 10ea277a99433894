// SPDX-License-Identifier: Apache-2.0
// The text after -o: options for the file system, the volume and the kernel.
#pragma once

#include <string_view>

#include "fs/fuse/fuse_session.h"
#include "fs/mount/mounted.h"
#include "gpu_engine/base/result.h"

namespace nacre::fs {

// Reads "a,b=c,…" into the two. May be called several times; later options win. Options that only
// concern mount(8) and /etc/fstab are accepted and ignored. Error: invalid_argument, which names
// the option that is unknown or has a wrong value, and the possible ones.
Result<> parse_mount_options(std::string_view text, FuseOptions& fuse, VolumeOptions& volume);

}  // namespace nacre::fs
