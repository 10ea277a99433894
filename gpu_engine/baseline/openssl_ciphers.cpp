// SPDX-License-Identifier: Apache-2.0
// OpenSSL's EVP: the key is set once, each message gets its initialization vector.
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/provider.h>

#include <fmt/format.h>

#include "gpu_engine/baseline/baseline_parts.h"

namespace nacre::engine {
namespace {

using Size = std::optional<std::size_t>;
using Context = std::shared_ptr<EVP_CIPHER_CTX>;
using Cipher = std::shared_ptr<EVP_CIPHER>;

constexpr std::size_t gcm_tag_bytes = 16;

// Single DES is in the legacy provider, which gets a library context of its own. Never freed.
OSSL_LIB_CTX* legacy_library() {
  static OSSL_LIB_CTX* const library = [] {
    OSSL_LIB_CTX* const made = OSSL_LIB_CTX_new();
    if (made != nullptr) OSSL_PROVIDER_load(made, "legacy");
    return made;
  }();
  return library;
}

// Empty when OpenSSL has no such cipher.
Cipher find_cipher(const KeyUse& use) {
  const bool is_suite = use.kind == KeyKind::suite;
  const BlockCipher cipher = is_suite ? block_cipher(use.suite) : use.cipher;
  const std::string mode(is_suite ? "gcm" : to_string(use.mode));
  return {EVP_CIPHER_fetch(cipher == BlockCipher::des ? legacy_library() : nullptr,
                           fmt::format("{}-{}", to_string(cipher), mode).c_str(), nullptr),
          EVP_CIPHER_free};
}

Context make_context(const Cipher& cipher, ByteView key, bool encrypts) {
  Context context(EVP_CIPHER_CTX_new(), EVP_CIPHER_CTX_free);
  if (!context ||
      EVP_CipherInit_ex(context.get(), cipher.get(), nullptr, key.data(), nullptr, encrypts) != 1)
    return nullptr;
  EVP_CIPHER_CTX_set_padding(context.get(), 0);
  return context;
}

bool begin(const Context& context, const CipherIv& iv) {
  return context && EVP_CipherInit_ex(context.get(), nullptr, nullptr, nullptr, iv.data(), -1) == 1;
}

bool update(const Context& context, ByteView in, MutableByteView out) {
  int written = 0;
  int rest = 0;
  return EVP_CipherUpdate(context.get(), out.data(), &written, in.data(),
                          static_cast<int>(in.size())) == 1 &&
         EVP_CipherFinal_ex(context.get(), out.data() + written, &rest) == 1 &&
         static_cast<std::size_t>(written + rest) == in.size();
}

std::unique_ptr<Baseline> make_gcm(const Cipher& cipher, ByteView key, CipherIv iv, bool encrypts) {
  const Context context = make_context(cipher, key, encrypts);
  if (encrypts) {
    return each_piece([context, iv](ByteView in, MutableByteView out) {
      const bool fine = begin(context, iv) && update(context, in, out) &&
                        EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_AEAD_GET_TAG, gcm_tag_bytes,
                                            out.data() + in.size()) == 1;
      return fine ? Size(in.size() + gcm_tag_bytes) : std::nullopt;
    });
  }
  return each_piece([context, iv](ByteView in, MutableByteView out) {
    const ByteView coded = in.first(in.size() - gcm_tag_bytes);
    const bool fine = begin(context, iv) &&
                      EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_AEAD_SET_TAG, gcm_tag_bytes,
                                          const_cast<Byte*>(in.data() + coded.size())) == 1 &&
                      update(context, coded, out);
    return fine ? Size(coded.size()) : std::nullopt;
  });
}

}  // namespace

void add_openssl_baselines(const BaselineTask& task, BaselineLibraries& libraries) {
  if (task.key_use.kind == KeyKind::suite &&
      construction(task.key_use.suite) != SuiteConstruction::gcm)
    return add_openssl_hmac_baseline(task, libraries);
  const std::string name = fmt::format("OpenSSL {}", OpenSSL_version(OPENSSL_VERSION_STRING));
  const bool encrypts = task.operation == Operation::encrypt;
  const ByteView key = task.key;
  const Cipher cipher = find_cipher(task.key_use);
  if (!cipher) return;
  if (task.key_use.kind == KeyKind::suite) {
    libraries.push_back({name, "", true, "libssl-dev", [cipher, key, iv = task.iv, encrypts] {
                           return make_gcm(cipher, key, iv, encrypts);
                         }});
    return;
  }
  libraries.push_back({name, "", true, "libssl-dev", [cipher, key, iv = task.iv, encrypts] {
                         return each_piece([context = make_context(cipher, key, encrypts), iv](
                                               ByteView in, MutableByteView out) {
                           return begin(context, iv) && update(context, in, out) ? Size(in.size())
                                                                                 : std::nullopt;
                         });
                       }});
}

}  // namespace nacre::engine
