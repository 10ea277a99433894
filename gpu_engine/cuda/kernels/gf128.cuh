// SPDX-License-Identifier: Apache-2.0
// The field of GHASH, GF(2^128) modulo x^128 + x^7 + x^2 + x + 1 (NIST SP 800-38D, 6.3).
//
// An element is a uint4: its first word, x, holds the powers 0 to 31, with x^0 in the highest bit.
// A block as it lies in memory becomes an element when the bytes of each word are swapped.
#pragma once

#include <cstdint>

#include "gpu_engine/cuda/kernels/block_io.cuh"

namespace nacre::engine::cuda {

// The carry-less product. It is made of integer products of numbers that have only every fourth
// bit: as long as at most 15 products of bits meet at one place, no carry reaches the next place
// that is used (Pornin, BearSSL, "Constant-time GHASH").
__device__ inline std::uint64_t carryless_multiply(std::uint32_t a, std::uint32_t b) {
  std::uint64_t product = 0;
#pragma unroll
  for (int place = 0; place < 4; ++place) {
    std::uint64_t sum = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i)
      sum ^= std::uint64_t{a & 0x11111111u << i} * (b & 0x11111111u << ((place - i) & 3));
    product |= sum & 0x1111111111111111ull << place;
  }
  return product;
}

__device__ inline uint4 gf128_multiply(uint4 a, uint4 b) {
  const std::uint32_t x[4] = {a.w, a.z, a.y, a.x}, y[4] = {b.w, b.z, b.y, b.x};
  std::uint32_t z[8] = {};
  // Words of 32 powers: xi yj is added at i + j (Karatsuba: xi yj + xj yi = (xi + xj)(yi + yj) +
  // xi yi + xj yj, nine products instead of 16).
  const auto add = [&](int at, std::uint64_t product) {
    z[at] ^= static_cast<std::uint32_t>(product);
    z[at + 1] ^= static_cast<std::uint32_t>(product >> 32);
  };
  const auto multiply_pair = [](std::uint64_t(&sums)[3], std::uint32_t x0, std::uint32_t x1,
                                std::uint32_t y0, std::uint32_t y1) {
    sums[0] = carryless_multiply(x0, y0);
    sums[2] = carryless_multiply(x1, y1);
    sums[1] = carryless_multiply(x0 ^ x1, y0 ^ y1) ^ sums[0] ^ sums[2];
  };
  std::uint64_t low[3], high[3], middle[3];
  multiply_pair(low, x[0], x[1], y[0], y[1]);
  multiply_pair(high, x[2], x[3], y[2], y[3]);
  multiply_pair(middle, x[0] ^ x[2], x[1] ^ x[3], y[0] ^ y[2], y[1] ^ y[3]);
#pragma unroll
  for (int i = 0; i < 3; ++i) {
    add(i, low[i]);
    add(4 + i, high[i]);
    add(2 + i, middle[i] ^ low[i] ^ high[i]);
  }
  // The bits are reflected, so the product of 255 bits lies one bit too low.
#pragma unroll
  for (int i = 7; i > 0; --i)
    z[i] = __funnelshift_l(z[i - 1], z[i], 1);
  z[0] <<= 1;
  // x^128 = x^7 + x^2 + x + 1; z[3] down to z[0] are the powers 128 and up.
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const std::uint32_t word = z[i];
    z[i + 4] ^= word ^ word >> 1 ^ word >> 2 ^ word >> 7;
    z[i + 3] ^= word << 31 ^ word << 30 ^ word << 25;
  }
  return make_uint4(z[7], z[6], z[5], z[4]);
}

__device__ inline uint4 gf128_times_x(uint4 a) {
  const std::uint32_t out = 0u - (a.w & 1);
  return make_uint4(a.x >> 1 ^ (out & 0xe1000000), __funnelshift_r(a.y, a.x, 1),
                    __funnelshift_r(a.z, a.y, 1), __funnelshift_r(a.w, a.z, 1));
}

__device__ inline uint4 gf128_one() {
  return make_uint4(0x80000000, 0, 0, 0);
}

}  // namespace nacre::engine::cuda
