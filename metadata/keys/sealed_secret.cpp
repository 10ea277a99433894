// SPDX-License-Identifier: Apache-2.0
#include "metadata/keys/sealed_secret.h"

#include "gpu_engine/cipher/aead.h"
#include "gpu_engine/kdf/kdf.h"

namespace nacre::metadata {

namespace {

constexpr auto suite = engine::CipherSuite::aes_256_gcm;
constexpr std::size_t tag_size_bytes = sealed_secret_overhead_bytes - engine::nonce_size_bytes;

}  // namespace

Result<Bytes> seal_secret(ByteView key, ByteView aad, ByteView secret) {
  NACRE_ASSIGN(const auto aead, engine::AeadKey::create(suite, key));
  Bytes sealed(secret.size() + sealed_secret_overhead_bytes);
  const MutableByteView all = sealed;
  const MutableByteView nonce = all.first(engine::nonce_size_bytes);
  engine::random_bytes(nonce);
  aead->seal(nonce, aad, secret, all.subspan(nonce.size(), secret.size()),
             all.last(tag_size_bytes));
  return sealed;
}

Result<SecretBytes> open_secret(ByteView key, ByteView aad, ByteView sealed) {
  if (sealed.size() < sealed_secret_overhead_bytes) {
    return fail(ErrorCode::tampered, "a sealed secret is cut off");
  }
  NACRE_ASSIGN(const auto aead, engine::AeadKey::create(suite, key));
  SecretBytes secret(sealed.size() - sealed_secret_overhead_bytes);
  NACRE_TRY(aead->open(sealed.first(engine::nonce_size_bytes), aad,
                       sealed.subspan(engine::nonce_size_bytes, secret.size()),
                       sealed.last(tag_size_bytes), secret.mutable_view()));
  return secret;
}

}  // namespace nacre::metadata
