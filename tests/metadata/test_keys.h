// SPDX-License-Identifier: Apache-2.0
// Recipients and keys that are cheap to make: many tests need some.
#pragma once

#include <string_view>
#include <vector>

#include "metadata/keys/keyring.h"

namespace nacre::tests {

inline constexpr engine::Argon2Parameters cheap_kdf{
    .memory_kib = engine::argon2_memory_kib_min, .passes = 1, .lanes = 1};

inline SecretBytes secret(std::string_view text) {
  return SecretBytes(as_bytes(text));
}

inline metadata::NewRecipient passphrase(std::string_view text, std::string label = "") {
  return metadata::NewPassphrase{.label = std::move(label),
                                 .passphrase = secret(text),
                                 .kdf = cheap_kdf,
                                 .rsa_bits = engine::rsa_bits_min};
}

// One of a few keys, made once a run.
inline const engine::RsaPrivateKey& identity(std::size_t index) {
  static std::vector<engine::RsaPrivateKey> keys;
  while (keys.size() <= index) {
    keys.push_back(engine::RsaPrivateKey::generate(engine::rsa_bits_min).value());
  }
  return keys[index];
}

inline metadata::NewRecipient public_key(std::size_t index, std::string label = "") {
  return metadata::NewPublicKey{.label = std::move(label), .key = identity(index).public_key()};
}

template <typename... Recipients>
std::vector<metadata::NewRecipient> recipients(Recipients... each) {
  std::vector<metadata::NewRecipient> list;
  (list.push_back(std::move(each)), ...);
  return list;
}

}  // namespace nacre::tests
