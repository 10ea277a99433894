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
// The least for keys that messages name or make: old formats and published figures have shorter
// keys. No recipient's key is this short.
inline constexpr int rsa_message_bits_min = 1024;
inline constexpr int rsa_bits_max = 8192;
inline constexpr int rsa_bits_default = 3072;

// The most bytes that a private key of that many bits takes as DER PKCS#8: eight numbers, of which
// five are of half the length, and their frame.
constexpr std::size_t rsa_private_key_size_bound(int bits) {
  return static_cast<std::size_t>(bits) * 9 / 16 + 128;
}

// Immutable and thread-safe.
class RsaPublicKey {
 public:
  // PEM: SubjectPublicKeyInfo or PKCS#1. invalid_argument, with the reason, also when the bits are
  // outside the bounds.
  static Result<RsaPublicKey> from_pem(std::string_view pem);
  // DER SubjectPublicKeyInfo.
  static Result<RsaPublicKey> from_der(ByteView der, int bits_min = rsa_bits_min);
  Bytes to_der() const;  // SubjectPublicKeyInfo
  std::string to_pem() const;
  int bits() const;
  std::size_t modulus_size_bytes() const;
  Sha256Digest fingerprint() const;                                   // SHA-256 of to_der()
  Result<Bytes> wrap(ByteView secret, std::string_view label) const;  // OAEP-SHA256, MGF1-SHA256
  // number^e mod n, both big-endian and as long as the modulus (RFC 8017, 5.1.1). invalid_argument
  // for another length or a number that is not below n. There is no padding, so never apply it to
  // secrets as they are.
  Result<Bytes> apply(ByteView number) const;

  struct State;
  explicit RsaPublicKey(std::shared_ptr<const State> state) : state_(std::move(state)) {}

 private:
  std::shared_ptr<const State> state_;
};

// Gives the PIN or passphrase of a key that is elsewhere. Called when it is needed, at most once.
using AskPin = std::function<Result<SecretBytes>()>;
// Whether it has the form "SCHEME:…", which RsaPrivateKey::from_uri() takes; otherwise it is the
// name of a file.
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
  // store (providers; "file:"). The key may be unable to leave its place: then to_der() and
  // to_pem() fail. not_found; wrong_key for a wrong PIN; the errors of ask_pin.
  static Result<RsaPrivateKey> from_uri(const std::string& uri, const AskPin& ask_pin);
  Result<SecretBytes> to_der() const;
  Result<std::string> to_pem() const;  // PKCS#8, unencrypted
  RsaPublicKey public_key() const;
  // wrong_key when this key does not open it. The padding check takes constant time.
  Result<SecretBytes> unwrap(ByteView wrapped, std::string_view label) const;
  // number^d mod n: the reverse of RsaPublicKey::apply(), with the same arguments. Blinded.
  Result<SecretBytes> apply(ByteView number) const;

  struct State;
  explicit RsaPrivateKey(std::shared_ptr<const State> state) : state_(std::move(state)) {}

 private:
  std::shared_ptr<const State> state_;
};

}  // namespace nacre::engine
