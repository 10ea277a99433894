// SPDX-License-Identifier: Apache-2.0
// The first step of commands for a mounted volume: make the kernel hand over its dirty pages.
#pragma once

#include <string>

#include "gpu_engine/base/result.h"

namespace nacre::tools {

// Calls syncfs(2) on the mount point. The call does not reach the daemon, but it makes the kernel
// send the daemon the pages that programs wrote.
Result<> write_back(const std::string& mountpoint);

}  // namespace nacre::tools
