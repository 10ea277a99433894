// SPDX-License-Identifier: Apache-2.0
// A payload's key in the form that work is done with.
#pragma once

#include <memory>
#include <optional>
#include <variant>

#include "gpu_engine/cipher/aead.h"
#include "gpu_engine/cipher/block_cipher.h"
#include "gpu_engine/payload.h"
#include "gpu_engine/publickey/rsa.h"

namespace nacre::engine {

// One of each kind of key. Copies share one object; all are thread-safe.
using KeyObject = std::variant<std::shared_ptr<const AeadKey>, std::shared_ptr<const CipherKey>,
                               RsaPublicKey, RsaPrivateKey>;

// invalid_argument or unsupported, as the kind's own class says.
Result<KeyObject> expand_key(const KeyUse& use, ByteView key);

// At the index that messages name. A key that could not be expanded has no object, and its error is
// that of every message that names it.
struct ExpandedKey {
  std::optional<KeyObject> object;
  ErrorCode error = ErrorCode::invalid_argument;

  // nullptr for a key of another kind, or none.
  const AeadKey* aead() const;
  const CipherKey* cipher() const;
  const RsaPublicKey* rsa_public() const;
  const RsaPrivateKey* rsa_private() const;
};

}  // namespace nacre::engine
