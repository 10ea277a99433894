// SPDX-License-Identifier: Apache-2.0
// The format of the codec rle, for the encoder and the decoder.
#pragma once

#include <cstdint>

#include "gpu_engine/cuda/kernels/tasks.h"

namespace nacre::engine::cuda::rle {

inline constexpr std::uint32_t piece_size_max = 65536;
inline constexpr std::uint32_t part_size_max = 4096;  // plain bytes
inline constexpr std::uint32_t part_count_max = piece_size_max / part_size_max;
inline constexpr std::uint32_t group_size_max = 128;  // plain bytes under one header
inline constexpr std::uint32_t empty_header = 128;    // means nothing: it stands for no bytes
// The most bytes of code that an encoder makes of a part: the header of a group of fewer than 128
// literals costs no more than the runs next to it save.
inline constexpr std::uint32_t part_code_size_max = part_size_max + part_size_max / group_size_max;

inline __device__ std::uint32_t count_parts(std::uint32_t piece_size) {
  return (piece_size + part_size_max - 1) / part_size_max;
}

inline __device__ std::uint32_t part_size(std::uint32_t piece_size, std::uint32_t part) {
  return min(piece_size - part * part_size_max, part_size_max);
}

}  // namespace nacre::engine::cuda::rle
