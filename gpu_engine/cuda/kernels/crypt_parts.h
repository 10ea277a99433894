// SPDX-License-Identifier: Apache-2.0
// The modes in which every block can be worked on at once. crypt.cu chooses.
#pragma once

#include "gpu_engine/cuda/kernels/crypt.h"
#include "gpu_engine/cuda/kernels/tile_plan.h"

namespace nacre::engine::cuda {

inline constexpr std::uint32_t blocks_per_unit = 16;
inline constexpr std::uint32_t unit_bytes = blocks_per_unit * 16;
inline constexpr std::uint32_t crypt_units_per_tile = 32;

// previous_blocks: for CBC decryption, the ciphertext block before each tile; as long as the plan
// has tiles.
cudaError_t crypt_parallel(CryptMode mode, CryptDirection direction, const CryptTask* tasks,
                           const TilePlanWorkspace& plan, const CipherKeyGroup* keys,
                           uint4* previous_blocks, cudaStream_t stream);

// CTR, tasks of at most unit_bytes each.
cudaError_t crypt_short_counters(const CryptTask* tasks, std::uint32_t count,
                                 const CipherKeyGroup* keys, cudaStream_t stream);

cudaError_t crypt_serial(CryptMode mode, const CryptTask* tasks, std::uint32_t count,
                         const CipherKeyGroup* keys, cudaStream_t stream);

}  // namespace nacre::engine::cuda
