// SPDX-License-Identifier: Apache-2.0
// HMAC-SHA256 (RFC 2104) tags of the suites that encrypt first: docs/FORMAT.md, "Cipher suites".
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "gpu_engine/cuda/kernels/ghash.h"
#include "gpu_engine/cuda/kernels/keys.h"
#include "gpu_engine/cuda/kernels/tasks.h"

namespace nacre::engine::cuda {

// crypt_tasks[i].iv: message i's IV, of which the tag covers iv_bytes. plain_unit_bytes: what sizes
// must be multiples of; a message that is not does not match. compare_with_in: as ghash_tags().
cudaError_t hmac_tags(TagUse use, const AeadTask* tasks, std::uint32_t count,
                      std::uint32_t plain_unit_bytes, std::uint32_t iv_bytes,
                      const ExpandedSuiteKey* keys, CryptTask* crypt_tasks, std::uint32_t* verdicts,
                      cudaStream_t stream);

}  // namespace nacre::engine::cuda
