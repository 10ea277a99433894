// SPDX-License-Identifier: Apache-2.0
// A volume that is not mounted, opened for a command that changes something in it.
#pragma once

#include <memory>

#include "fs/mount/mounted.h"
#include "tools/cli/volume_access.h"

namespace nacre::tools {

// Opens it for writing, without background compaction. The caller holds the exclusive lock. Errors:
// unsupported if this version must not write to it; not_permitted if it is older than what was seen
// of it; those of fs::Mounted::open().
Result<std::unique_ptr<fs::Mounted>> open_offline(
    const VolumePlace& place, const metadata::VolumeKeys& keys, const SecretOptions& secret_options,
    engine::EngineOptions engine = {.choice = engine::EngineChoice::cpu});

// Closes it. What is durable then is noted as seen.
Result<> close_offline(const VolumePlace& place, const metadata::VolumeKeys& keys,
                       fs::Mounted& volume);

}  // namespace nacre::tools
