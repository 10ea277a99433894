// SPDX-License-Identifier: Apache-2.0
// The shape of a device, and launches of kernels whose blocks need more than 48 KiB of dynamic
// shared memory, which CUDA allows only after a call. Thread-safe.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace nacre::engine::cuda {

// How many bytes of shared memory a block can have on every supported device; sm_75 has no more. A
// kernel that needs more has a second version for such devices.
inline constexpr int shared_bytes_least = 65536;

// The shape of the current device.
struct DeviceShape {
  int multiprocessors;
  int shared_bytes_max;  // how much shared memory a block can have
};

inline cudaError_t device_shape(DeviceShape& shape) {
  int device = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error == cudaSuccess)
    error = cudaDeviceGetAttribute(&shape.multiprocessors, cudaDevAttrMultiProcessorCount, device);
  if (error == cudaSuccess)
    error = cudaDeviceGetAttribute(&shape.shared_bytes_max, cudaDevAttrMaxSharedMemoryPerBlockOptin,
                                   device);
  return error;
}

// shared_bytes: at most DeviceShape::shared_bytes_max.
template <typename... Parameters>
cudaError_t launch_sharing(void (*kernel)(Parameters...), std::uint32_t blocks,
                           std::uint32_t threads, int shared_bytes, cudaStream_t stream,
                           Parameters... arguments) {
  const cudaError_t error =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes);
  if (error != cudaSuccess) return error;
  kernel<<<blocks, threads, shared_bytes, stream>>>(arguments...);
  return cudaGetLastError();
}

}  // namespace nacre::engine::cuda
