// SPDX-License-Identifier: Apache-2.0
// RSA by OpenSSL's EVP_PKEY, with its context set up once. The engine uses the same library, so the
// difference is the cost of the payload.
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>

#include <fmt/format.h>

#include "gpu_engine/baseline/baseline_parts.h"

namespace nacre::engine {
namespace {

using Size = std::optional<std::size_t>;
using Key = std::shared_ptr<EVP_PKEY>;

Key read_key(const BaselineTask& task) {
  const unsigned char* at = task.key.data();
  const long size = static_cast<long>(task.key.size());
  EVP_PKEY* const key = task.operation == Operation::rsa_public
                            ? d2i_PUBKEY(nullptr, &at, size)
                            : d2i_AutoPrivateKey(nullptr, &at, size);
  return {key, EVP_PKEY_free};
}

std::unique_ptr<Baseline> make_operation(const BaselineTask& task) {
  const Key key = read_key(task);
  const bool is_public = task.operation == Operation::rsa_public;
  std::shared_ptr<EVP_PKEY_CTX> context(EVP_PKEY_CTX_new(key.get(), nullptr), EVP_PKEY_CTX_free);
  EVP_PKEY_CTX* const raw = context.get();
  const bool oaep = task.rsa_padding == RsaPadding::oaep_sha256;
  const bool ready =
      raw != nullptr &&
      (is_public ? EVP_PKEY_encrypt_init(raw) : EVP_PKEY_decrypt_init(raw)) == 1 &&
      EVP_PKEY_CTX_set_rsa_padding(raw, oaep ? RSA_PKCS1_OAEP_PADDING : RSA_NO_PADDING) == 1 &&
      (!oaep || (EVP_PKEY_CTX_set_rsa_oaep_md(raw, EVP_sha256()) == 1 &&
                 EVP_PKEY_CTX_set_rsa_mgf1_md(raw, EVP_sha256()) == 1));
  return each_piece([key, context, is_public, ready](ByteView in, MutableByteView out) -> Size {
    if (!ready) return std::nullopt;
    std::size_t size = out.size();
    const int outcome =
        is_public ? EVP_PKEY_encrypt(context.get(), out.data(), &size, in.data(), in.size())
                  : EVP_PKEY_decrypt(context.get(), out.data(), &size, in.data(), in.size());
    return outcome == 1 ? Size(size) : std::nullopt;
  });
}

std::unique_ptr<Baseline> make_generator(int bits) {
  return each_piece([bits](ByteView, MutableByteView out) -> Size {
    const Key key(EVP_RSA_gen(static_cast<unsigned>(bits)), EVP_PKEY_free);
    if (!key) return std::nullopt;
    unsigned char* at = out.data();
    const int size = i2d_PrivateKey(key.get(), nullptr);
    if (size <= 0 || static_cast<std::size_t>(size) > out.size()) return std::nullopt;
    return i2d_PrivateKey(key.get(), &at) == size ? Size(static_cast<std::size_t>(size))
                                                  : std::nullopt;
  });
}

}  // namespace

void add_rsa_baselines(const BaselineTask& task, BaselineLibraries& libraries) {
  const bool generates = task.operation == Operation::rsa_generate;
  const bool same_bytes = !generates && (task.rsa_padding == RsaPadding::none ||
                                         task.operation == Operation::rsa_private);
  libraries.push_back({fmt::format("OpenSSL {}", OpenSSL_version(OPENSSL_VERSION_STRING)), "",
                       same_bytes, "libssl-dev", [task, generates] {
                         return generates ? make_generator(task.rsa_bits) : make_operation(task);
                       }});
}

}  // namespace nacre::engine
