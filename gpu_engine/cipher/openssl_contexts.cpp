// SPDX-License-Identifier: Apache-2.0
// The pool of contexts.
#include "gpu_engine/cipher/openssl_contexts.h"

#include <new>

namespace nacre::engine {

void require_openssl(int result) {
  if (result != 1) throw std::bad_alloc();
}

CipherContext OpensslContexts::take() const {
  {
    const LockGuard lock(mutex_);
    if (!idle_.empty()) {
      CipherContext context = std::move(idle_.back());
      idle_.pop_back();
      return context;
    }
  }
  CipherContext context(EVP_CIPHER_CTX_new());
  if (context == nullptr) throw std::bad_alloc();
  require_openssl(EVP_CipherInit_ex2(context.get(), cipher_, key_.view().data(), nullptr,
                                     encrypting_ ? 1 : 0, nullptr));
  require_openssl(EVP_CIPHER_CTX_set_padding(context.get(), 0));
  return context;
}

void OpensslContexts::give_back(CipherContext context) const {
  const LockGuard lock(mutex_);
  idle_.push_back(std::move(context));
}

}  // namespace nacre::engine
