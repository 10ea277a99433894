// SPDX-License-Identifier: Apache-2.0
// The codecs of pieces on the device: for each of lz77, gdeflate, huffman, lzw and rle a launcher
// that encodes and one that decodes (huffman is decoded by gdeflate_decode()), and the decoder of
// zstd. A piece is at most 64 KiB, a zstd frame 1 MiB. tasks.h says what a task and a result are;
// tasks and results are device pointers.
//
// Bytes are fetched in aligned words of four: bytes outside a range may be read if they share a
// word with its first or last byte. They are never used.
//
// A workspace is device memory, aligned to 16 bytes, and keeps nothing between calls. For each
// launcher a function gives the size of the workspace in bytes for count tasks; if that is 0 the
// workspace may be null. level is the codec's level; encoders with only one way ignore it.
//
// The encoders of rle, lzw and huffman give the very bytes that the CPU's encoders give for a
// piece. But every piece is encoded here, while the CPU's codecs first take a sample of each piece
// and store those that look random. The output of lz4_encode() and gdeflate_encode() is not
// deterministic: the same bytes may be coded differently at each call.
//
// The decoders accept what the CPU's decoders accept, with two exceptions. lz4_decode() refuses
// every match that reaches into the last five bytes. The decoders of rle and lzw refuse a code that
// is not smaller than its piece; on the CPU the framing around the codec refuses it.
#pragma once

#include <cuda_runtime_api.h>

#include "gpu_engine/cuda/kernels/tasks.h"

namespace nacre::engine::cuda {

std::size_t lz4_encode_workspace_size(std::uint32_t count);

// level: one of the CPU codec's fast levels, 0 to 4. From 3 on the hash table is larger, which
// halves the speed.
cudaError_t lz4_encode(const CodecTask* tasks, std::uint32_t count, std::uint32_t* results,
                       void* workspace, cudaStream_t stream, int level);

std::size_t lz4_decode_workspace_size(std::uint32_t count);  // 0
cudaError_t lz4_decode(const CodecTask* tasks, std::uint32_t count, std::uint32_t* results,
                       void* workspace, cudaStream_t stream);

std::size_t gdeflate_decode_workspace_size(std::uint32_t count);

// Accepts the pages that codec/gdeflate/decoder.h accepts, and no others. A page of codec huffman
// is a page without matches.
cudaError_t gdeflate_decode(const CodecTask* tasks, std::uint32_t count, std::uint32_t* results,
                            void* workspace, cudaStream_t stream);

// Makes pages of literals alone. All levels give the same.
std::size_t huffman_encode_workspace_size(std::uint32_t count);
cudaError_t huffman_encode(const CodecTask* tasks, std::uint32_t count, std::uint32_t* results,
                           void* workspace, cudaStream_t stream, int level);

// Makes pages with matches, of one block each. All levels give the same: pages as small as those of
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

std::size_t zstd_decode_workspace_size(std::uint32_t count);  // 0

// A task is a whole frame of codec zstd, of 1 byte to 1 MiB of content. Takes the frames that
// libzstd makes for codec/zstd.cpp, and none that it refuses; of others that it takes, not all.
cudaError_t zstd_decode(const CodecTask* tasks, std::uint32_t count, std::uint32_t* results,
                        void* workspace, cudaStream_t stream);

}  // namespace nacre::engine::cuda
