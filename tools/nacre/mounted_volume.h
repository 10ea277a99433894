// SPDX-License-Identifier: Apache-2.0
// What the commands for a mounted volume do first: make the kernel hand over what it holds dirty.
#pragma once

#include <string>

#include "gpu_engine/base/result.h"

namespace nacre::tools {

// syncfs(2) on the mount point. It does not reach the daemon, but the kernel then sends the daemon
// the pages that programs wrote.
Result<> write_back(const std::string& mountpoint);

}  // namespace nacre::tools
