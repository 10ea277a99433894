// SPDX-License-Identifier: Apache-2.0
// A private key of two primes as DER PKCS#8, written without a key object: OpenSSL's encoder takes
// locks that keys made on all cores would wait for.
#pragma once

#include <openssl/bn.h>

#include "gpu_engine/kdf/kdf.h"

namespace nacre::engine {

// What RFC 8017, A.1.2 puts into an RSAPrivateKey, in its order. Not owned.
struct RsaPrivateParts {
  const BIGNUM* n;
  const BIGNUM* e;
  const BIGNUM* d;
  const BIGNUM* p;
  const BIGNUM* q;
  const BIGNUM* p_exponent;
  const BIGNUM* q_exponent;
  const BIGNUM* q_inverse;
};

// None of them negative. Throws std::bad_alloc.
SecretBytes encode_rsa_private_key(const RsaPrivateParts& parts);

}  // namespace nacre::engine
