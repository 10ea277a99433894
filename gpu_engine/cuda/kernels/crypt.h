// SPDX-License-Identifier: Apache-2.0
// Block ciphers in plain modes over arrays of tasks. The output equals that of
// cipher/block_cipher.h.
//
// Arrays of tasks are aligned to 16 bytes, workspaces (device memory) to 256.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "gpu_engine/cipher/forms.h"
#include "gpu_engine/cuda/kernels/keys.h"
#include "gpu_engine/cuda/kernels/tasks.h"

namespace nacre::engine::cuda {

// A task with this key is not encrypted or decrypted: its output becomes zeros.
inline constexpr std::uint32_t no_key = UINT32_MAX;

// The size in bytes of the workspace for either crypt(), for count tasks of at most total_bytes in
// all.
std::size_t crypt_workspace_size(std::uint32_t count, std::uint64_t total_bytes);

// size_max of crypt() is the longest task's size, or any_size if only the device knows it. Short
// messages are faster if it is given.
inline constexpr std::uint64_t any_size = UINT64_MAX;

// AES. ECB, CTR and CBC decryption spread a message over all warps. CBC encryption and OFB give
// each message to one thread and 32 neighbouring tasks to one warp, so neighbours should be about
// equally long. ECB and CBC ignore the bytes after the last whole block.
cudaError_t crypt(CryptMode mode, CryptDirection direction, const CryptTask* tasks,
                  std::uint32_t count, std::uint64_t total_bytes, std::uint64_t size_max,
                  const CipherKeyGroup* keys, void* workspace, cudaStream_t stream);

// The same for keys of any family: calls the function above for AES, des_crypt() (des.h) for DES
// and 3DES.
cudaError_t crypt(CryptMode mode, CryptDirection direction, const CryptTask* tasks,
                  std::uint32_t count, std::uint64_t total_bytes, std::uint64_t size_max,
                  const KeyTable& keys, void* workspace, cudaStream_t stream);

}  // namespace nacre::engine::cuda
