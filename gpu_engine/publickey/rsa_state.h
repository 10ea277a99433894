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
};

// Both refuse what is not RSA, has too few or too many bits, or an unsound modulus or exponent.
Result<RsaPublicKey> make_public_key(OpensslOwner<EVP_PKEY> key);
Result<RsaPrivateKey> make_private_key(OpensslOwner<EVP_PKEY> key);

}  // namespace nacre::engine
