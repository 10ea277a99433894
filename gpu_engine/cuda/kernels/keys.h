// SPDX-License-Identifier: Apache-2.0
// Keys on the device: raw ones as the host sends them, and expanded ones as kernels use them.
// Expanded keys are as secret as raw ones: the caller wipes both.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "gpu_engine/cipher/forms.h"
#include "gpu_engine/cuda/kernels/des_key.h"
#include "gpu_engine/cuda/kernels/tasks.h"

namespace nacre::engine::cuda {

// bytes: the key of the block cipher; then, for cbc_hmac, the key for IVs, which is equally long;
// then, for both HMAC forms, the HMAC key of 32 bytes (docs/FORMAT.md, "Cipher suites").
struct RawKey {
  Byte bytes[96];
  std::uint32_t cipher_key_size;  // AES: 16, 24 or 32; DES: 8; 3DES: 24
  KeyForm form;
};

// FIPS 197 round keys, as little-endian words. The last round's key is always at last_round, so
// that code for 10, 12 and 14 rounds differs only in rounds 10 to 13.
struct RoundKeys {
  static constexpr int last_round = 14;
  uint4 at[last_round + 1];
};

// The round keys of eight keys; key k is at index k % 8 of group k / 8. One round's keys of all
// eight fill a cache line, so a warp whose lanes use these eight keys fetches one line for each
// round, as if it used one key.
struct alignas(128) CipherKeyGroup {
  static constexpr std::uint32_t key_count = 8;
  static constexpr int last_round = RoundKeys::last_round;
  uint4 encrypt[last_round + 1][key_count];
  uint4 decrypt[last_round + 1][key_count];  // of the equivalent inverse cipher (FIPS 197, 5.3.5)
  std::uint32_t round_counts[key_count];
};

constexpr std::size_t cipher_key_group_count(std::size_t key_count) {
  return (key_count + CipherKeyGroup::key_count - 1) / CipherKeyGroup::key_count;
}

// The sizes of GHASH as products of binary matrices (ghash.cu explains them).
inline constexpr int ghash_rows = 32;
inline constexpr int ghash_small_tile_blocks = 512;
inline constexpr int ghash_powers = 128;

struct alignas(32) ExpandedSuiteKey {
  uint2 ghash_matrices[16][2][32];         // of H^4 to H
  uint4 ghash_short_powers[ghash_powers];  // H^(4 k)
  uint4 ghash_long_powers[ghash_powers];   // H^(16 k)
  uint4 ghash_tile_powers[ghash_powers];   // H^(512 k)
  uint4 ghash_stride_power;                // H^(512 * 128)
  std::uint32_t hmac_inner[8];             // SHA-256 states after the padded key
  std::uint32_t hmac_outer[8];
  RoundKeys iv;  // cbc_hmac with AES
};

// The expanded keys of one family, in device memory: cipher_key_group_count() groups for AES, else
// one element for each key. Owns nothing.
struct KeyTable {
  CipherKeyGroup* ciphers;   // AES
  ExpandedSuiteKey* suites;  // nullptr when all keys are bare block ciphers'
  DesKey* des = nullptr;     // DES and 3DES
  CipherFamily family = CipherFamily::aes;
};

// Which round keys of a CipherKeyGroup are made. `both` is needed to decrypt ECB and CBC, which use
// the inverse cipher.
enum class KeyDirections : std::uint8_t { encrypt, both };

// Expands count keys into the table. An AES key whose size is not 16, 24 or 32 is an error of the
// caller; it is treated as one of 32 bytes. For DES keys both directions are always made.
cudaError_t expand_keys(const RawKey* keys, std::uint32_t count, KeyDirections directions,
                        KeyTable table, cudaStream_t stream);

}  // namespace nacre::engine::cuda
