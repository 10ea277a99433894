// SPDX-License-Identifier: Apache-2.0
// The codecs of pieces on the device: lz77, gdeflate, huffman, lzw and rle, a pair of launchers
// each. A piece is at most 64 KiB. tasks.h says what a task and a result are; tasks and results are
// device pointers.
//
// Bytes are fetched in aligned words of four: the other bytes of the word that a range begins or
// ends in may be read with it, and are never used.
//
// A workspace is device memory at a multiple of 16, and keeps nothing between calls. Its size for
// count tasks is what the function before each launcher says; it may be null where that is 0. level
// is the codec's level; a codec that has one way only ignores it.
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

// Device memory that gdeflate_decode needs for count tasks: none.
std::size_t gdeflate_decode_workspace_size(std::uint32_t count);

// Takes the pages that codec/gdeflate/decoder.h takes, and no others. workspace is not used.
cudaError_t gdeflate_decode(const CodecTask* tasks, std::uint32_t count, std::uint32_t* results,
                            void* workspace, cudaStream_t stream);

// Pages of literals alone, the very bytes of the CPU's encoder. Any level is the same.
std::size_t huffman_encode_workspace_size(std::uint32_t count);
cudaError_t huffman_encode(const CodecTask* tasks, std::uint32_t count, std::uint32_t* results,
                           void* workspace, cudaStream_t stream, int level);

// Pages with matches, of one block each. Any level is the same: as small as the CPU's level 1.
std::size_t gdeflate_encode_workspace_size(std::uint32_t count);
cudaError_t gdeflate_encode(const CodecTask* tasks, std::uint32_t count, std::uint32_t* results,
                            void* workspace, cudaStream_t stream, int level);

// At most 64 MB: pieces are coded 640 at a time.
std::size_t lzw_encode_workspace_size(std::uint32_t count);

// The level is not used.
cudaError_t lzw_encode(const CodecTask* tasks, std::uint32_t count, std::uint32_t* results,
                       void* workspace, cudaStream_t stream, int level);

std::size_t lzw_decode_workspace_size(std::uint32_t count);

cudaError_t lzw_decode(const CodecTask* tasks, std::uint32_t count, std::uint32_t* results,
                       void* workspace, cudaStream_t stream);

std::size_t rle_encode_workspace_size(std::uint32_t count);

// The level is not used.
cudaError_t rle_encode(const CodecTask* tasks, std::uint32_t count, std::uint32_t* results,
                       void* workspace, cudaStream_t stream, int level);

std::size_t rle_decode_workspace_size(std::uint32_t count);

cudaError_t rle_decode(const CodecTask* tasks, std::uint32_t count, std::uint32_t* results,
                       void* workspace, cudaStream_t stream);

}  // namespace nacre::engine::cuda
