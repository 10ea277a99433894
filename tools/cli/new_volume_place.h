// SPDX-License-Identifier: Apache-2.0
// Whether a folder is a place for a new volume, asked before anything is made there.
#pragma once

#include <string>

#include "gpu_engine/base/result.h"

namespace nacre::tools {

// Whether a volume can be made at this path; for a check before the user is asked for a passphrase.
// The place may be missing, an empty directory, or hold what an interrupted mkfs.nacre left.
// Changes nothing. Errors, each with a message for the user: exists, not_empty, busy (a volume is
// mounted there), permission, read_only, not_found (the folder that would hold it), io.
Result<> check_new_volume_place(const std::string& path);

}  // namespace nacre::tools
