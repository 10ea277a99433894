// SPDX-License-Identifier: Apache-2.0
// Codecs gdeflate and huffman on the device, decoding: GDeflate pages (docs/FORMAT.md, "GDeflate
// page") of pieces of at most 64 KiB. A page of codec huffman is one without matches; the decoder
// is the same. tasks.h says what a task and a result is; tasks and results are device pointers.
//
// Where a page is at an odd address its bytes are fetched in aligned words of four: the other bytes
// of its first and last word may be read with them, and are never used.
#pragma once

#include <cuda_runtime_api.h>

#include "gpu_engine/cuda/kernels/tasks.h"

namespace nacre::engine::cuda {

// Device memory that gdeflate_decode needs for count tasks: none.
std::size_t gdeflate_decode_workspace_size(std::uint32_t count);

// Takes the pages that codec/gdeflate/decoder.h takes, and no others. workspace is not used.
cudaError_t gdeflate_decode(const CodecTask* tasks, std::uint32_t count, std::uint32_t* results,
                            void* workspace, cudaStream_t stream);

}  // namespace nacre::engine::cuda
