// SPDX-License-Identifier: Apache-2.0
// The numbers of an RSA key, as limbs for arithmetic outside OpenSSL (on a device); and keys made
// of primes that were found outside OpenSSL.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "gpu_engine/cipher/key_use.h"

namespace nacre::engine {

enum class RsaNumber : std::uint8_t { modulus, p, q, p_exponent, q_exponent, q_inverse };

// Thread-safe. Wiped when freed.
class RsaNumbers {
 public:
  // kind: rsa_public or rsa_private; der: as for Payload::add_rsa_public_key() or
  // add_rsa_private_key(). invalid_argument for bytes that are no such key. unsupported for a key
  // that does not have two primes, whose numbers contradict each other, or whose public exponent is
  // even, below 3, or longer than 64 bits.
  static Result<RsaNumbers> from_der(KeyKind kind, ByteView der);
  // from_der() for a public key, from a cache of the last 64 keys. Reading a key takes as long as
  // many operations with it, and all batches of a payload need the key at the same time.
  static Result<std::shared_ptr<const RsaNumbers>> of_public_key(ByteView der);
  RsaNumbers(RsaNumbers&&) noexcept;
  ~RsaNumbers();

  std::size_t modulus_size_bytes() const;
  int modulus_bits() const;
  int prime_bits() const;  // of the longer prime; 0 for a public key
  std::uint64_t public_exponent() const;
  // Fills limbs with the number, least significant limb first, then zeros. Errors: invalid_argument
  // when the number does not fit; out_of_memory.
  Result<> write(RsaNumber number, std::span<std::uint32_t> limbs) const;
  // Fills limbs with R^2 modulo modulus, where R = 2^(32 * limbs.size()), for Montgomery
  // multiplication. The errors of write().
  Result<> write_r_squared(RsaNumber modulus, std::span<std::uint32_t> limbs) const;
  // Whether raised is number to the public exponent modulo the modulus, by OpenSSL's arithmetic.
  // Both are big-endian. Errors: out_of_memory.
  Result<bool> confirms_public(ByteView number, ByteView raised) const;

 private:
  struct State;
  explicit RsaNumbers(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// The key of two primes and the exponent 65537, as DER PKCS#8. The primes are little-endian limbs,
// of bits / 2 bits each. The caller has tested them with enough rounds of Miller-Rabin.
//
// invalid_argument for primes that do not make such a key: they are equal or nearer to each other
// than 2^(bits / 2 - 100) (FIPS 186-5, A.1.3), one is a multiple of 65537 plus one, or the private
// exponent is not above 2^(bits / 2). invalid_argument also when OpenSSL's arithmetic shows that
// something was computed wrongly: a round of Miller-Rabin with a random base fails for one of the
// primes, the exponents are not each other's inverse, or the private operation does not bring back
// the random number that the public one was applied to.
Result<SecretBytes> make_rsa_key(int bits, std::span<const std::uint32_t> p,
                                 std::span<const std::uint32_t> q);

}  // namespace nacre::engine
