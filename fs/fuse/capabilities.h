// SPDX-License-Identifier: Apache-2.0
// What the kernel does not say in a request: the capabilities of the process that made it.
#pragma once

#include <sys/types.h>

namespace nacre::fs {

// Whether the process has the capability (CAP_*) in its effective set, as /proc tells. False for
// process 0 (one of another PID namespace) and for a process that is gone.
bool has_capability(pid_t process, unsigned capability);

}  // namespace nacre::fs
