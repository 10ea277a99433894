// SPDX-License-Identifier: Apache-2.0
// RSA keys: generation, PEM, OAEP-SHA256 (RFC 8017) for recipients of a volume key, and the bare
// operations. OpenSSL, with its blinding and constant-time exponentiation for private keys.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "gpu_engine/base/bytes.h"
#include "gpu_engine/base/result.h"
#include "gpu_engine/kdf/kdf.h"

namespace nacre::engine {

inline constexpr int rsa_bits_min = 2048;  // the least for keys that protect something
// The least for the keys of a payload's messages, since old formats and published figures use
// shorter keys than rsa_bits_min. A recipient's key is never shorter than rsa_bits_min.
inline constexpr int rsa_message_bits_min = 1024;
inline constexpr int rsa_bits_max = 8192;
inline constexpr int rsa_bits_default = 3072;

// The most bytes of a private key of that many bits as DER PKCS#8: two numbers of the whole length,
// five of half the length, the exponent, and their frame.
constexpr std::size_t rsa_private_key_size_bound(int bits) {
  return static_cast<std::size_t>(bits) * 9 / 16 + 128;
}

// Thread-safe. Copies share one key object. Functions without a Result throw std::bad_alloc when
// memory is exhausted.
class RsaPublicKey {
 public:
  // PEM: SubjectPublicKeyInfo or PKCS#1. invalid_argument, with the reason, also when the key has
  // fewer than rsa_bits_min or more than rsa_bits_max bits.
  static Result<RsaPublicKey> from_pem(std::string_view pem);
  // DER SubjectPublicKeyInfo.
  static Result<RsaPublicKey> from_der(ByteView der, int bits_min = rsa_bits_min);
  Bytes to_der() const;  // SubjectPublicKeyInfo
  std::string to_pem() const;
  int bits() const;
  std::size_t modulus_size_bytes() const;
  Sha256Digest fingerprint() const;                                   // SHA-256 of to_der()
  Result<Bytes> wrap(ByteView secret, std::string_view label) const;  // OAEP-SHA256, MGF1-SHA256
  // number^e mod n (RFC 8017, 5.1.1). number and result are big-endian and as long as the modulus.
  // invalid_argument for another length or a number that is not below n. There is no padding, so
  // number must not be a bare secret.
  Result<Bytes> apply(ByteView number) const;

  struct State;
  explicit RsaPublicKey(std::shared_ptr<const State> state) : state_(std::move(state)) {}

 private:
  std::shared_ptr<const State> state_;
};

// Returns the PIN or passphrase of a key in a token or store. Called at most once, when it is
// needed.
using AskPin = std::function<Result<SecretBytes>()>;
// Whether name has the form "SCHEME:…" that RsaPrivateKey::from_uri() expects. SCHEME: two or more
// of a-z, 0-9, "+", "-" and ".". Any other name is a file's.
bool is_key_uri(std::string_view name);

// Thread-safe. Copies share one key object, which is wiped when the last copy is freed.
class RsaPrivateKey {
 public:
  static Result<RsaPrivateKey> generate(int bits, int bits_min = rsa_bits_min);
  // PEM: PKCS#8 (plain or encrypted) or PKCS#1. wrong_key when the passphrase does not open the
  // key; invalid_argument when the key is encrypted and passphrase is empty, and for other faults.
  static Result<RsaPrivateKey> from_pem(std::string_view pem, ByteView passphrase = {});
  // PKCS#8.
  static Result<RsaPrivateKey> from_der(ByteView der, int bits_min = rsa_bits_min);
  // A key in a token or store: "engine:ID:KEY" in an OpenSSL engine, any other URI in OpenSSL's
  // store (providers; "file:"). If the key cannot leave its place, to_der() and to_pem() fail.
  // not_found when there is no such store, engine or key; unsupported when OpenSSL has no engines;
  // wrong_key when a PIN was asked for and no key came; invalid_argument when the key is not an
  // acceptable RSA key; the errors of ask_pin.
  static Result<RsaPrivateKey> from_uri(const std::string& uri, const AskPin& ask_pin);
  Result<SecretBytes> to_der() const;
  Result<std::string> to_pem() const;  // PKCS#8, unencrypted; the caller wipes it
  RsaPublicKey public_key() const;
  // The secret that RsaPublicKey::wrap() wrapped. wrong_key when key or label do not match. The
  // padding is checked in constant time.
  Result<SecretBytes> unwrap(ByteView wrapped, std::string_view label) const;
  // number^d mod n: the reverse of RsaPublicKey::apply(), with the same conditions. Blinded.
  Result<SecretBytes> apply(ByteView number) const;

  struct State;
  explicit RsaPrivateKey(std::shared_ptr<const State> state) : state_(std::move(state)) {}

 private:
  std::shared_ptr<const State> state_;
};

}  // namespace nacre::engine
