// SPDX-License-Identifier: Apache-2.0
// Chooses between the constructions of the suites and between their implementations.
#include "gpu_engine/cipher/aead.h"

#include <fmt/format.h>

#include <algorithm>

#include "gpu_engine/cipher/aead_parts.h"

namespace nacre::engine {

Result<std::shared_ptr<const AeadKey>> AeadKey::create(CipherSuite suite, ByteView key,
                                                       CryptoImplementation implementation) {
  NACRE_TRY(suite_from_number(static_cast<std::uint8_t>(suite)));
  if (key.size() != key_size_bytes(suite))
    return fail(ErrorCode::invalid_argument,
                fmt::format("a key of {} has {} bytes, not {}", to_string(suite),
                            key_size_bytes(suite), key.size()));
  if (construction(suite) != SuiteConstruction::gcm)
    return create_hmac_suite_key(suite, key, implementation);
  if (implementation == CryptoImplementation::automatic)
    implementation = chosen_crypto_implementation();
  if (implementation == CryptoImplementation::openssl) return create_openssl_gcm_key(suite, key);
  NACRE_TRY(require_ipsec_mb());
  return create_ipsec_mb_gcm_key(suite, key);
}

Result<void> AeadKey::open_in_two(ByteView /*nonce*/, ByteView /*aad*/, ByteView /*in*/,
                                  ByteView /*tag*/, MutableByteView /*head*/,
                                  const ChooseRest& /*rest*/) const {
  return fail(ErrorCode::unsupported, "the suite checks its tag before it decrypts anything");
}

bool is_valid_nonce(CipherSuite suite, ByteView nonce) {
  if (nonce.size() != nonce_size_bytes) return false;
  const ByteView ignored =
      nonce.first(block_size_bytes(block_cipher(suite)) == 8 ? nonce_size_bytes - 8 : 0);
  return std::all_of(ignored.begin(), ignored.end(), [](Byte b) { return b == 0; });
}

}  // namespace nacre::engine
