// SPDX-License-Identifier: Apache-2.0
// Reads PEM in the formats that openssl and ssh-keygen -m write. OpenSSL never asks for a
// passphrase on the terminal by itself. A passphrase that does not open a key is wrong_key. Every
// other fault of the text is invalid_argument, and the message says what to do.
#include <openssl/decoder.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>

#include <algorithm>

#include "gpu_engine/publickey/rsa.h"
#include "gpu_engine/publickey/rsa_state.h"

namespace nacre::engine {
namespace {

constexpr std::size_t pem_size_bytes_max = 64u << 10;

bool has_block(std::string_view pem, std::string_view label) {
  return pem.find("-----BEGIN " + std::string(label) + "-----") != std::string_view::npos;
}

Result<void> check_size(std::string_view pem) {
  if (pem.size() > pem_size_bytes_max)
    return fail(ErrorCode::invalid_argument, "the file is too long to be one PEM key");
  return {};
}

OpensslOwner<BIO> read_from(std::string_view text) {
  return OpensslOwner<BIO>(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// Gives OpenSSL the passphrase that user points to (a ByteView).
int give_passphrase(char* out, int capacity, int /*writing*/, void* user) {
  const ByteView passphrase = *static_cast<const ByteView*>(user);
  if (passphrase.empty() || passphrase.size() > static_cast<std::size_t>(capacity)) return -1;
  std::copy(passphrase.begin(), passphrase.end(), out);
  return static_cast<int>(passphrase.size());
}

// Whether the error queue blames an algorithm that this OpenSSL does not have. Empties the queue.
// Only the ciphers' own errors count: the decoders call any garbage "unsupported", and a wrong
// passphrase leaves garbage behind well-formed padding.
bool take_blame_of_algorithm() {
  bool blamed = false;
  while (const unsigned long code = ERR_get_error()) {
    const int reason = ERR_GET_REASON(code);
    if (ERR_GET_LIB(code) == ERR_LIB_EVP)
      blamed = blamed || reason == ERR_R_UNSUPPORTED || reason == EVP_R_UNKNOWN_PBE_ALGORITHM ||
               reason == EVP_R_UNSUPPORTED_ALGORITHM;
    if (ERR_GET_LIB(code) == ERR_LIB_PEM) blamed = blamed || reason == PEM_R_UNSUPPORTED_ENCRYPTION;
  }
  return blamed;
}

tl::unexpected<Error> fail_to_open() {
  if (take_blame_of_algorithm())
    return fail(ErrorCode::unsupported,
                "the private key is encrypted with an algorithm that OpenSSL does not have here; "
                "convert it with: openssl pkcs8 -topk8 -v2 aes256");
  return fail(ErrorCode::wrong_key, "the passphrase does not open the private key");
}

Result<RsaPrivateKey> open_pkcs8(std::string_view pem, ByteView passphrase) {
  const OpensslOwner<BIO> bio = read_from(pem);
  const OpensslOwner<X509_SIG> sealed(
      PEM_read_bio_PKCS8(bio.get(), nullptr, give_passphrase, &passphrase));
  if (sealed == nullptr)
    return fail(ErrorCode::invalid_argument,
                "the encrypted private key is malformed: " + take_openssl_reason());
  const OpensslOwner<PKCS8_PRIV_KEY_INFO> info(
      PKCS8_decrypt(sealed.get(), reinterpret_cast<const char*>(passphrase.data()),
                    static_cast<int>(passphrase.size())));
  OpensslOwner<EVP_PKEY> key(info == nullptr ? nullptr : EVP_PKCS82PKEY(info.get()));
  if (key == nullptr) return fail_to_open();
  return make_private_key(std::move(key));
}

}  // namespace

Result<RsaPublicKey> RsaPublicKey::from_pem(std::string_view pem) {
  NACRE_TRY(check_size(pem));
  if (pem.find("PRIVATE KEY-----") != std::string_view::npos)
    return fail(ErrorCode::invalid_argument,
                "this is a private key; give its public half, made with: openssl pkey -pubout");
  if (has_block(pem, "CERTIFICATE"))
    return fail(ErrorCode::invalid_argument,
                "this is a certificate; give its public key, made with: openssl x509 -pubkey "
                "-noout");
  EVP_PKEY* decoded = nullptr;
  OSSL_DECODER_CTX* context = OSSL_DECODER_CTX_new_for_pkey(&decoded, "PEM", nullptr, nullptr,
                                                            EVP_PKEY_PUBLIC_KEY, nullptr, nullptr);
  const Byte* at = as_bytes(pem).data();
  std::size_t left = pem.size();
  const bool succeeded = context != nullptr && OSSL_DECODER_from_data(context, &at, &left) == 1;
  OSSL_DECODER_CTX_free(context);
  OpensslOwner<EVP_PKEY> key(decoded);
  if (!succeeded || key == nullptr) {
    ERR_clear_error();
    return fail(ErrorCode::invalid_argument,
                "no public key in PEM form (\"BEGIN PUBLIC KEY\" or \"BEGIN RSA PUBLIC KEY\")");
  }
  return make_public_key(std::move(key));
}

Result<RsaPrivateKey> RsaPrivateKey::from_pem(std::string_view pem, ByteView passphrase) {
  NACRE_TRY(check_size(pem));
  const bool sealed_pkcs8 = has_block(pem, "ENCRYPTED PRIVATE KEY");
  const bool sealed_pkcs1 =
      has_block(pem, "RSA PRIVATE KEY") && pem.find("Proc-Type: 4,ENCRYPTED") != pem.npos;
  if ((sealed_pkcs8 || sealed_pkcs1) && passphrase.empty())
    return fail(ErrorCode::invalid_argument,
                "the private key is encrypted and needs its passphrase");
  if (sealed_pkcs8) return open_pkcs8(pem, passphrase);
  if (!sealed_pkcs1 && !has_block(pem, "PRIVATE KEY") && !has_block(pem, "RSA PRIVATE KEY"))
    return fail(ErrorCode::invalid_argument,
                "no private key in PEM form (\"BEGIN PRIVATE KEY\", \"BEGIN ENCRYPTED PRIVATE "
                "KEY\" or \"BEGIN RSA PRIVATE KEY\")");

  const OpensslOwner<BIO> bio = read_from(pem);
  OpensslOwner<EVP_PKEY> key(
      PEM_read_bio_PrivateKey(bio.get(), nullptr, give_passphrase, &passphrase));
  if (key != nullptr) return make_private_key(std::move(key));
  if (sealed_pkcs1) return fail_to_open();
  return fail(ErrorCode::invalid_argument,
              "the private key is malformed: " + take_openssl_reason());
}

}  // namespace nacre::engine
