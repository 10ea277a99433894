// SPDX-License-Identifier: Apache-2.0
// A private key as a file that needs a passphrase.
#pragma once

#include <string>

#include "gpu_engine/publickey/rsa.h"

namespace nacre::engine {

// PKCS#8 in PEM, encrypted under the passphrase by scrypt (RFC 7914; N = 2^14, r = 8, p = 4: 16 MiB
// of memory) and AES-256-CBC, as in RFC 8018. openssl(1) from 1.1.0 on and
// RsaPrivateKey::from_pem() open it. invalid_argument for an empty passphrase. Thread-safe.
Result<std::string> to_encrypted_pem(const RsaPrivateKey& key, ByteView passphrase);

}  // namespace nacre::engine
