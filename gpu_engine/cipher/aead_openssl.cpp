// SPDX-License-Identifier: Apache-2.0
// AES-GCM by OpenSSL: the portable implementation.
#include <openssl/evp.h>

#include <array>
#include <memory>
#include <string>

#include "gpu_engine/cipher/aead_parts.h"
#include "gpu_engine/cipher/openssl_contexts.h"

namespace nacre::engine {
namespace {

struct FreeCipher {
  void operator()(EVP_CIPHER* cipher) const { EVP_CIPHER_free(cipher); }
};
using OwnedCipher = std::unique_ptr<EVP_CIPHER, FreeCipher>;

enum class Step : int { open = 0, seal = 1 };

const EVP_CIPHER* find_gcm(CipherSuite suite) {
  static const std::array<OwnedCipher, 3> instances = {
      OwnedCipher(EVP_CIPHER_fetch(nullptr, "AES-256-GCM", nullptr)),
      OwnedCipher(EVP_CIPHER_fetch(nullptr, "AES-192-GCM", nullptr)),
      OwnedCipher(EVP_CIPHER_fetch(nullptr, "AES-128-GCM", nullptr))};
  return instances[static_cast<std::size_t>(suite) - 1].get();
}

class OpensslKey final : public AeadKey {
 public:
  OpensslKey(const EVP_CIPHER* cipher, ByteView key) : contexts_(cipher, key, true) {}

  void seal(ByteView nonce, ByteView aad, ByteView in, MutableByteView out,
            MutableByteView tag) const override {
    CipherContext context = contexts_.take();
    begin(context.get(), Step::seal, nonce, aad);
    crypt(context.get(), in, out);
    int size = 0;
    require_openssl(EVP_CipherFinal_ex(context.get(), nullptr, &size));
    require_openssl(EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_AEAD_GET_TAG,
                                        static_cast<int>(tag.size()), tag.data()));
    contexts_.give_back(std::move(context));
  }

  Result<void> open(ByteView nonce, ByteView aad, ByteView in, ByteView tag,
                    MutableByteView out) const override {
    return open_in_two(nonce, aad, in, tag, out, [] { return MutableByteView(); });
  }

  bool opens_in_two() const override { return true; }
  Result<void> open_in_two(ByteView nonce, ByteView aad, ByteView in, ByteView tag,
                           MutableByteView head, const ChooseRest& rest) const override {
    MutableByteView chosen;
    try {
      CipherContext context = contexts_.take();
      begin(context.get(), Step::open, nonce, aad);
      crypt(context.get(), in.first(head.size()), head);
      chosen = rest();
      crypt(context.get(), in.subspan(head.size()), chosen);
      bool matches = tag.size() == tag_size_bytes_min;
      if (matches) {
        require_openssl(EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_AEAD_SET_TAG,
                                            static_cast<int>(tag.size()),
                                            const_cast<Byte*>(tag.data())));
        int size = 0;
        // Compares the tags in constant time.
        matches = EVP_CipherFinal_ex(context.get(), nullptr, &size) == 1;
      }
      contexts_.give_back(std::move(context));
      if (matches) return {};
    } catch (...) {
      wipe(head);
      wipe(chosen);
      throw;
    }
    wipe(head);
    wipe(chosen);
    return fail(ErrorCode::tampered, "the authentication tag does not match");
  }

 private:
  static void begin(EVP_CIPHER_CTX* context, Step step, ByteView nonce, ByteView aad) {
    int size = 0;
    require_openssl(EVP_CipherInit_ex2(context, nullptr, nullptr, nonce.data(),
                                       static_cast<int>(step), nullptr));
    if (!aad.empty())
      require_openssl(
          EVP_CipherUpdate(context, nullptr, &size, aad.data(), static_cast<int>(aad.size())));
  }

  static void crypt(EVP_CIPHER_CTX* context, ByteView in, MutableByteView out) {
    int size = 0;
    if (!in.empty())
      require_openssl(
          EVP_CipherUpdate(context, out.data(), &size, in.data(), static_cast<int>(in.size())));
  }

  const OpensslContexts contexts_;
};

}  // namespace

Result<std::shared_ptr<const AeadKey>> create_openssl_gcm_key(CipherSuite suite, ByteView key) {
  const EVP_CIPHER* const cipher = find_gcm(suite);
  if (cipher == nullptr)
    return fail(ErrorCode::unsupported,
                "this machine's OpenSSL has no " + std::string(to_string(suite)));
  return std::make_shared<const OpensslKey>(cipher, key);
}

}  // namespace nacre::engine
