// SPDX-License-Identifier: Apache-2.0
// DES and 3DES (FIPS 46-3, EDE with three keys) in plain modes over arrays of tasks. The output
// equals that of cipher/block_cipher.h.
//
// As for AES (crypt.h), arrays of tasks are aligned to 16 bytes, workspaces (device memory) to 256.
// A task's IV or first counter is the first half of iv; the counter has 64 bits.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "gpu_engine/cipher/forms.h"
#include "gpu_engine/cuda/kernels/des_key.h"
#include "gpu_engine/cuda/kernels/keys.h"
#include "gpu_engine/cuda/kernels/tasks.h"
#include "gpu_engine/cuda/kernels/tile_plan.h"

namespace nacre::engine::cuda {

// How many DES passes a cipher of the family makes over a block; 0 for AES.
constexpr int des_pass_count(CipherFamily family) {
  return family == CipherFamily::des ? 1 : family == CipherFamily::des_ede3 ? des_passes_max : 0;
}

// pass_count, here and below: 1 for DES, 3 for 3DES, the same for all keys. A key begins with the
// cipher's key. For form cbc_hmac the key for IVs follows, which is equally long, and then the HMAC
// key. The SHA-256 states of the HMAC key go to suites, which is nullptr if no key has this form.
cudaError_t des_expand_keys(const RawKey* keys, std::uint32_t count, int pass_count,
                            DesKey* expanded, ExpandedSuiteKey* suites, cudaStream_t stream);

// In bytes, for count tasks of at most total_bytes in all.
std::size_t des_crypt_workspace_size(std::uint32_t count, std::uint64_t total_bytes);

// ECB, CTR and CBC decryption spread a message over all warps, 32 blocks a thread. CBC encryption
// and OFB give each message to one thread, and 32 neighbours to a warp, so neighbours should be
// about equally long. A task whose key is no_key gets zeros.
cudaError_t des_crypt(int pass_count, CryptMode mode, CryptDirection direction,
                      const CryptTask* tasks, std::uint32_t count, std::uint64_t total_bytes,
                      const DesKey* keys, void* workspace, cudaStream_t stream);

// A unit is what one thread processes at a time: 32 blocks.
inline constexpr std::uint32_t des_unit_bytes = 32 * 8;
inline constexpr std::uint32_t des_units_per_tile = 32;

// previous_blocks: scratch memory for CBC decryption, one element for each tile of the plan.
cudaError_t des_crypt_parallel(int pass_count, CryptMode mode, CryptDirection direction,
                               const CryptTask* tasks, const TilePlanWorkspace& plan,
                               const DesKey* keys, uint2* previous_blocks, cudaStream_t stream);

cudaError_t des_crypt_serial(int pass_count, CryptMode mode, const CryptTask* tasks,
                             std::uint32_t count, const DesKey* keys, cudaStream_t stream);

}  // namespace nacre::engine::cuda
