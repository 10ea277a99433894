// SPDX-License-Identifier: Apache-2.0
// What keeps a mount from being unmounted: other mounts within it, processes, loop devices.
#pragma once

#include <string>

#include "fs/control/mount_table.h"

namespace nacre::tools {

// For a message: "/mnt/a is mounted within it (unmount that first)", "process 7 (bash) has its
// current directory in it". Looks at the kernel's tables and asks no file system, and waits at most
// some seconds. Sees processes of other users only as root.
std::string who_uses(const fs::MountEntry& mount);

}  // namespace nacre::tools
