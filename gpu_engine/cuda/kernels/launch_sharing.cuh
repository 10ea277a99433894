// SPDX-License-Identifier: Apache-2.0
// Launches a kernel whose blocks share more than 48 KiB, which has to be asked for.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace nacre::engine::cuda {

// shared_bytes: at most DeviceShape::shared_bytes_max. Any host thread.
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
