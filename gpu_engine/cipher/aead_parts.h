// SPDX-License-Identifier: Apache-2.0
// The implementations that aead.cpp chooses from.
#pragma once

#include "gpu_engine/cipher/aead.h"

namespace nacre::engine {

// The caller has checked the key's size, and that ipsec-mb is available.
Result<std::shared_ptr<const AeadKey>> create_ipsec_mb_gcm_key(CipherSuite suite, ByteView key);
Result<std::shared_ptr<const AeadKey>> create_openssl_gcm_key(CipherSuite suite, ByteView key);
Result<std::shared_ptr<const AeadKey>> create_hmac_suite_key(CipherSuite suite, ByteView key,
                                                             CryptoImplementation implementation);

}  // namespace nacre::engine
