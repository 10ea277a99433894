// SPDX-License-Identifier: Apache-2.0
// SHA-256 (FIPS 180-4) by one thread per message: 64 rounds of some 20 operations for 64 bytes.
// Also makes the states that SHA-256 has after the padded key of HMAC-SHA256 (RFC 2104).
#pragma once

#include <cstdint>

#include "gpu_engine/cuda/kernels/block_io.cuh"

namespace nacre::engine::cuda {

inline constexpr std::uint32_t sha256_block_bytes = 64;

static __device__ __constant__ const std::uint32_t sha256_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

struct Sha256State {
  std::uint32_t words[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                            0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
};

__device__ inline std::uint32_t rotate_right(std::uint32_t word, int bits) {
  return __funnelshift_r(word, word, bits);
}

// Adds a block of sixteen big-endian words to the state. The words are overwritten.
__device__ inline void sha256_compress(Sha256State& state, std::uint32_t (&block)[16]) {
  std::uint32_t s[8];
#pragma unroll
  for (int i = 0; i < 8; ++i)
    s[i] = state.words[i];
#pragma unroll 1
  for (int base = 0; base < 64; base += 16) {
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      const std::uint32_t e = s[4], a = s[0];
      const std::uint32_t added =
          s[7] + (rotate_right(e, 6) ^ rotate_right(e, 11) ^ rotate_right(e, 25)) +
          ((e & s[5]) ^ (~e & s[6])) + sha256_constants[base + i] + block[i];
      const std::uint32_t sum = (rotate_right(a, 2) ^ rotate_right(a, 13) ^ rotate_right(a, 22)) +
                                ((a & s[1]) ^ (a & s[2]) ^ (s[1] & s[2]));
#pragma unroll
      for (int j = 7; j > 0; --j)
        s[j] = s[j - 1];
      s[4] += added;
      s[0] = added + sum;
      // The message schedule's word 16 rounds later.
      const std::uint32_t two_back = block[(i + 14) & 15], fifteen_back = block[(i + 1) & 15];
      block[i] +=
          block[(i + 9) & 15] +
          (rotate_right(two_back, 17) ^ rotate_right(two_back, 19) ^ two_back >> 10) +
          (rotate_right(fifteen_back, 7) ^ rotate_right(fifteen_back, 18) ^ fifteen_back >> 3);
    }
  }
#pragma unroll
  for (int i = 0; i < 8; ++i)
    state.words[i] += s[i];
}

inline constexpr std::uint32_t hmac_key_size = 32;
inline constexpr std::uint32_t hmac_inner_pad = 0x36363636;
inline constexpr std::uint32_t hmac_outer_pad = 0x5c5c5c5c;

__device__ inline void write_hmac_state(const Byte* key, std::uint32_t pad, std::uint32_t* out) {
  std::uint32_t block[16];
#pragma unroll
  for (int i = 0; i < 16; ++i)
    block[i] = (i < 8 ? swap_bytes(load_bytes(key + 4 * i, 4)) : 0) ^ pad;
  Sha256State state;
  sha256_compress(state, block);
  for (int i = 0; i < 8; ++i)
    out[i] = state.words[i];
}

}  // namespace nacre::engine::cuda
