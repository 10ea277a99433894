// SPDX-License-Identifier: Apache-2.0
// A private key as a file that needs a passphrase.
#pragma once

#include <string>

#include "gpu_engine/publickey/rsa.h"

namespace nacre::engine {

// PKCS#8 in PEM under a passphrase that is not empty: scrypt (16 MiB, four times over; RFC 7914)
// and AES-256-CBC, as RFC 8018 says. openssl(1) opens it from 1.1.0 on, RsaPrivateKey::from_pem()
// too. Thread-safe.
Result<std::string> to_encrypted_pem(const RsaPrivateKey& key, ByteView passphrase);

}  // namespace nacre::engine
