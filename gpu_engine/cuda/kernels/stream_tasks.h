// SPDX-License-Identifier: Apache-2.0
// Codec streams on the device: sizes and bytes of what the piece encoders made, and the way back
// (docs/FORMAT.md, "Sub-blocks"). Everything here moves bytes; only sample_streams() looks at them.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "gpu_engine/cuda/kernels/tasks.h"

namespace nacre::engine::cuda {

// The message of a piece, and the piece's place in it.
struct PieceOwner {
  std::uint32_t message;
  std::uint32_t place;
};

// One stream, to be written from the plain bytes and the codes of its pieces.
struct StreamTask {
  Byte* out;
  std::uint32_t plain_size;
  std::uint32_t first_piece;  // the others follow
  std::uint32_t piece_count;
  std::uint32_t size_max;  // a longer stream is the plain bytes instead
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

// For the number of a codec on disk: which array of pieces to decode is the codec's.
struct CodecPlaces {
  static constexpr std::uint32_t number_max = 7;
  std::int8_t place[number_max + 1] = {-1, -1, -1, -1, -1, -1, -1, -1};  // -1: not decoded here
};

// One stream to be cut into pieces. Written by the host, or by a kernel that opens records.
struct CutTask {
  const Byte* stream;
  Byte* plain;
  std::uint32_t stream_size;
  std::uint32_t plain_size;
  std::uint32_t first_piece;
  std::uint32_t piece_max;  // pieces that have a place in the arrays
  std::uint32_t codec;      // number on disk; 0: the stream is the plain bytes
  std::uint32_t valid;      // 0: of a message that has failed already; nothing is read
};

// Pieces to decode: an array of piece_count tasks for each codec, one array after the other. A
// piece is in its codec's array, and a task of size 0 in the others.
struct DecodeArrays {
  CodecTask* tasks;
  std::uint32_t* results;  // in the same layout
  std::uint32_t piece_count;
  std::uint32_t codec_count;
  CodecPlaces places;
};

// For each piece of each stream, fills arrays.tasks (pieces to decode) and copies (pieces to copy:
// in_size = out_size), with sizes of 0 where there is nothing to do. valid[i] = 0 when words and
// sizes contradict each other, or the codec has no array.
cudaError_t cut_streams(const CutTask* tasks, std::uint32_t count, const DecodeArrays& arrays,
                        CodecTask* copies, std::uint32_t* valid, cudaStream_t stream);

cudaError_t copy_pieces(const CodecTask* copies, std::uint32_t piece_count, cudaStream_t stream);

// valid[i]: whether it was valid and all its pieces were decoded; sizes[i]: its plain size if so,
// else 0.
cudaError_t judge_streams(const CutTask* tasks, std::uint32_t count, const DecodeArrays& arrays,
                          std::uint32_t* valid, std::uint32_t* sizes, cudaStream_t stream);

// Bytes to or from the host, whose page-locked memory the kernel reads or writes. Tasks of at most
// bus_task_size_bytes share the work well; none has more than 4 GiB.
struct BusTask {
  const Byte* from;
  Byte* to;
  std::uint64_t size;
};
inline constexpr std::uint32_t bus_task_size_bytes = 32u << 10;

cudaError_t scatter_to_host(const BusTask* tasks, std::uint32_t count, cudaStream_t stream);
// from and to have the same address modulo 16. No byte outside the tasks, which have total_bytes in
// all, is read.
cudaError_t gather_from_host(const BusTask* tasks, std::uint32_t count, std::uint64_t total_bytes,
                             cudaStream_t stream);

// Sets coded to 0 for each stream whose plain bytes do not look compressible (codec/sample.h). The
// pieces of a stream follow each other. to_encode: the pieces for the encoder; those of such
// streams get size 0.
cudaError_t sample_streams(StreamTask* streams, std::uint32_t count, const CodecTask* pieces,
                           CodecTask* to_encode, cudaStream_t stream);

}  // namespace nacre::engine::cuda
