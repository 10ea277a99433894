// SPDX-License-Identifier: Apache-2.0
// Codec streams on the device (docs/FORMAT.md, "Sub-blocks"): puts the codes of pieces together to
// a stream, and cuts a stream into pieces. Also the sample, and copies over PCIe.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "gpu_engine/cuda/kernels/tasks.h"

namespace nacre::engine::cuda {

// To which message a piece belongs, and its index among the pieces of that message.
struct PieceOwner {
  std::uint32_t message;
  std::uint32_t place;
};

// One stream, to be written from the plain bytes and the codes of its pieces.
struct StreamTask {
  Byte* out;
  std::uint32_t plain_size;
  std::uint32_t first_piece;  // index of the first piece; the stream's other pieces follow it
  std::uint32_t piece_count;
  std::uint32_t size_max;  // a stream that would be longer is replaced by the plain bytes
  std::uint32_t coded;     // 0: the stream is the plain bytes in any case
};

struct StreamSize {
  std::uint32_t size;
  std::uint32_t coded;
};

// Computes sizes[i] from the code sizes of the stream's pieces.
cudaError_t size_streams(const StreamTask* tasks, std::uint32_t count,
                         const std::uint32_t* code_sizes, StreamSize* sizes, cudaStream_t stream);

// Writes the streams: coded ones with the words of their sub-blocks, others as plain bytes.
// pieces[p].in is the plain piece, .out its code.
cudaError_t write_streams(const StreamTask* tasks, const StreamSize* sizes,
                          const PieceOwner* owners, const CodecTask* pieces,
                          std::uint32_t piece_count, const std::uint32_t* code_sizes,
                          cudaStream_t stream);

// By a codec's number on disk: the index of its array among the DecodeArrays.
struct CodecPlaces {
  static constexpr std::uint32_t number_max = 7;
  // The number of the codec whose streams have no sub-blocks (zstd). Such a stream is one piece.
  static constexpr std::uint32_t whole_number = 2;
  std::int8_t place[number_max + 1] = {-1, -1, -1, -1, -1, -1, -1, -1};  // -1: not decoded here
};

// One stream to be cut into pieces. Written by the host, or by a kernel that opens records.
struct CutTask {
  const Byte* stream;
  Byte* plain;
  std::uint32_t stream_size;
  std::uint32_t plain_size;
  std::uint32_t first_piece;  // index of the stream's first piece in the arrays
  std::uint32_t piece_max;    // how many pieces the arrays have for this stream
  std::uint32_t codec;        // number on disk; 0: the stream is the plain bytes
  std::uint32_t valid;        // 0: the message has failed already, and its stream is not read
};

// Pieces to decode: an array of piece_count tasks for each codec, one array after the other. In the
// array of its codec a piece has its task, in the other arrays a task of size 0.
struct DecodeArrays {
  CodecTask* tasks;
  std::uint32_t* results;  // in the same layout
  std::uint32_t piece_count;
  std::uint32_t codec_count;
  CodecPlaces places;
};

// For each piece of each stream, fills arrays.tasks (pieces to decode) and copies (pieces to copy:
// in_size = out_size). A task has size 0 if there is nothing to do. valid[i] becomes 0 if the words
// of the stream contradict its sizes, if its codec has no array, or if tasks[i].valid is 0.
cudaError_t cut_streams(const CutTask* tasks, std::uint32_t count, const DecodeArrays& arrays,
                        CodecTask* copies, std::uint32_t* valid, cudaStream_t stream);

cudaError_t copy_pieces(const CodecTask* copies, std::uint32_t piece_count, cudaStream_t stream);

// After the decoders: valid[i] stays 1 only if all pieces of stream i were decoded. sizes[i]
// becomes the plain size of a valid stream, else 0.
cudaError_t judge_streams(const CutTask* tasks, std::uint32_t count, const DecodeArrays& arrays,
                          std::uint32_t* valid, std::uint32_t* sizes, cudaStream_t stream);

// Bytes to copy to or from page-locked memory of the host, which the kernels access over PCIe. Work
// is shared well if tasks have at most bus_task_size_bytes. Each must be smaller than 4 GiB.
struct BusTask {
  const Byte* from;
  Byte* to;
  std::uint64_t size;
};
inline constexpr std::uint32_t bus_task_size_bytes = 32u << 10;

cudaError_t scatter_to_host(const BusTask* tasks, std::uint32_t count, cudaStream_t stream);
// from and to must be equal modulo 16. No byte outside the tasks is read. total_bytes: the sum of
// the tasks' sizes.
cudaError_t gather_from_host(const BusTask* tasks, std::uint32_t count, std::uint64_t total_bytes,
                             cudaStream_t stream);

// Sets `coded` of each stream: 1 if its plain bytes look compressible (codec/sample.h), else 0. The
// plain bytes of a stream's pieces must be contiguous. to_encode[p] becomes pieces[p], with in_size
// 0 if its stream is not coded.
cudaError_t sample_streams(StreamTask* streams, std::uint32_t count, const CodecTask* pieces,
                           CodecTask* to_encode, cudaStream_t stream);

}  // namespace nacre::engine::cuda
