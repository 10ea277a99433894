// SPDX-License-Identifier: Apache-2.0
// The kernels of the codecs that device_codecs.h lists, one entry for each. Batches know a codec
// only by its entry.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <cstdint>

#include "gpu_engine/cuda/kernels/stream_tasks.h"
#include "gpu_engine/cuda/kernels/tasks.h"
#include "gpu_engine/plan/device_codecs.h"

namespace nacre::engine::cuda {

// tasks.h says what tasks and results are. A workspace is device memory that keeps nothing between
// launches. Each slot has codec_workspace_bytes_max set aside for it, so an encoder or decoder that
// needs much memory for a piece processes the pieces in turns.
struct PieceCodec {
  // nullptr if devices do not encode this codec.
  std::size_t (*encode_workspace_size)(std::uint32_t count);
  cudaError_t (*encode)(const CodecTask* tasks, std::uint32_t count, std::uint32_t* results,
                        void* workspace, cudaStream_t stream, int level);
  std::size_t (*decode_workspace_size)(std::uint32_t count);
  cudaError_t (*decode)(const CodecTask* tasks, std::uint32_t count, std::uint32_t* results,
                        void* workspace, cudaStream_t stream);
};

// In the order of device_codecs.
extern const std::array<PieceCodec, device_codecs.size()> piece_codecs;

// The codecs that the streams of a batch may have: the given one, or for Codec::automatic all,
// since only the device knows which ones they have. Each has an array of pieces to decode.
class DecodedCodecs {
 public:
  explicit DecodedCodecs(Codec codec);
  std::uint32_t count() const { return count_; }
  const PieceCodec& operator[](std::uint32_t place) const { return *codecs_[place]; }
  const CodecPlaces& places() const { return places_; }

 private:
  std::array<const PieceCodec*, device_codecs.size()> codecs_ = {};
  CodecPlaces places_;
  std::uint32_t count_ = 0;
};

}  // namespace nacre::engine::cuda
