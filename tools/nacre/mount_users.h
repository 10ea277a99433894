// SPDX-License-Identifier: Apache-2.0
// Who keeps a mount from being unmounted: other mounts within it, and processes.
#pragma once

#include <string>

#include "fs/control/mount_table.h"

namespace nacre::tools {

// For a message: "/mnt/a is mounted within it (unmount that first)", "process 7 (bash) has its
// current directory in it". Looks at the kernel's tables alone, and sees no processes of others
// unless it is root.
std::string who_uses(const fs::MountEntry& mount);

}  // namespace nacre::tools
