// SPDX-License-Identifier: Apache-2.0
// The format of the codec lzw, for the encoder and the decoder. A section is the codes after a
// clear code, up to and including the next clear code or the end code. All functions: per lane.
#pragma once

#include <cstdint>

#include "gpu_engine/cuda/kernels/tasks.h"

namespace nacre::engine::cuda::lzw {

inline constexpr std::uint32_t piece_size_max = 65536;
inline constexpr std::uint32_t part_size_max = 8192;  // plain bytes
inline constexpr std::uint32_t part_count_max = piece_size_max / part_size_max;

inline constexpr std::uint32_t clear_code = 256;
inline constexpr std::uint32_t end_code = 257;
inline constexpr std::uint32_t first_string = 258;
inline constexpr std::uint32_t width_min_bits = 9;
inline constexpr std::uint32_t width_max_bits = 12;
// After this many codes of a section only a clear or end code is possible.
inline constexpr std::uint32_t section_size_max = 3837;

// The width in bits of code j (from 0) of a section.
inline __device__ std::uint32_t code_width(std::uint32_t j) {
  return 32 - static_cast<std::uint32_t>(__clz(static_cast<int>(first_string + j)));
}

// The total width in bits of the first j codes of a section: 9 for each, one more for each after
// the first 254, and so on.
inline __device__ std::uint32_t code_place(std::uint32_t j) {
  std::uint32_t bits = width_min_bits * j;
  for (std::uint32_t wider = 512 - first_string; wider < 2048; wider = 2 * wider + first_string)
    bits += max(j, wider) - wider;
  return bits;
}

inline __device__ std::uint32_t count_parts(std::uint32_t piece_size) {
  return (piece_size + part_size_max - 1) / part_size_max;
}

inline __device__ std::uint32_t part_size(std::uint32_t piece_size, std::uint32_t part) {
  return min(piece_size - part * part_size_max, part_size_max);
}

}  // namespace nacre::engine::cuda::lzw
