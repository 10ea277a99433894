// SPDX-License-Identifier: Apache-2.0
// The implementations of cryptography that tests compare.
#pragma once

#include <vector>

#include "gpu_engine/cipher/implementation.h"

namespace nacre::engine {

// The implementations that this processor can run, and automatic, which chooses among them.
inline std::vector<CryptoImplementation> crypto_implementations() {
  std::vector<CryptoImplementation> all = {CryptoImplementation::openssl,
                                           CryptoImplementation::automatic};
  if (ipsec_mb_is_available()) all.push_back(CryptoImplementation::ipsec_mb);
  return all;
}

}  // namespace nacre::engine
