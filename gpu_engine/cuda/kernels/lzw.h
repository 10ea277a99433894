// SPDX-License-Identifier: Apache-2.0
// Codec lzw on the device: TIFF LZW (docs/FORMAT.md, "TIFF LZW") of pieces of at most 64 KiB.
// tasks.h says what a task and a result is; tasks and results are device pointers. The encoder
// gives the very bytes of the CPU's codec (which leaves pieces alone that look random in a sample;
// here each is coded), and the decoder takes what that takes: a code that is not smaller than its
// piece is none.
//
// Bytes are fetched in aligned words of four: the other bytes of the word that a range begins or
// ends in may be read with it, and are never used. A workspace is device memory, aligned to 16,
// that keeps nothing between calls; of no bytes it may be null.
#pragma once

#include <cuda_runtime_api.h>

#include "gpu_engine/cuda/kernels/tasks.h"

namespace nacre::engine::cuda {

// At most 64 MB: pieces are coded 640 at a time.
std::size_t lzw_encode_workspace_size(std::uint32_t count);

// The level is not used.
cudaError_t lzw_encode(const CodecTask* tasks, std::uint32_t count, std::uint32_t* results,
                       void* workspace, cudaStream_t stream, int level);

std::size_t lzw_decode_workspace_size(std::uint32_t count);

cudaError_t lzw_decode(const CodecTask* tasks, std::uint32_t count, std::uint32_t* results,
                       void* workspace, cudaStream_t stream);

}  // namespace nacre::engine::cuda
