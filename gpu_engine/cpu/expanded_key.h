// SPDX-License-Identifier: Apache-2.0
// A payload's key in the form in which operations use it.
#pragma once

#include <memory>
#include <optional>
#include <variant>

#include "gpu_engine/cipher/aead.h"
#include "gpu_engine/cipher/block_cipher.h"
#include "gpu_engine/payload.h"
#include "gpu_engine/publickey/rsa.h"

namespace nacre::engine {

// One alternative for each kind of key. Copies share one object; all are thread-safe.
using KeyObject = std::variant<std::shared_ptr<const AeadKey>, std::shared_ptr<const CipherKey>,
                               RsaPublicKey, RsaPrivateKey>;

// Errors are those of the class for the kind: invalid_argument or unsupported.
Result<KeyObject> expand_key(const KeyUse& use, ByteView key);

// One for each entry of Payload::key_table, at the same index. A key that could not be expanded has
// no object, and every message that names the key gets its error.
struct ExpandedKey {
  std::optional<KeyObject> object;
  ErrorCode error = ErrorCode::invalid_argument;

  // nullptr for a key of another kind, or for none.
  const AeadKey* aead() const;
  const CipherKey* cipher() const;
  const RsaPublicKey* rsa_public() const;
  const RsaPrivateKey* rsa_private() const;
};

}  // namespace nacre::engine
