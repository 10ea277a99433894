// SPDX-License-Identifier: Apache-2.0
// Suites that authenticate, over arrays of tasks: AES-GCM, and AES-CTR, AES-CBC, DES-CBC
// or 3DES-CBC with HMAC-SHA256.
// Same bytes as cipher/aead.h.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "gpu_engine/cuda/kernels/keys.h"
#include "gpu_engine/cuda/kernels/tasks.h"

namespace nacre::engine::cuda {

// total_bytes: of all tasks, their additional data included.
std::size_t aead_workspace_size(std::uint32_t count, std::uint64_t total_bytes);

// form: of all the tasks' keys; gcm, ctr_hmac or cbc_hmac (which takes whole blocks). Tags are 16
// bytes for gcm, else 32.
cudaError_t aead_seal(KeyForm form, const AeadTask* tasks, std::uint32_t count,
                      std::uint64_t total_bytes, KeyTable keys, void* workspace,
                      cudaStream_t stream);

// All tags are compared before anything is decrypted. verdicts[i]: 1, or 0 where the tag does not
// match, and then the task's output is zeros.
cudaError_t aead_open(KeyForm form, const AeadTask* tasks, std::uint32_t count,
                      std::uint64_t total_bytes, KeyTable keys, std::uint32_t* verdicts,
                      void* workspace, cudaStream_t stream);

}  // namespace nacre::engine::cuda
