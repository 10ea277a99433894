// SPDX-License-Identifier: Apache-2.0
// OpenSSL's cipher contexts of one key.
//
// A context holds the expanded key and the state of one message, so it serves one call at a time.
// The pool keeps the contexts that calls have made and lends them out again; a later call sets only
// the nonce. There are never more contexts than there were calls at once. With valid arguments an
// OpenSSL call fails only when memory is exhausted. Then std::bad_alloc is thrown, because going on
// would send plain bytes out.
#pragma once

#include <openssl/evp.h>

#include <memory>
#include <vector>

#include "gpu_engine/base/bytes.h"
#include "gpu_engine/base/mutex.h"

namespace nacre::engine {

struct FreeCipherContext {
  void operator()(EVP_CIPHER_CTX* context) const { EVP_CIPHER_CTX_free(context); }
};
using CipherContext = std::unique_ptr<EVP_CIPHER_CTX, FreeCipherContext>;

// Throws std::bad_alloc when an OpenSSL call did not return 1.
void require_openssl(int result);

// Thread-safe. The copy of the key is wiped when freed.
class OpensslContexts {
 public:
  // cipher outlives the pool.
  OpensslContexts(const EVP_CIPHER* cipher, ByteView key, bool encrypting)
      : cipher_(cipher), key_(key), encrypting_(encrypting) {}

  // A context with key and direction set, without padding; the caller's until give_back(). Throws
  // std::bad_alloc.
  CipherContext take() const;
  void give_back(CipherContext context) const;

 private:
  const EVP_CIPHER* const cipher_;
  const SecretBytes key_;
  const bool encrypting_;
  mutable Mutex mutex_;
  mutable std::vector<CipherContext> idle_ NACRE_GUARDED_BY(mutex_);
};

}  // namespace nacre::engine
