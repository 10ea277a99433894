// SPDX-License-Identifier: Apache-2.0
// The ChaCha20 block function (RFC 8439, 2.3), as a generator of random words: under a key that
// nobody else knows its blocks cannot be told from random ones.
#pragma once

#include "gpu_engine/cuda/kernels/carry_chain.cuh"

namespace nacre::engine::cuda {

struct ChaChaKey {
  std::uint32_t words[8];
};

struct ChaChaBlock {
  std::uint32_t words[16];
};

NACRE_BOTH_SIDES std::uint32_t rotate_left(std::uint32_t word, int by) {
  return word << by | word >> (32 - by);
}

NACRE_BOTH_SIDES void quarter_round(std::uint32_t& a, std::uint32_t& b, std::uint32_t& c,
                                    std::uint32_t& d) {
  a += b;
  d = rotate_left(d ^ a, 16);
  c += d;
  b = rotate_left(b ^ c, 12);
  a += b;
  d = rotate_left(d ^ a, 8);
  c += d;
  b = rotate_left(b ^ c, 7);
}

NACRE_BOTH_SIDES ChaChaBlock chacha20_block(const ChaChaKey& key, std::uint32_t counter,
                                            std::uint32_t nonce_0, std::uint32_t nonce_1,
                                            std::uint32_t nonce_2) {
  const std::uint32_t start[16] = {0x61707865,   0x3320646e,   0x79622d32,   0x6b206574,
                                   key.words[0], key.words[1], key.words[2], key.words[3],
                                   key.words[4], key.words[5], key.words[6], key.words[7],
                                   counter,      nonce_0,      nonce_1,      nonce_2};
  ChaChaBlock block;
  std::uint32_t* const w = block.words;
  for (int i = 0; i < 16; ++i)
    w[i] = start[i];
  for (int round = 0; round < 10; ++round) {
    quarter_round(w[0], w[4], w[8], w[12]);
    quarter_round(w[1], w[5], w[9], w[13]);
    quarter_round(w[2], w[6], w[10], w[14]);
    quarter_round(w[3], w[7], w[11], w[15]);
    quarter_round(w[0], w[5], w[10], w[15]);
    quarter_round(w[1], w[6], w[11], w[12]);
    quarter_round(w[2], w[7], w[8], w[13]);
    quarter_round(w[3], w[4], w[9], w[14]);
  }
  for (int i = 0; i < 16; ++i)
    w[i] += start[i];
  return block;
}

}  // namespace nacre::engine::cuda
