// SPDX-License-Identifier: Apache-2.0
// Codec lz77 on the device: LZ4 blocks (docs/FORMAT.md, "LZ4 block") of pieces of at most 64 KiB.
// tasks.h says what a task and a result is; tasks and results are device pointers.
//
// Bytes are fetched in aligned words of four: the other bytes of the word that a range begins in
// may be read with it, and are never used. Equal bytes may be coded differently at another time.
#pragma once

#include <cuda_runtime_api.h>

#include "gpu_engine/cuda/kernels/tasks.h"

namespace nacre::engine::cuda {

// Device memory that lz4_encode needs for count tasks; it keeps nothing there between calls.
std::size_t lz4_encode_workspace_size(std::uint32_t count);

// level: one of the fast ones of the CPU's codec; 3 and more look into a larger table, at half the
// speed.
cudaError_t lz4_encode(const CodecTask* tasks, std::uint32_t count, std::uint32_t* results,
                       void* workspace, cudaStream_t stream, int level);

std::size_t lz4_decode_workspace_size(std::uint32_t count);  // none
cudaError_t lz4_decode(const CodecTask* tasks, std::uint32_t count, std::uint32_t* results,
                       void* workspace, cudaStream_t stream);

}  // namespace nacre::engine::cuda
