// SPDX-License-Identifier: Apache-2.0
// Writes a private key of two primes as DER PKCS#8 without OpenSSL, whose encoder takes locks that
// threads on all cores would wait for.
#pragma once

#include <openssl/bn.h>

#include "gpu_engine/kdf/kdf.h"

namespace nacre::engine {

// The fields of an RSAPrivateKey in their order (RFC 8017, A.1.2). The caller owns the numbers.
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

// No number is negative. Throws std::bad_alloc.
SecretBytes encode_rsa_private_key(const RsaPrivateParts& parts);

}  // namespace nacre::engine
