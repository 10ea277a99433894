// SPDX-License-Identifier: Apache-2.0
// SHA-256 and HMAC-SHA256 (RFC 2104) of any message under any key, put together of the device's own
// parts: the tags that its kernels make begin with sizes (kernels/hmac.cu), as no published vector
// does. One thread; nothing is fast.
#pragma once

#include "gpu_engine/cuda/kernels/sha256.cuh"

namespace nacre::engine::cuda {

// before_bytes: whole blocks, which the state has seen already.
__device__ inline Sha256State sha256_of(Sha256State state, std::uint32_t before_bytes,
                                        const Byte* message, std::uint32_t size) {
  // The end of the message with the padding bit and the size, up to a whole block.
  const std::uint32_t end =
      (size + 9 + sha256_block_bytes - 1) / sha256_block_bytes * sha256_block_bytes;
  for (std::uint32_t at = 0; at < end; at += sha256_block_bytes) {
    std::uint32_t block[16];
    for (std::uint32_t i = 0; i < sha256_block_bytes; ++i) {
      const std::uint32_t place = at + i;
      const std::uint32_t byte = place < size ? message[place] : place == size ? 0x80u : 0u;
      block[i / 4] = (i % 4 == 0 ? 0 : block[i / 4] << 8) | byte;
    }
    if (at + sha256_block_bytes == end) block[15] = 8 * (before_bytes + size);
    sha256_compress(state, block);
  }
  return state;
}

__device__ inline void store_digest(const Sha256State& state, Byte* digest) {
  for (std::uint32_t i = 0; i < sizeof(state.words); ++i)
    digest[i] = static_cast<Byte>(state.words[i / 4] >> (24 - 8 * (i % 4)));
}

// The state after the padded key, of at most a block. Keys as long as suites have them go the
// suites' way.
__device__ inline Sha256State hmac_state(const Byte* key, std::uint32_t key_size,
                                         std::uint32_t pad) {
  Sha256State state;
  Byte padded[sha256_block_bytes] = {};
  for (std::uint32_t i = 0; i < key_size; ++i)
    padded[i] = key[i];
  if (key_size <= hmac_key_size) {
    write_hmac_state(padded, pad, state.words);
    return state;
  }
  std::uint32_t block[16];
  for (int i = 0; i < 16; ++i)
    block[i] = swap_bytes(load_bytes(padded + 4 * i, 4)) ^ pad;
  sha256_compress(state, block);
  return state;
}

__device__ inline Sha256State hmac_of(const Byte* key, std::uint32_t key_size, const Byte* message,
                                      std::uint32_t size) {
  constexpr std::uint32_t digest_size = sizeof(Sha256State::words);
  Byte hashed_key[digest_size];
  if (key_size > sha256_block_bytes) {
    store_digest(sha256_of(Sha256State(), 0, key, key_size), hashed_key);
    key = hashed_key;
    key_size = digest_size;
  }
  Byte inner[digest_size];
  store_digest(
      sha256_of(hmac_state(key, key_size, hmac_inner_pad), sha256_block_bytes, message, size),
      inner);
  return sha256_of(hmac_state(key, key_size, hmac_outer_pad), sha256_block_bytes, inner,
                   digest_size);
}

}  // namespace nacre::engine::cuda
