// SPDX-License-Identifier: Apache-2.0
// Which bytes a sample looks at (sample.cpp says why). All implementations look at the same bytes,
// so that they come to the same verdict.
#pragma once

#include <cstdint>

namespace nacre::engine {

inline constexpr std::uint32_t sampled_size_min = 4096;

// Bytes are counted in short stretches that are spread evenly over a block.
inline constexpr std::uint32_t stretch_count = 32;
inline constexpr std::uint32_t stretch_size = 32;
inline constexpr std::uint32_t counted_bytes = stretch_count * stretch_size;
// The sum of squared counts above which a block counts as compressible: entropy coding could then
// save a tenth of a bit a byte. One block of noise in 10^9 exceeds it.
inline constexpr std::uint32_t square_sum_max =
    counted_bytes + counted_bytes * counted_bytes / 256 * 114 / 100;
// A quicker test comes first, since it recognises most compressible blocks: it counts every
// first_step-th stretch, and asks for a whole bit a byte.
inline constexpr std::uint32_t first_stretches = 4;
inline constexpr std::uint32_t first_step = stretch_count / first_stretches;
inline constexpr std::uint32_t first_bytes = first_stretches * stretch_size;
inline constexpr std::uint32_t first_square_sum_max =
    first_bytes + first_bytes * first_bytes / 256 * 2;

// All positions of some windows that are spread evenly over a block are remembered. The probed
// positions, which are compared with these, are so close that a copy of a window cannot lie
// between two of them.
inline constexpr std::uint32_t window_count = 4;
inline constexpr std::uint32_t window_size = 128;
inline constexpr std::uint32_t probe_stride = window_size - sizeof(std::uint64_t);
inline constexpr unsigned position_table_bits = 11;
inline constexpr std::uint64_t position_hash_factor = 0x9e3779b97f4a7c15u;

}  // namespace nacre::engine
