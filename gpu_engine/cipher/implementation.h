// SPDX-License-Identifier: Apache-2.0
// Which library does the cryptography.
//
// Two implementations give the same bytes: libipsec-mb where the processor has what it needs, and
// OpenSSL everywhere. The choice is made once at run time; NACRE_CRYPTO=openssl|ipsec forces one.
#pragma once

#include <cstdint>
#include <string_view>

#include "gpu_engine/base/result.h"

namespace nacre::engine {

enum class CryptoImplementation : std::uint8_t { automatic, ipsec_mb, openssl };

// What automatic means on this machine: ipsec_mb or openssl. Thread-safe.
CryptoImplementation chosen_crypto_implementation();
// "ipsec-mb" or "openssl": the name of chosen_crypto_implementation().
std::string_view crypto_implementation_name();

// Whether the processor has the instructions with which libipsec-mb is faster than OpenSSL: AES and
// carry-less multiply.
bool ipsec_mb_is_available();
// unsupported, with advice, when ipsec_mb_is_available() is false.
Result<> require_ipsec_mb();

}  // namespace nacre::engine
