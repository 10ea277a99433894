// SPDX-License-Identifier: Apache-2.0
// See the header.
#include "tests/gpu_engine/hmac_of_messages.h"

#include "tests/gpu_engine/hmac_of_message.cuh"

namespace nacre::engine::cuda {
namespace {

constexpr int threads_per_block = 32;

__global__ void compute(const HmacTask* tasks, std::uint32_t count) {
  const std::uint32_t index = blockIdx.x * threads_per_block + threadIdx.x;
  if (index >= count) return;
  const HmacTask& task = tasks[index];
  store_digest(task.key_size == hmac_no_key
                   ? sha256_of(Sha256State(), 0, task.message, task.size)
                   : hmac_of(task.key, task.key_size, task.message, task.size),
               task.digest);
}

}  // namespace

cudaError_t hmac_of_messages(const HmacTask* tasks, std::uint32_t count, cudaStream_t stream) {
  compute<<<(count + threads_per_block - 1) / threads_per_block, threads_per_block, 0, stream>>>(
      tasks, count);
  return cudaGetLastError();
}

}  // namespace nacre::engine::cuda
