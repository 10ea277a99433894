// SPDX-License-Identifier: Apache-2.0
// A private key as a file that needs a passphrase.
#pragma once

#include <string>

#include "gpu_engine/publickey/rsa.h"

namespace nacre::engine {

// PKCS#8 in PEM under a passphrase that is not empty: scrypt (16 MiB, four iterations; RFC 7914)
// and AES-256-CBC, as RFC 8018 says. openssl(1) from 1.1.0 on and RsaPrivateKey::from_pem() open
// it. Thread-safe.
Result<std::string> to_encrypted_pem(const RsaPrivateKey& key, ByteView passphrase);

}  // namespace nacre::engine
