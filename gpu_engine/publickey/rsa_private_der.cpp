// SPDX-License-Identifier: Apache-2.0
// PrivateKeyInfo (RFC 5958) around RSAPrivateKey (RFC 8017, A.1.2), in DER (X.690):
//
//   SEQUENCE { INTEGER 0,
//              SEQUENCE { OBJECT IDENTIFIER rsaEncryption, NULL },
//              OCTET STRING { SEQUENCE { INTEGER 0, INTEGER n, e, d, p, q, dp, dq, qinv } } }
#include "gpu_engine/publickey/rsa_private_der.h"

#include <algorithm>
#include <array>

namespace nacre::engine {
namespace {

constexpr Byte tag_integer = 0x02;
constexpr Byte tag_octets = 0x04;
constexpr Byte tag_sequence = 0x30;
constexpr std::array<Byte, 3> zero = {tag_integer, 1, 0};
// 1.2.840.113549.1.1.1 and NULL.
constexpr std::array<Byte, 15> algorithm = {tag_sequence, 13,   0x06, 9,    0x2a, 0x86, 0x48, 0x86,
                                            0xf7,         0x0d, 0x01, 0x01, 0x01, 0x05, 0};

constexpr std::size_t length_size(std::size_t content) {
  if (content < 0x80) return 1;
  return content < 0x100 ? 2 : 3;
}

constexpr std::size_t size_with_header(std::size_t content) {
  return 1 + length_size(content) + content;
}

// A number whose highest bit is the highest bit of a byte gets a zero in front.
std::size_t integer_content(const BIGNUM* number) {
  return static_cast<std::size_t>(BN_num_bits(number)) / 8 + 1;
}

// Writes into memory that is long enough.
class Writer {
 public:
  explicit Writer(Byte* at) : at_(at) {}

  void header(Byte tag, std::size_t content) {
    *at_++ = tag;
    const std::size_t length_bytes = length_size(content) - 1;
    if (length_bytes > 0) *at_++ = static_cast<Byte>(0x80 + length_bytes);
    for (std::size_t i = std::max<std::size_t>(length_bytes, 1); i-- > 0;)
      *at_++ = static_cast<Byte>(content >> (8 * i));
  }
  void bytes(std::span<const Byte> bytes) { at_ = std::ranges::copy(bytes, at_).out; }
  void integer(const BIGNUM* number) {
    const std::size_t content = integer_content(number);
    header(tag_integer, content);
    BN_bn2binpad(number, at_, static_cast<int>(content));
    at_ += content;
  }

 private:
  Byte* at_;
};

}  // namespace

SecretBytes encode_rsa_private_key(const RsaPrivateParts& parts) {
  const BIGNUM* const numbers[] = {parts.n, parts.e,          parts.d,          parts.p,
                                   parts.q, parts.p_exponent, parts.q_exponent, parts.q_inverse};
  std::size_t key = zero.size();
  for (const BIGNUM* const number : numbers)
    key += size_with_header(integer_content(number));
  const std::size_t info = zero.size() + algorithm.size() + size_with_header(size_with_header(key));
  SecretBytes der(size_with_header(info));
  Writer writer(der.mutable_view().data());
  writer.header(tag_sequence, info);
  writer.bytes(zero);
  writer.bytes(algorithm);
  writer.header(tag_octets, size_with_header(key));
  writer.header(tag_sequence, key);
  writer.bytes(zero);
  for (const BIGNUM* const number : numbers)
    writer.integer(number);
  return der;
}

}  // namespace nacre::engine
