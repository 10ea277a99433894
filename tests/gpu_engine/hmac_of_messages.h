// SPDX-License-Identifier: Apache-2.0
// hmac_of_message.cuh on a device, a thread a message.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "gpu_engine/cuda/kernels/tasks.h"

namespace nacre::engine::cuda {

struct HmacTask {
  const Byte* key;
  const Byte* message;
  std::uint32_t key_size;
  std::uint32_t size;
  Byte* digest;  // 32 bytes: of HMAC, or with hmac_no_key as the size of SHA-256
};
inline constexpr std::uint32_t hmac_no_key = UINT32_MAX;

cudaError_t hmac_of_messages(const HmacTask* tasks, std::uint32_t count, cudaStream_t stream);

}  // namespace nacre::engine::cuda
