// SPDX-License-Identifier: Apache-2.0
// How much of a kernel a device runs at once. Any host thread.
#pragma once

#include <cuda_runtime.h>

namespace nacre::engine::cuda {

// What a block may share on every device, on sm_75 not a byte more: what needs more there has
// another way.
inline constexpr int shared_bytes_least = 65536;

// Of the current device.
struct DeviceShape {
  int multiprocessors;
  int shared_bytes_max;  // a block may have
};
cudaError_t device_shape(DeviceShape& shape);

}  // namespace nacre::engine::cuda
