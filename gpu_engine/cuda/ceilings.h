// SPDX-License-Identifier: Apache-2.0
// Measures the bandwidths of the current device's connections: medians of several large copies.
#pragma once

#include "gpu_engine/engine.h"

namespace nacre::engine::cuda {

// Errors: out_of_memory, io.
Result<DeviceCeilings> measure_ceilings();

}  // namespace nacre::engine::cuda
