// SPDX-License-Identifier: Apache-2.0
// A volume that is not mounted, opened for a command that changes something in it.
#pragma once

#include <memory>

#include "fs/mount/mounted.h"
#include "tools/cli/volume_access.h"

namespace nacre::tools {

// For writing, without background compaction; the caller holds the exclusive lock. unsupported when
// this version must not write to it; not_permitted when it is older than what was seen of it; else
// the errors of fs::Mounted::open().
Result<std::unique_ptr<fs::Mounted>> open_offline(
    const VolumePlace& place, const metadata::VolumeKeys& keys, const SecretOptions& secret_options,
    engine::EngineOptions engine = {.choice = engine::EngineChoice::cpu});

// What is durable then is seen.
Result<> close_offline(const VolumePlace& place, const metadata::VolumeKeys& keys,
                       fs::Mounted& volume);

}  // namespace nacre::tools
