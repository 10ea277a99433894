// SPDX-License-Identifier: Apache-2.0
// RSA as in the project report of Guan and Li: square and multiply over Montgomery products in
// plain loops, with the private exponent as it is (no Chinese remainders, no window), and keys by
// trial division with the primes below 1,000 and 32 rounds of Miller and Rabin. It is neither
// constant in time nor blinded. Use it for measurements only, with keys made for them.
#pragma once

#include <cstdint>
#include <vector>

#include "gpu_engine/base/bytes.h"
#include "gpu_engine/base/result.h"

namespace nacre::engine::seeds {

// Numbers are big-endian, as long as the modulus.
struct RsaNumbers {
  Bytes modulus;
  Bytes public_exponent;
  Bytes private_exponent;
  Bytes public_der;   // SubjectPublicKeyInfo
  Bytes private_der;  // PKCS#8
};

// A key of that many bits (a multiple of 128, at least 512) by OpenSSL. Errors: out_of_memory.
Result<RsaNumbers> make_rsa_numbers(int bits);
// A key made in the report's way: candidates, division and modular powers by OpenSSL's plain big
// numbers, the search and the tests as the report says. The same errors.
Result<RsaNumbers> search_rsa_numbers(int bits);

// number^exponent mod modulus in plain loops. Immutable, so thread-safe. The modulus is odd, and
// its length is a multiple of 8 bytes.
class PlainPower {
 public:
  PlainPower(ByteView modulus, ByteView exponent);
  // in is below the modulus; in and out are as long as the modulus.
  void apply(ByteView in, MutableByteView out) const;

 private:
  using Number = std::vector<std::uint64_t>;                               // little-endian digits
  void multiply(const Number& a, const Number& b, Number& product) const;  // a b / R mod n

  Number modulus_;
  Number square_;              // R^2 mod n
  std::uint64_t inverse_ = 0;  // -1 / n mod 2^64
  Bytes exponent_;             // big-endian
};

}  // namespace nacre::engine::seeds
