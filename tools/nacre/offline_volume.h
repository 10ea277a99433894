// SPDX-License-Identifier: Apache-2.0
// A volume that is not mounted, opened for a command that changes something in it.
#pragma once

#include <memory>

#include "fs/volume/volume.h"
#include "tools/cli/volume_access.h"

namespace nacre::tools {

// For writing, without background compaction; the caller holds the exclusive lock. unsupported when
// this version must not write to it; else the errors of fs::Volume::open().
Result<std::unique_ptr<fs::Volume>> open_offline(const VolumePlace& place,
                                                 const metadata::VolumeKeys& keys,
                                                 engine::EngineOptions engine = {
                                                     .choice = engine::EngineChoice::cpu});

}  // namespace nacre::tools
