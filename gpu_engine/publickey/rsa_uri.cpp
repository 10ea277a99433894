// SPDX-License-Identifier: Apache-2.0
// RSA private keys that lie elsewhere, named by a URI: in a token behind an OpenSSL engine, or in
// any place that OpenSSL's store reaches (providers, files). The key may be unable to leave that
// place, and is used there for one private operation.
#include <openssl/err.h>
#include <openssl/rsa.h>
#include <openssl/store.h>
#include <openssl/ui.h>

#include <algorithm>
#include <optional>

#include "gpu_engine/publickey/engine_key.h"
#include "gpu_engine/publickey/pin_prompt.h"
#include "gpu_engine/publickey/rsa.h"
#include "gpu_engine/publickey/rsa_state.h"

namespace nacre::engine {
namespace {

constexpr std::string_view engine_scheme = "engine:";

struct CloseStore {
  void operator()(OSSL_STORE_CTX* store) const { OSSL_STORE_close(store); }
  void operator()(OSSL_STORE_INFO* info) const { OSSL_STORE_INFO_free(info); }
};

// The first private key that the store has under this name.
Result<OpensslOwner<EVP_PKEY>> load_from_store(const std::string& uri, PinPrompt& prompt) {
  const std::unique_ptr<OSSL_STORE_CTX, CloseStore> store(
      OSSL_STORE_open(uri.c_str(), prompt.method(), prompt.method_data(), nullptr, nullptr));
  if (store == nullptr) {
    return fail(ErrorCode::not_found,
                uri + ": OpenSSL has no store for this: " + take_openssl_reason() +
                    ". Is the provider for it installed, and in openssl.cnf?");
  }
  OSSL_STORE_expect(store.get(), OSSL_STORE_INFO_PKEY);
  while (OSSL_STORE_eof(store.get()) == 0) {
    const std::unique_ptr<OSSL_STORE_INFO, CloseStore> info(OSSL_STORE_load(store.get()));
    if (info == nullptr) {
      if (OSSL_STORE_error(store.get()) != 0) break;
      continue;
    }
    if (OSSL_STORE_INFO_get_type(info.get()) == OSSL_STORE_INFO_PKEY)
      return OpensslOwner<EVP_PKEY>(OSSL_STORE_INFO_get1_PKEY(info.get()));
  }
  return OpensslOwner<EVP_PKEY>();
}

}  // namespace

bool is_key_uri(std::string_view name) {
  const std::size_t colon = name.find(':');
  if (colon == std::string_view::npos || colon == 0) return false;
  // RFC 3986, 3.1, in lower case only. A single character is not a scheme.
  return colon > 1 &&
         std::all_of(name.begin(), name.begin() + static_cast<std::ptrdiff_t>(colon), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' || c == '-' ||
                  c == '.';
         });
}

Result<RsaPrivateKey> RsaPrivateKey::from_uri(const std::string& uri, const AskPin& ask_pin) {
  PinPrompt prompt(ask_pin);
  ERR_clear_error();
  auto key = uri.starts_with(engine_scheme)
                 ? load_engine_key(uri.substr(engine_scheme.size()), prompt)
                 : load_from_store(uri, prompt);
  if (prompt.failure()) return tl::unexpected(*prompt.failure());
  if (!key) return tl::unexpected(key.error());
  if (*key == nullptr) {
    const std::string reason = take_openssl_reason();
    if (prompt.was_asked()) {
      return fail(ErrorCode::wrong_key,
                  uri +
                      ": the PIN or passphrase does not open it, or no private key has this "
                      "name: " +
                      reason);
    }
    return fail(ErrorCode::not_found, uri + ": no private key has this name: " + reason);
  }
  NACRE_ASSIGN(RsaPublicKey public_key, RsaPublicKey::from_der(encode_public_key(key->get())));
  return RsaPrivateKey(std::make_shared<const State>(
      State{.key = std::move(*key), .public_key = std::move(public_key), .is_elsewhere = true}));
}

namespace {

OpensslOwner<EVP_PKEY_CTX> decryption(EVP_PKEY* key, int padding) {
  OpensslOwner<EVP_PKEY_CTX> context(EVP_PKEY_CTX_new_from_pkey(nullptr, key, nullptr));
  if (context == nullptr || EVP_PKEY_decrypt_init(context.get()) != 1 ||
      EVP_PKEY_CTX_set_rsa_padding(context.get(), padding) != 1)
    return nullptr;
  return context;
}

std::optional<SecretBytes> run(EVP_PKEY_CTX* context, ByteView input, std::size_t size_max) {
  SecretBytes buffer(size_max);
  std::size_t size = buffer.size();
  if (EVP_PKEY_decrypt(context, buffer.mutable_view().data(), &size, input.data(), input.size()) !=
      1)
    return std::nullopt;
  return SecretBytes(buffer.view().first(size));
}

// Does the whole operation in the token or store. Many tokens support OAEP only with SHA-1, or only
// without a label.
std::optional<SecretBytes> unwrap_with_oaep(EVP_PKEY* key, ByteView wrapped,
                                            std::string_view label) {
  const auto context = decryption(key, RSA_PKCS1_OAEP_PADDING);
  if (context == nullptr || EVP_PKEY_CTX_set_rsa_oaep_md(context.get(), EVP_sha256()) != 1 ||
      EVP_PKEY_CTX_set_rsa_mgf1_md(context.get(), EVP_sha256()) != 1)
    return std::nullopt;
  void* copy = OPENSSL_memdup(label.data(), label.size());
  if (copy == nullptr ||
      EVP_PKEY_CTX_set0_rsa_oaep_label(context.get(), copy, static_cast<int>(label.size())) != 1) {
    OPENSSL_free(copy);
    return std::nullopt;
  }
  return run(context.get(), wrapped, wrapped.size());
}

}  // namespace

Result<SecretBytes> unwrap_elsewhere(EVP_PKEY* key, ByteView wrapped, std::string_view label) {
  if (auto secret = unwrap_with_oaep(key, wrapped, label)) return std::move(*secret);
  ERR_clear_error();
  const auto context = decryption(key, RSA_NO_PADDING);
  const auto encoded =
      context == nullptr ? std::nullopt : run(context.get(), wrapped, wrapped.size());
  if (!encoded) {
    return fail(ErrorCode::wrong_key,
                "the token cannot decrypt with this key, either by OAEP with SHA-256 or by the "
                "bare RSA operation: " +
                    take_openssl_reason());
  }
  return decode_oaep(encoded->view(), label);
}

}  // namespace nacre::engine
