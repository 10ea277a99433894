// SPDX-License-Identifier: Apache-2.0
// A mounted volume's counters as the control socket and `nacre stats --json` give them.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "fs/volume/volume.h"

namespace nacre::fs {

// Bytes and counts as numbers; names end in _bytes or _count.
nlohmann::json to_json(const VolumeStats& stats);
nlohmann::json to_json(const CompactionReport& report);

}  // namespace nacre::fs
