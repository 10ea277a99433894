// SPDX-License-Identifier: Apache-2.0
// The kernels behind des_crypt(): des.cu chooses.
#pragma once

#include "gpu_engine/cuda/kernels/des.h"
#include "gpu_engine/cuda/kernels/tile_plan.h"

namespace nacre::engine::cuda {

// A unit is what one thread takes at a time: 32 blocks.
inline constexpr std::uint32_t des_block_bytes = 8;
inline constexpr std::uint32_t des_unit_bytes = 32 * des_block_bytes;
inline constexpr std::uint32_t des_units_per_tile = 32;

// previous_blocks: for CBC decryption, the ciphertext block before each tile; as long as the plan
// has tiles.
cudaError_t des_crypt_parallel(int pass_count, CryptMode mode, CryptDirection direction,
                               const CryptTask* tasks, const TilePlanWorkspace& plan,
                               const DesKey* keys, uint2* previous_blocks, cudaStream_t stream);

cudaError_t des_crypt_serial(int pass_count, CryptMode mode, const CryptTask* tasks,
                             std::uint32_t count, const DesKey* keys, cudaStream_t stream);

}  // namespace nacre::engine::cuda
