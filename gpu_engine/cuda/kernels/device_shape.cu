// SPDX-License-Identifier: Apache-2.0
// Asks the driver; see the header.
#include "gpu_engine/cuda/kernels/device_shape.h"

namespace nacre::engine::cuda {

cudaError_t device_shape(DeviceShape& shape) {
  int device = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error == cudaSuccess)
    error = cudaDeviceGetAttribute(&shape.multiprocessors, cudaDevAttrMultiProcessorCount, device);
  if (error == cudaSuccess)
    error = cudaDeviceGetAttribute(&shape.shared_bytes_max, cudaDevAttrMaxSharedMemoryPerBlockOptin,
                                   device);
  return error;
}

}  // namespace nacre::engine::cuda
