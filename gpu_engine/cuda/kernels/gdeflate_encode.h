// SPDX-License-Identifier: Apache-2.0
// Codecs gdeflate and huffman on the device: GDeflate pages (docs/FORMAT.md, "GDeflate page") of
// pieces of at most 64 KiB. tasks.h says what a task and a result is; tasks, results and workspace
// are device pointers. The workspace keeps nothing between calls, and must lie at a multiple of 16.
#pragma once

#include <cuda_runtime_api.h>

#include "gpu_engine/cuda/kernels/tasks.h"

namespace nacre::engine::cuda {

// Pages of literals alone, the very bytes of the CPU's encoder. Any level is the same.
std::size_t huffman_encode_workspace_size(std::uint32_t count);
cudaError_t huffman_encode(const CodecTask* tasks, std::uint32_t count, std::uint32_t* results,
                           void* workspace, cudaStream_t stream, int level);

// Pages with matches, of one block each. Any level is the same: as small as the CPU's level 1.
std::size_t gdeflate_encode_workspace_size(std::uint32_t count);
cudaError_t gdeflate_encode(const CodecTask* tasks, std::uint32_t count, std::uint32_t* results,
                            void* workspace, cudaStream_t stream, int level);

}  // namespace nacre::engine::cuda
