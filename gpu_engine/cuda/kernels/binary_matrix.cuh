// SPDX-License-Identifier: Apache-2.0
// Products of binary matrices on the tensor cores (PTX ISA, mma with .b1 and .and.popc). Counts are
// sums over the integers, and the lowest bit of a count is the sum over GF(2).
//
// One product adds A (16 x k bits) times B (k x 8 bits) to counts (16 x 8). A lane has the number
// lane = 4 * group + place, and holds
//   - of A, in rows group and group + 8, the words that begin at bit 32 * place, and for k = 256
//     also those that begin at bit 128 + 32 * place,
//   - of B, in column group, the words at the same bits,
//   - the counts of rows group and group + 8 in columns 2 * place and 2 * place + 1.
//
// Devices before sm_80 lack the instruction (mma with .and.popc), and use shuffles instead.
#pragma once

#include <cstdint>

#include "gpu_engine/cuda/kernels/warp.cuh"

namespace nacre::engine::cuda {

struct RowCounts {
  std::int32_t low_row[2] = {};
  std::int32_t high_row[2] = {};
};

#if __CUDA_ARCH__ < 800
__device__ inline void multiply_add_by_shuffles(RowCounts& counts, std::uint32_t low,
                                                std::uint32_t high, std::uint32_t column) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  for (int place = 0; place < 4; ++place) {
    const std::uint32_t low_word = __shfl_sync(all_lanes, low, lane / 4 * 4 + place);
    const std::uint32_t high_word = __shfl_sync(all_lanes, high, lane / 4 * 4 + place);
    for (int j = 0; j < 2; ++j) {
      const std::uint32_t word = __shfl_sync(all_lanes, column, (lane % 4 * 2 + j) * 4 + place);
      counts.low_row[j] += __popc(low_word & word);
      counts.high_row[j] += __popc(high_word & word);
    }
  }
}
#endif

// k = 128.
__device__ inline void multiply_add(RowCounts& counts, std::uint32_t low, std::uint32_t high,
                                    std::uint32_t column) {
#if __CUDA_ARCH__ >= 800
  asm("mma.sync.aligned.m16n8k128.row.col.s32.b1.b1.s32.and.popc "
      "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
      : "+r"(counts.low_row[0]), "+r"(counts.low_row[1]), "+r"(counts.high_row[0]),
        "+r"(counts.high_row[1])
      : "r"(low), "r"(high), "r"(column));
#else
  multiply_add_by_shuffles(counts, low, high, column);
#endif
}

// k = 256: two words a row.
__device__ inline void multiply_add(RowCounts& counts, std::uint32_t low_0, std::uint32_t high_0,
                                    std::uint32_t low_1, std::uint32_t high_1, uint2 column) {
#if __CUDA_ARCH__ >= 800
  asm("mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+r"(counts.low_row[0]), "+r"(counts.low_row[1]), "+r"(counts.high_row[0]),
        "+r"(counts.high_row[1])
      : "r"(low_0), "r"(high_0), "r"(low_1), "r"(high_1), "r"(column.x), "r"(column.y));
#else
  multiply_add_by_shuffles(counts, low_0, high_0, column.x);
  multiply_add_by_shuffles(counts, low_1, high_1, column.y);
#endif
}

// Collects the lowest bits of a row's counts, two column tiles at a time: the lowest bits of the
// four counts of tiles 2 u and 2 u + 1 become bit u of bytes 0 to 3. So the count of column j of
// tile t, with n = 2 t + j, lands at bit 8 (n mod 4) + n / 4. The code that makes the matrices
// orders their columns accordingly.
__device__ inline void add_parities(std::uint32_t& bits, const std::int32_t (&even_tile)[2],
                                    const std::int32_t (&odd_tile)[2], int pair_of_tiles) {
  const std::uint32_t low = __byte_perm(even_tile[0], even_tile[1], 0x0040);
  const std::uint32_t high = __byte_perm(odd_tile[0], odd_tile[1], 0x0040);
  bits |= (__byte_perm(low, high, 0x5410) << pair_of_tiles) & (0x01010101u << pair_of_tiles);
}

}  // namespace nacre::engine::cuda
