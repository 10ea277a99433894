// SPDX-License-Identifier: Apache-2.0
// What the current device's connections carry: large copies, medians of several.
#pragma once

#include "gpu_engine/engine.h"

namespace nacre::engine::cuda {

// out_of_memory, io.
Result<DeviceCeilings> measure_ceilings();

}  // namespace nacre::engine::cuda
