// SPDX-License-Identifier: Apache-2.0
// The codecs of pieces on the device: lz77, gdeflate, huffman, lzw and rle, a pair of launchers
// each. A piece is at most 64 KiB. tasks.h says what a task and a result are; tasks and results are
// device pointers.
//
// Bytes are fetched in aligned words of four: the other bytes of the word that a range begins or
// ends in may be read with it, and are never used.
//
// A workspace is device memory at a multiple of 16, and keeps nothing between calls. For each
// launcher a function gives its size for count tasks; where that is 0 the workspace may be null.
// level is the codec's level; a codec with only one way of encoding ignores it.
//
// The encoders of rle, lzw and huffman give the very bytes of the CPU's encoders; but the CPU's
// codecs rle and lzw leave pieces alone that look random in a sample, and here each piece is coded.
// The decoders take what the CPU's take, except that the one of lz77 refuses every match that
// reaches into the last five bytes. For rle and lzw a code that is not smaller than its piece is
// not valid.
#pragma once

#include <cuda_runtime_api.h>

#include "gpu_engine/cuda/kernels/tasks.h"

namespace nacre::engine::cuda {

std::size_t lz4_encode_workspace_size(std::uint32_t count);

// level: one of the CPU codec's fast levels. From 3 on the table is larger, at half the speed.
// Equal bytes may be coded differently another time.
cudaError_t lz4_encode(const CodecTask* tasks, std::uint32_t count, std::uint32_t* results,
                       void* workspace, cudaStream_t stream, int level);

std::size_t lz4_decode_workspace_size(std::uint32_t count);  // 0
cudaError_t lz4_decode(const CodecTask* tasks, std::uint32_t count, std::uint32_t* results,
                       void* workspace, cudaStream_t stream);

std::size_t gdeflate_decode_workspace_size(std::uint32_t count);

// Takes the pages that codec/gdeflate/decoder.h takes, and no others; a page of codec huffman is
// one without matches.
cudaError_t gdeflate_decode(const CodecTask* tasks, std::uint32_t count, std::uint32_t* results,
                            void* workspace, cudaStream_t stream);

// Pages of literals alone. All levels are the same.
std::size_t huffman_encode_workspace_size(std::uint32_t count);
cudaError_t huffman_encode(const CodecTask* tasks, std::uint32_t count, std::uint32_t* results,
                           void* workspace, cudaStream_t stream, int level);

// Pages with matches, of one block each. All levels are the same; pages are as small as those of
// the CPU's level 1.
std::size_t gdeflate_encode_workspace_size(std::uint32_t count);
cudaError_t gdeflate_encode(const CodecTask* tasks, std::uint32_t count, std::uint32_t* results,
                            void* workspace, cudaStream_t stream, int level);

// At most 64 MB: pieces are coded 640 at a time.
std::size_t lzw_encode_workspace_size(std::uint32_t count);

cudaError_t lzw_encode(const CodecTask* tasks, std::uint32_t count, std::uint32_t* results,
                       void* workspace, cudaStream_t stream, int level);

std::size_t lzw_decode_workspace_size(std::uint32_t count);

cudaError_t lzw_decode(const CodecTask* tasks, std::uint32_t count, std::uint32_t* results,
                       void* workspace, cudaStream_t stream);

std::size_t rle_encode_workspace_size(std::uint32_t count);

cudaError_t rle_encode(const CodecTask* tasks, std::uint32_t count, std::uint32_t* results,
                       void* workspace, cudaStream_t stream, int level);

std::size_t rle_decode_workspace_size(std::uint32_t count);

cudaError_t rle_decode(const CodecTask* tasks, std::uint32_t count, std::uint32_t* results,
                       void* workspace, cudaStream_t stream);

}  // namespace nacre::engine::cuda
