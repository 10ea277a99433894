// SPDX-License-Identifier: Apache-2.0
// The registry of cipher suites that volumes may use. docs/FORMAT.md, "Cipher suites".
//
// A suite authenticates what it encrypts: GCM (NIST SP 800-38D) by itself, CTR and CBC by
// HMAC-SHA256 over the ciphertext.
#pragma once

#include <cstdint>
#include <string_view>

#include "gpu_engine/base/result.h"
#include "gpu_engine/cipher/block_cipher.h"

namespace nacre::engine {

// Values are on-disk numbers and never change.
enum class CipherSuite : std::uint8_t {
  aes_256_gcm = 1,
  aes_192_gcm = 2,
  aes_128_gcm = 3,
  aes_256_ctr = 4,
  aes_192_ctr = 5,
  aes_128_ctr = 6,
  aes_256_cbc = 7,
  aes_192_cbc = 8,
  aes_128_cbc = 9,
  des_ede3_cbc = 10,
  des_cbc = 11,
};
inline constexpr std::uint8_t cipher_suite_number_max = 11;

inline constexpr std::size_t suite_key_size_bytes_max = 96;
inline constexpr std::size_t nonce_size_bytes = 12;
inline constexpr std::size_t tag_size_bytes_min = 16;
inline constexpr std::size_t tag_size_bytes_max = 32;
inline constexpr std::size_t suite_hmac_key_size_bytes = 32;

enum class SuiteConstruction : std::uint8_t { gcm, ctr_hmac, cbc_hmac };

std::string_view to_string(CipherSuite suite);
// invalid_argument for an unknown name or number.
Result<CipherSuite> suite_from_name(std::string_view name);
Result<CipherSuite> suite_from_number(std::uint8_t number);

// The size of the suite's whole key, which consists of the encryption key, then for CBC the key of
// the initialization vectors, then for ctr_hmac and cbc_hmac the HMAC key. suite must be a known
// one here and in the following functions.
std::size_t key_size_bytes(CipherSuite suite);
std::size_t tag_size_bytes(CipherSuite suite);
BlockCipher block_cipher(CipherSuite suite);
SuiteConstruction construction(CipherSuite suite);

// The number of which a sealed size must be a multiple: the block size for CBC, else 1.
std::size_t plain_unit_bytes(CipherSuite suite);

// Whether the suite uses DES or 3DES. They are too weak for new volumes; a user gets them only with
// a second option.
bool is_legacy(CipherSuite suite);

// How many stored bytes of records (headers and tags included) one write session may seal before a
// new salt must be drawn. Blocks of 64 bits begin to collide after 2^32 of them, so their sessions
// end after 1 GiB, at a chance of 2^-11. Other sessions end only after session_record_count_max
// records.
std::uint64_t session_size_bytes_max(CipherSuite suite);

}  // namespace nacre::engine
