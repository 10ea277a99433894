// SPDX-License-Identifier: Apache-2.0
// Chooses between the two implementations, once.
#include "gpu_engine/cipher/implementation.h"

#include <cstdlib>

namespace nacre::engine {

CryptoImplementation chosen_crypto_implementation() {
  static const CryptoImplementation chosen = [] {
    const char* forced = std::getenv("NACRE_CRYPTO");
    const std::string_view name = forced == nullptr ? "" : forced;
    if (name == "openssl") return CryptoImplementation::openssl;
    if (name == "ipsec") return CryptoImplementation::ipsec_mb;
    return ipsec_mb_is_available() ? CryptoImplementation::ipsec_mb : CryptoImplementation::openssl;
  }();
  return chosen;
}

std::string_view crypto_implementation_name() {
  return chosen_crypto_implementation() == CryptoImplementation::ipsec_mb ? "ipsec-mb" : "openssl";
}

Result<> require_ipsec_mb() {
  if (ipsec_mb_is_available()) return {};
  return fail(
      ErrorCode::unsupported,
      "this processor lacks the AES instructions that ipsec-mb needs; unset NACRE_CRYPTO or "
      "set it to openssl");
}

}  // namespace nacre::engine
