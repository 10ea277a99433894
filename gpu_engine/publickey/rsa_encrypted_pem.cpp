// SPDX-License-Identifier: Apache-2.0
#include "gpu_engine/publickey/rsa_encrypted_pem.h"

#include <openssl/pem.h>
#include <openssl/pkcs12.h>
#include <openssl/x509.h>

#include <array>

#include "gpu_engine/kdf/kdf.h"
#include "gpu_engine/publickey/openssl_key.h"

namespace nacre::engine {

namespace {

// 128 * 8 * 2^14 bytes = 16 MiB of memory. By default OpenSSL opens no file that needs more than
// twice as much, so parallelism 4 makes guessing expensive instead.
constexpr std::uint64_t scrypt_cost = 1u << 14;
constexpr std::uint64_t scrypt_block_size = 8;
constexpr std::uint64_t scrypt_parallelism = 4;
constexpr std::size_t scrypt_salt_size_bytes = 16;

}  // namespace

Result<std::string> to_encrypted_pem(const RsaPrivateKey& key, ByteView passphrase) {
  if (passphrase.empty()) {
    return fail(ErrorCode::invalid_argument,
                "a private key cannot be encrypted under an empty passphrase");
  }
  NACRE_ASSIGN(const SecretBytes der, key.to_der());
  const auto failed = [] {
    return fail(ErrorCode::out_of_memory, "encrypting a private key: " + take_openssl_reason());
  };
  std::array<Byte, scrypt_salt_size_bytes> salt;
  random_bytes(salt);
  const Byte* at = der.view().data();
  const OpensslOwner<PKCS8_PRIV_KEY_INFO> info(
      d2i_PKCS8_PRIV_KEY_INFO(nullptr, &at, static_cast<long>(der.size())));
  X509_ALGOR* algorithm =
      PKCS5_pbe2_set_scrypt(EVP_aes_256_cbc(), salt.data(), salt.size(), nullptr, scrypt_cost,
                            scrypt_block_size, scrypt_parallelism);
  if (info == nullptr || algorithm == nullptr) {
    X509_ALGOR_free(algorithm);
    return failed();
  }
  const OpensslOwner<X509_SIG> sealed(
      PKCS8_set0_pbe(reinterpret_cast<const char*>(passphrase.data()),
                     static_cast<int>(passphrase.size()), info.get(), algorithm));
  if (sealed == nullptr) {
    X509_ALGOR_free(algorithm);  // otherwise the sealed structure owns it
    return failed();
  }
  const OpensslOwner<BIO> bio(BIO_new(BIO_s_mem()));
  if (bio == nullptr || PEM_write_bio_PKCS8(bio.get(), sealed.get()) != 1) return failed();
  char* text = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &text);
  return std::string(text, static_cast<std::size_t>(size));
}

}  // namespace nacre::engine
