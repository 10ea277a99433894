// SPDX-License-Identifier: Apache-2.0
// Block ciphers in plain modes over arrays of tasks. The bytes are those of cipher/block_cipher.h.
//
// Arrays of tasks begin at a multiple of 16. Workspaces are device memory, aligned to 256 bytes.
// For each launcher a function gives the size for that number of tasks and at most that many bytes
// in all.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "gpu_engine/cipher/forms.h"
#include "gpu_engine/cuda/kernels/keys.h"
#include "gpu_engine/cuda/kernels/tasks.h"

namespace nacre::engine::cuda {

// A task with this key is not run: its output becomes zeros.
inline constexpr std::uint32_t no_key = UINT32_MAX;

// The size for either of the two functions below.
std::size_t crypt_workspace_size(std::uint32_t count, std::uint64_t total_bytes);

// crypt() takes size_max, the longest task's size; any_size where only the device knows it. Short
// messages run faster when it is known.
inline constexpr std::uint64_t any_size = UINT64_MAX;

// AES. ECB, CTR and CBC decryption spread a message over all warps. CBC encryption and OFB give
// each message to one thread, and 32 neighbours to a warp, so neighbours should be about equally
// long.
cudaError_t crypt(CryptMode mode, CryptDirection direction, const CryptTask* tasks,
                  std::uint32_t count, std::uint64_t total_bytes, std::uint64_t size_max,
                  const CipherKeyGroup* keys, void* workspace, cudaStream_t stream);

// Under keys of the table's family: the function above, or des_crypt() (des.h).
cudaError_t crypt(CryptMode mode, CryptDirection direction, const CryptTask* tasks,
                  std::uint32_t count, std::uint64_t total_bytes, std::uint64_t size_max,
                  const KeyTable& keys, void* workspace, cudaStream_t stream);

}  // namespace nacre::engine::cuda
