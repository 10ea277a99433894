// SPDX-License-Identifier: Apache-2.0
// Leaves streams alone that no codec would make smaller: what `auto` does before it encodes.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "gpu_engine/cuda/kernels/stream_tasks.h"

namespace nacre::engine::cuda {

// Of each stream whose plain bytes do not look compressible (codec/sample.h) coded becomes 0. A
// stream's pieces lie one behind the other. to_encode: the pieces for the encoder, those of such
// streams with a size of 0.
cudaError_t sample_streams(StreamTask* streams, std::uint32_t count, const CodecTask* pieces,
                           CodecTask* to_encode, cudaStream_t stream);

}  // namespace nacre::engine::cuda
