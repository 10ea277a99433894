// SPDX-License-Identifier: Apache-2.0
// Turns raw bytes into the object of a key's kind.
#include "gpu_engine/cpu/expanded_key.h"

namespace nacre::engine {
namespace {

template <typename T>
Result<KeyObject> to_object(Result<T> made) {
  if (!made) return tl::unexpected<Error>(std::move(made).error());
  return KeyObject(std::move(*made));
}

template <typename T>
const T* find(const std::optional<KeyObject>& object) {
  return object ? std::get_if<T>(&*object) : nullptr;
}

}  // namespace

Result<KeyObject> expand_key(const KeyUse& use, ByteView key) {
  switch (use.kind) {
    case KeyKind::suite:
      return to_object(AeadKey::create(use.suite, key));
    case KeyKind::block_cipher:
      return to_object(CipherKey::create(use.cipher, use.mode, key));
    case KeyKind::rsa_public:
      return to_object(RsaPublicKey::from_der(key, rsa_message_bits_min));
    case KeyKind::rsa_private:
      return to_object(RsaPrivateKey::from_der(key, rsa_message_bits_min));
  }
  return fail(ErrorCode::invalid_argument, "unknown kind of key");
}

const AeadKey* ExpandedKey::aead() const {
  const auto* const found = find<std::shared_ptr<const AeadKey>>(object);
  return found == nullptr ? nullptr : found->get();
}

const CipherKey* ExpandedKey::cipher() const {
  const auto* const found = find<std::shared_ptr<const CipherKey>>(object);
  return found == nullptr ? nullptr : found->get();
}

const RsaPublicKey* ExpandedKey::rsa_public() const {
  return find<RsaPublicKey>(object);
}

const RsaPrivateKey* ExpandedKey::rsa_private() const {
  return find<RsaPrivateKey>(object);
}

}  // namespace nacre::engine
