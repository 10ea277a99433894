// SPDX-License-Identifier: Apache-2.0
// RSA by OpenSSL: generation, OAEP, DER and PEM out. Reading PEM is in rsa_pem.cpp.
#include "gpu_engine/publickey/rsa.h"

#include <fmt/format.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/params.h>
#include <openssl/pem.h>

#include <algorithm>
#include <array>
#include <new>
#include <optional>

#include "gpu_engine/base/mutex.h"
#include "gpu_engine/kdf/kdf.h"
#include "gpu_engine/publickey/rsa_state.h"

namespace nacre::engine {
namespace {

// OAEP with SHA-256 for both hash and mask (RFC 8017, 7.1). Points to the label, which must outlive
// this.
class OaepParameters {
 public:
  explicit OaepParameters(std::string_view label)
      : parameters_{
            OSSL_PARAM_construct_utf8_string(OSSL_ASYM_CIPHER_PARAM_PAD_MODE, mode_, 0),
            OSSL_PARAM_construct_utf8_string(OSSL_ASYM_CIPHER_PARAM_OAEP_DIGEST, digest_, 0),
            OSSL_PARAM_construct_utf8_string(OSSL_ASYM_CIPHER_PARAM_MGF1_DIGEST, digest_, 0),
            label.empty()
                ? OSSL_PARAM_construct_end()
                : OSSL_PARAM_construct_octet_string(OSSL_ASYM_CIPHER_PARAM_OAEP_LABEL,
                                                    const_cast<char*>(label.data()), label.size()),
            OSSL_PARAM_construct_end()} {}
  const OSSL_PARAM* get() const { return parameters_; }

 private:
  char mode_[5] = "oaep";
  char digest_[7] = "SHA256";
  OSSL_PARAM parameters_[5];
};

// The bare operation, without padding.
class RawParameters {
 public:
  RawParameters()
      : parameters_{OSSL_PARAM_construct_utf8_string(OSSL_ASYM_CIPHER_PARAM_PAD_MODE, mode_, 0),
                    OSSL_PARAM_construct_end()} {}
  const OSSL_PARAM* get() const { return parameters_; }

 private:
  char mode_[5] = "none";
  OSSL_PARAM parameters_[2];
};

tl::unexpected<Error> refuse_number(std::size_t modulus_size, std::size_t size) {
  ERR_clear_error();
  return fail(ErrorCode::invalid_argument,
              fmt::format("RSA takes a number below the modulus, in {} bytes; this one has {}",
                          modulus_size, size));
}

OpensslOwner<EVP_PKEY_CTX> make_context(EVP_PKEY* key) {
  return OpensslOwner<EVP_PKEY_CTX>(EVP_PKEY_CTX_new_from_pkey(nullptr, key, nullptr));
}

// Encoding a checked key fails only when memory is exhausted.
void require(bool succeeded) {
  if (!succeeded) throw std::bad_alloc();
}

// The digests of the public halves of keys that passed the check. OpenSSL's check tests whether the
// modulus is composite, which takes milliseconds, and every batch of a device reads its keys again.
// Thread-safe.
class SoundKeys {
 public:
  bool has(const Sha256Digest& digest) {
    const LockGuard lock(mutex_);
    return std::find(digests_.begin(), digests_.begin() + count_, digest) !=
           digests_.begin() + count_;
  }
  // Replaces the oldest digest when there are many.
  void add(const Sha256Digest& digest) {
    const LockGuard lock(mutex_);
    digests_[next_] = digest;
    next_ = (next_ + 1) % count_max;
    count_ = std::min(count_ + 1, count_max);
  }

 private:
  static constexpr std::ptrdiff_t count_max = 256;

  Mutex mutex_;
  std::array<Sha256Digest, count_max> digests_ NACRE_GUARDED_BY(mutex_);
  std::ptrdiff_t count_ NACRE_GUARDED_BY(mutex_) = 0;
  std::ptrdiff_t next_ NACRE_GUARDED_BY(mutex_) = 0;
};

// Nothing when the key cannot be encoded.
std::optional<Sha256Digest> digest_of_public_half(const EVP_PKEY* key) {
  unsigned char* der = nullptr;
  const int size = i2d_PUBKEY(key, &der);
  std::optional<Sha256Digest> digest;
  if (size > 0) digest = sha256({der, static_cast<std::size_t>(size)});
  OPENSSL_free(der);
  ERR_clear_error();
  return digest;
}

std::string text_of(BIO* bio) {
  const char* text = nullptr;
  const long size = BIO_get_mem_data(bio, &text);
  return std::string(text, static_cast<std::size_t>(size));
}

}  // namespace

Bytes encode_public_key(const EVP_PKEY* key) {
  const int size = i2d_PUBKEY(key, nullptr);
  require(size > 0);
  Bytes der(static_cast<std::size_t>(size));
  Byte* end = der.data();
  require(i2d_PUBKEY(key, &end) == size);
  return der;
}

std::string take_openssl_reason() {
  const unsigned long code = ERR_peek_last_error();
  const char* reason = code == 0 ? nullptr : ERR_reason_error_string(code);
  std::string text = reason == nullptr ? "no reason given" : reason;
  ERR_clear_error();
  return text;
}

Result<void> check_rsa_key(EVP_PKEY* key, int bits_min) {
  if (EVP_PKEY_is_a(key, "RSA") != 1)
    return fail(ErrorCode::invalid_argument,
                "the key is not a plain RSA key; make one with: openssl genpkey -algorithm RSA "
                "-pkeyopt rsa_keygen_bits:3072");
  const int bits = EVP_PKEY_get_bits(key);
  if (bits < bits_min || bits > rsa_bits_max)
    return fail(ErrorCode::invalid_argument,
                fmt::format("the RSA key has {} bits, not {} to {}", bits, bits_min, rsa_bits_max));
  static SoundKeys sound_keys;
  const auto digest = digest_of_public_half(key);
  if (digest && sound_keys.has(*digest)) return {};
  const OpensslOwner<EVP_PKEY_CTX> context = make_context(key);
  if (context == nullptr || EVP_PKEY_public_check_quick(context.get()) != 1)
    return fail(ErrorCode::invalid_argument, "the RSA key is not sound: " + take_openssl_reason());
  if (digest) sound_keys.add(*digest);
  return {};
}

OpensslOwner<EVP_PKEY> parse_public_key(ByteView der) {
  const Byte* end = der.data();
  OpensslOwner<EVP_PKEY> key(d2i_PUBKEY(nullptr, &end, static_cast<long>(der.size())));
  if (key != nullptr && end != der.data() + der.size()) key.reset();
  if (key == nullptr) ERR_clear_error();
  return key;
}

OpensslOwner<EVP_PKEY> parse_private_key(ByteView der) {
  const Byte* end = der.data();
  const OpensslOwner<PKCS8_PRIV_KEY_INFO> info(
      d2i_PKCS8_PRIV_KEY_INFO(nullptr, &end, static_cast<long>(der.size())));
  OpensslOwner<EVP_PKEY> key;
  if (info != nullptr && end == der.data() + der.size()) key.reset(EVP_PKCS82PKEY(info.get()));
  if (key == nullptr) ERR_clear_error();
  return key;
}

Result<RsaPublicKey> make_public_key(OpensslOwner<EVP_PKEY> key, int bits_min) {
  NACRE_TRY(check_rsa_key(key.get(), bits_min));
  return RsaPublicKey(
      std::make_shared<const RsaPublicKey::State>(RsaPublicKey::State{std::move(key)}));
}

Result<RsaPrivateKey> make_private_key(OpensslOwner<EVP_PKEY> key, int bits_min) {
  // The public half gets a key object of its own, so that handing it out never exposes the private
  // half.
  NACRE_ASSIGN(RsaPublicKey public_key,
               RsaPublicKey::from_der(encode_public_key(key.get()), bits_min));
  return RsaPrivateKey(std::make_shared<const RsaPrivateKey::State>(
      RsaPrivateKey::State{std::move(key), std::move(public_key)}));
}

Result<RsaPublicKey> RsaPublicKey::from_der(ByteView der, int bits_min) {
  OpensslOwner<EVP_PKEY> key = parse_public_key(der);
  if (key == nullptr) return fail(ErrorCode::invalid_argument, "not a DER SubjectPublicKeyInfo");
  return make_public_key(std::move(key), bits_min);
}

Bytes RsaPublicKey::to_der() const {
  return encode_public_key(state_->key.get());
}

std::string RsaPublicKey::to_pem() const {
  const OpensslOwner<BIO> bio(BIO_new(BIO_s_mem()));
  require(bio != nullptr && PEM_write_bio_PUBKEY(bio.get(), state_->key.get()) == 1);
  return text_of(bio.get());
}

int RsaPublicKey::bits() const {
  return EVP_PKEY_get_bits(state_->key.get());
}

std::size_t RsaPublicKey::modulus_size_bytes() const {
  return static_cast<std::size_t>(EVP_PKEY_get_size(state_->key.get()));
}

Sha256Digest RsaPublicKey::fingerprint() const {
  return sha256(to_der());
}

Result<Bytes> RsaPublicKey::wrap(ByteView secret, std::string_view label) const {
  const auto modulus_size = static_cast<std::size_t>(EVP_PKEY_get_size(state_->key.get()));
  const std::size_t secret_size_max = modulus_size - 2 * sha256_size_bytes - 2;
  if (secret.size() > secret_size_max)
    return fail(ErrorCode::invalid_argument,
                fmt::format("a {}-bit RSA key wraps at most {} bytes, not {}", bits(),
                            secret_size_max, secret.size()));
  const OaepParameters parameters(label);
  const OpensslOwner<EVP_PKEY_CTX> context = make_context(state_->key.get());
  Bytes wrapped(modulus_size);
  std::size_t size = wrapped.size();
  static constexpr Byte nothing = 0;
  if (context == nullptr || EVP_PKEY_encrypt_init_ex(context.get(), parameters.get()) != 1 ||
      EVP_PKEY_encrypt(context.get(), wrapped.data(), &size,
                       secret.empty() ? &nothing : secret.data(), secret.size()) != 1)
    return fail(ErrorCode::out_of_memory, "RSA-OAEP encryption: " + take_openssl_reason());
  wrapped.resize(size);
  return wrapped;
}

Result<Bytes> RsaPublicKey::apply(ByteView number) const {
  const RawParameters parameters;
  const OpensslOwner<EVP_PKEY_CTX> context = make_context(state_->key.get());
  if (context == nullptr || EVP_PKEY_encrypt_init_ex(context.get(), parameters.get()) != 1)
    return fail(ErrorCode::out_of_memory, "RSA public operation: " + take_openssl_reason());
  Bytes out(modulus_size_bytes());
  std::size_t size = out.size();
  if (number.size() != out.size() ||
      EVP_PKEY_encrypt(context.get(), out.data(), &size, number.data(), number.size()) != 1)
    return refuse_number(out.size(), number.size());
  return out;
}

Result<RsaPrivateKey> RsaPrivateKey::generate(int bits, int bits_min) {
  if (bits < bits_min || bits > rsa_bits_max)
    return fail(ErrorCode::invalid_argument,
                fmt::format("an RSA key has {} to {} bits, not {}", bits_min, rsa_bits_max, bits));
  OpensslOwner<EVP_PKEY> key(
      EVP_PKEY_Q_keygen(nullptr, nullptr, "RSA", static_cast<std::size_t>(bits)));
  if (key == nullptr)
    return fail(ErrorCode::out_of_memory, "RSA key generation: " + take_openssl_reason());
  return make_private_key(std::move(key), bits_min);
}

Result<RsaPrivateKey> RsaPrivateKey::from_der(ByteView der, int bits_min) {
  OpensslOwner<EVP_PKEY> key = parse_private_key(der);
  if (key == nullptr) return fail(ErrorCode::invalid_argument, "not a DER PKCS#8 private key");
  return make_private_key(std::move(key), bits_min);
}

Result<SecretBytes> RsaPrivateKey::to_der() const {
  const OpensslOwner<PKCS8_PRIV_KEY_INFO> info(EVP_PKEY2PKCS8(state_->key.get()));
  const int size = info == nullptr ? 0 : i2d_PKCS8_PRIV_KEY_INFO(info.get(), nullptr);
  if (size <= 0)
    return fail(ErrorCode::out_of_memory, "encoding a private key: " + take_openssl_reason());
  SecretBytes der(static_cast<std::size_t>(size));
  Byte* end = der.mutable_view().data();
  i2d_PKCS8_PRIV_KEY_INFO(info.get(), &end);
  return der;
}

Result<std::string> RsaPrivateKey::to_pem() const {
  // A secmem BIO wipes its buffer when it is freed.
  const OpensslOwner<BIO> bio(BIO_new(BIO_s_secmem()));
  if (bio == nullptr || PEM_write_bio_PKCS8PrivateKey(bio.get(), state_->key.get(), nullptr,
                                                      nullptr, 0, nullptr, nullptr) != 1)
    return fail(ErrorCode::out_of_memory, "encoding a private key: " + take_openssl_reason());
  return text_of(bio.get());
}

RsaPublicKey RsaPrivateKey::public_key() const {
  return state_->public_key;
}

Result<SecretBytes> RsaPrivateKey::unwrap(ByteView wrapped, std::string_view label) const {
  const auto modulus_size = state_->public_key.modulus_size_bytes();
  if (state_->is_elsewhere && wrapped.size() == modulus_size)
    return unwrap_elsewhere(state_->key.get(), wrapped, label);
  const OaepParameters parameters(label);
  const OpensslOwner<EVP_PKEY_CTX> context = make_context(state_->key.get());
  if (context == nullptr || EVP_PKEY_decrypt_init_ex(context.get(), parameters.get()) != 1)
    return fail(ErrorCode::out_of_memory, "RSA-OAEP decryption: " + take_openssl_reason());
  SecretBytes buffer(modulus_size);
  std::size_t size = buffer.size();
  if (wrapped.size() != modulus_size ||
      EVP_PKEY_decrypt(context.get(), buffer.mutable_view().data(), &size, wrapped.data(),
                       wrapped.size()) != 1) {
    ERR_clear_error();
    return fail(ErrorCode::wrong_key, "this RSA key does not open it");
  }
  return SecretBytes(buffer.view().first(size));
}

Result<SecretBytes> RsaPrivateKey::apply(ByteView number) const {
  const RawParameters parameters;
  const OpensslOwner<EVP_PKEY_CTX> context = make_context(state_->key.get());
  if (context == nullptr || EVP_PKEY_decrypt_init_ex(context.get(), parameters.get()) != 1)
    return fail(ErrorCode::out_of_memory, "RSA private operation: " + take_openssl_reason());
  SecretBytes out(state_->public_key.modulus_size_bytes());
  std::size_t size = out.size();
  if (number.size() != out.size() || EVP_PKEY_decrypt(context.get(), out.mutable_view().data(),
                                                      &size, number.data(), number.size()) != 1)
    return refuse_number(out.size(), number.size());
  return out;
}

}  // namespace nacre::engine
