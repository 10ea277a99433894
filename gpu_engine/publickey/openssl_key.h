// SPDX-License-Identifier: Apache-2.0
// Owners of OpenSSL objects and its error text, for the sources of this folder.
#pragma once

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

#include <memory>
#include <string>
#include <string_view>

namespace nacre::engine {

struct FreeOpenssl {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(EVP_PKEY_CTX* context) const { EVP_PKEY_CTX_free(context); }
  void operator()(PKCS8_PRIV_KEY_INFO* info) const { PKCS8_PRIV_KEY_INFO_free(info); }
  void operator()(X509_SIG* sealed) const { X509_SIG_free(sealed); }
};
// Owns one reference to an object of OpenSSL, and frees it. Not for objects that OpenSSL lends.
template <typename T>
using OpensslOwner = std::unique_ptr<T, FreeOpenssl>;

// Why OpenSSL's last call on this thread failed, as one line of text. Empties the thread's error
// queue.
std::string take_openssl_reason();

}  // namespace nacre::engine
