// SPDX-License-Identifier: Apache-2.0
// Owners of OpenSSL's numbers, which wipe them when they are freed, for the sources of this folder.
#pragma once

#include <openssl/bn.h>

#include <memory>

namespace nacre::engine {

// Wipes a number and frees it.
struct FreeNumber {
  void operator()(BIGNUM* number) const { BN_clear_free(number); }
  void operator()(BN_CTX* context) const { BN_CTX_free(context); }
};
// Move-only; null if OpenSSL had no memory. Not thread-safe.
template <typename T>
using NumberOwner = std::unique_ptr<T, FreeNumber>;
using Number = NumberOwner<BIGNUM>;

}  // namespace nacre::engine
