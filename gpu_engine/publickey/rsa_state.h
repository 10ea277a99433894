// SPDX-License-Identifier: Apache-2.0
// What the RSA key classes hold, and how a key object becomes one of them.
#pragma once

#include "gpu_engine/publickey/openssl_key.h"
#include "gpu_engine/publickey/rsa.h"

namespace nacre::engine {

struct RsaPublicKey::State {
  OpensslOwner<EVP_PKEY> key;
};

struct RsaPrivateKey::State {
  OpensslOwner<EVP_PKEY> key;
  RsaPublicKey public_key;
  bool is_elsewhere = false;  // in a token or store, which may not know all operations
};

// Both refuse what is not RSA, has too few or too many bits, or an unsound modulus or exponent.
Result<RsaPublicKey> make_public_key(OpensslOwner<EVP_PKEY> key);
Result<RsaPrivateKey> make_private_key(OpensslOwner<EVP_PKEY> key);

Bytes encode_public_key(const EVP_PKEY* key);  // DER SubjectPublicKeyInfo

// RsaPrivateKey::unwrap() with a key elsewhere: OAEP there, or the bare operation there and the
// rest here.
Result<SecretBytes> unwrap_elsewhere(EVP_PKEY* key, ByteView wrapped, std::string_view label);
// The secret in a decrypted OAEP-SHA256 block, as long as the modulus. wrong_key when it is none.
Result<SecretBytes> decode_oaep(ByteView encoded, std::string_view label);

}  // namespace nacre::engine
