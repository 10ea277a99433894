// SPDX-License-Identifier: Apache-2.0
// The members of the RSA key classes, and how a key object becomes one of them.
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

// make_public_key() and make_private_key() refuse, with invalid_argument, a key that is not RSA,
// has too few or too many bits, or has an unsound modulus or exponent.
Result<RsaPublicKey> make_public_key(OpensslOwner<EVP_PKEY> key, int bits_min = rsa_bits_min);
Result<RsaPrivateKey> make_private_key(OpensslOwner<EVP_PKEY> key, int bits_min = rsa_bits_min);

// The checks of make_public_key() and make_private_key().
Result<void> check_rsa_key(EVP_PKEY* key, int bits_min);
// nullptr for bytes that are not the DER of a key: SubjectPublicKeyInfo, PKCS#8.
OpensslOwner<EVP_PKEY> parse_public_key(ByteView der);
OpensslOwner<EVP_PKEY> parse_private_key(ByteView der);

Bytes encode_public_key(const EVP_PKEY* key);  // DER SubjectPublicKeyInfo

// RsaPrivateKey::unwrap() with a key in a token or store. OAEP is done there; or where that fails,
// the bare operation there and the padding here.
Result<SecretBytes> unwrap_elsewhere(EVP_PKEY* key, ByteView wrapped, std::string_view label);
// The secret in a decrypted OAEP-SHA256 block, which is as long as the modulus. wrong_key when
// there is none.
Result<SecretBytes> decode_oaep(ByteView encoded, std::string_view label);
// The reverse of decode_oaep(), with a seed from the operating system. encoded: as long as the
// modulus. invalid_argument when the secret is too long for the modulus.
Result<> encode_oaep(ByteView secret, std::string_view label, MutableByteView encoded);

}  // namespace nacre::engine
