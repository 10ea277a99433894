// SPDX-License-Identifier: Apache-2.0
// Any function of three bits, on 32 bits at a time: one instruction on a device (LOP3). The host's
// version gives the same, for tests that run parts of kernels there.
#pragma once

#include <cstdint>

#include "gpu_engine/cuda/kernels/both_sides.h"

namespace nacre::engine::cuda {

// Bit 4 a + 2 b + c of table is the value at (a, b, c).
template <std::uint32_t table>
NACRE_HOST_DEVICE inline std::uint32_t lut3(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
#ifdef __CUDA_ARCH__
  std::uint32_t value;
  asm("lop3.b32 %0, %1, %2, %3, %4;" : "=r"(value) : "r"(a), "r"(b), "r"(c), "n"(table));
  return value;
#else
  const auto times = [](std::uint32_t bit) { return bit != 0 ? ~0u : 0u; };
  const auto of_c = [&](std::uint32_t pair) {
    return (c & times(pair & 2)) | (~c & times(pair & 1));
  };
  const std::uint32_t low = (b & of_c(table >> 2)) | (~b & of_c(table));
  const std::uint32_t high = (b & of_c(table >> 6)) | (~b & of_c(table >> 4));
  return (a & high) | (~a & low);
#endif
}

NACRE_HOST_DEVICE inline std::uint32_t xor3(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  return lut3<0x96>(a, b, c);
}

}  // namespace nacre::engine::cuda
