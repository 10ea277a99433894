// SPDX-License-Identifier: Apache-2.0
// The purpose of a payload's key.
#pragma once

#include <cstdint>

#include "gpu_engine/cipher/suite.h"

namespace nacre::engine {

// A key serves one purpose, so a block cipher's key names its mode as well.
enum class KeyKind : std::uint8_t { suite, block_cipher, rsa_public, rsa_private };
struct KeyUse {
  KeyKind kind = KeyKind::suite;
  CipherSuite suite = CipherSuite::aes_256_gcm;  // of kind suite
  BlockCipher cipher = BlockCipher::aes_256;     // of kind block_cipher
  CipherMode mode = CipherMode::ctr;             // of kind block_cipher
  bool operator==(const KeyUse&) const = default;
};

}  // namespace nacre::engine
