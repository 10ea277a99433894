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

inline constexpr int rsa_bits_min = 2048;  // of whatever guards something
// Of keys that messages name or make: old formats and published figures have shorter ones. No
// recipient's key is one of these.
inline constexpr int rsa_message_bits_min = 1024;
inline constexpr int rsa_bits_max = 8192;
inline constexpr int rsa_bits_default = 3072;

// The most bytes that a private key of so many bits takes as DER PKCS#8: eight numbers, of which
// five are of half the length, and their frame.
constexpr std::size_t rsa_private_key_size_bound(int bits) {
  return static_cast<std::size_t>(bits) * 9 / 16 + 128;
}

// Immutable and thread-safe.
class RsaPublicKey {
 public:
  // PEM: SubjectPublicKeyInfo or PKCS#1. invalid_argument says why; bits outside the bounds too.
  static Result<RsaPublicKey> from_pem(std::string_view pem);
  // DER SubjectPublicKeyInfo.
  static Result<RsaPublicKey> from_der(ByteView der, int bits_min = rsa_bits_min);
  Bytes to_der() const;  // SubjectPublicKeyInfo
  std::string to_pem() const;
  int bits() const;
  std::size_t modulus_size_bytes() const;
  Sha256Digest fingerprint() const;                                   // SHA-256 of to_der()
  Result<Bytes> wrap(ByteView secret, std::string_view label) const;  // OAEP-SHA256, MGF1-SHA256
  // number^e mod n, both big-endian, as long as the modulus (RFC 8017, 5.1.1). invalid_argument for
  // another length or a number that is not below n. No padding: never for secrets as they are.
  Result<Bytes> apply(ByteView number) const;

  struct State;
  explicit RsaPublicKey(std::shared_ptr<const State> state) : state_(std::move(state)) {}

 private:
  std::shared_ptr<const State> state_;
};

// Gives the PIN or passphrase of a key elsewhere; called when it is wanted, at most once.
using AskPin = std::function<Result<SecretBytes>()>;
// "SCHEME:…": a name for RsaPrivateKey::from_uri() rather than that of a file.
bool is_key_uri(std::string_view name);

class RsaPrivateKey {
 public:
  static Result<RsaPrivateKey> generate(int bits, int bits_min = rsa_bits_min);
  // PEM: PKCS#8 (plain or encrypted) or PKCS#1. wrong_key when the passphrase does not open it;
  // invalid_argument when it needs one and passphrase is empty.
  static Result<RsaPrivateKey> from_pem(std::string_view pem, ByteView passphrase = {});
  // PKCS#8.
  static Result<RsaPrivateKey> from_der(ByteView der, int bits_min = rsa_bits_min);
  // A key in a token or store: "engine:ID:KEY" in an OpenSSL engine, any other URI in OpenSSL's
  // store (providers; "file:"). It may never leave its place: then to_der() and to_pem() fail.
  // not_found; wrong_key for a wrong PIN; the errors of ask_pin.
  static Result<RsaPrivateKey> from_uri(const std::string& uri, const AskPin& ask_pin);
  Result<SecretBytes> to_der() const;
  Result<std::string> to_pem() const;  // PKCS#8, unencrypted
  RsaPublicKey public_key() const;
  // wrong_key when this key does not open it. Constant time in the padding check.
  Result<SecretBytes> unwrap(ByteView wrapped, std::string_view label) const;
  // number^d mod n, as RsaPublicKey::apply(), whose reverse it is. Blinded.
  Result<SecretBytes> apply(ByteView number) const;

  struct State;
  explicit RsaPrivateKey(std::shared_ptr<const State> state) : state_(std::move(state)) {}

 private:
  std::shared_ptr<const State> state_;
};

}  // namespace nacre::engine
