// SPDX-License-Identifier: Apache-2.0
// The numbers of RSA keys that devices get, and their results: padding, and keys made of primes.
#include "gpu_engine/publickey/rsa_numbers.h"

#include <gtest/gtest.h>
#include <openssl/bn.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <vector>

#include "gpu_engine/publickey/rsa_state.h"
#include "tests/gpu_engine/test_data.h"
#include "tests/support/error_of.h"

namespace nacre::engine {
namespace {

using Limbs = std::vector<std::uint32_t>;

RsaPrivateKey numbers_test_key() {
  return RsaPrivateKey::from_pem(read_vector("rsa/test_key_pkcs8.pem")).value();
}

RsaNumbers test_numbers() {
  return RsaNumbers::from_der(KeyKind::rsa_private, numbers_test_key().to_der().value().view())
      .value();
}

Limbs limbs_of(const RsaNumbers& numbers, RsaNumber which, std::size_t count) {
  Limbs limbs(count);
  EXPECT_TRUE(numbers.write(which, limbs).has_value());
  return limbs;
}

TEST(RsaNumbers, are_those_of_the_key) {
  const RsaNumbers numbers = test_numbers();
  EXPECT_EQ(numbers.modulus_bits(), 2048);
  EXPECT_EQ(numbers.modulus_size_bytes(), 256u);
  EXPECT_EQ(numbers.prime_bits(), 1024);
  EXPECT_EQ(numbers.public_exponent(), 65537u);
  // The product of the lowest limbs, and zeros above.
  const Limbs p = limbs_of(numbers, RsaNumber::p, 40);
  const Limbs q = limbs_of(numbers, RsaNumber::q, 32);
  EXPECT_EQ(limbs_of(numbers, RsaNumber::modulus, 64)[0], p[0] * q[0]);
  EXPECT_TRUE(std::all_of(p.begin() + 32, p.end(), [](std::uint32_t limb) { return limb == 0; }));
  Limbs few(31);
  EXPECT_EQ(error_of(numbers.write(RsaNumber::p, few)), ErrorCode::invalid_argument);
}

TEST(RsaNumbers, of_public_keys_are_the_modulus_alone) {
  const auto numbers =
      RsaNumbers::from_der(KeyKind::rsa_public, numbers_test_key().public_key().to_der()).value();
  Limbs limbs(64);
  EXPECT_EQ(numbers.prime_bits(), 0);
  EXPECT_TRUE(numbers.write(RsaNumber::modulus, limbs).has_value());
  EXPECT_EQ(limbs, limbs_of(test_numbers(), RsaNumber::modulus, 64));
  EXPECT_EQ(error_of(numbers.write(RsaNumber::p, limbs)), ErrorCode::invalid_argument);
}

// Against the public operation of RsaPublicKey, which goes through OpenSSL's EVP interface.
TEST(RsaNumbers, confirm_a_public_operation_and_nothing_else) {
  const RsaPublicKey key = numbers_test_key().public_key();
  const RsaNumbers numbers = RsaNumbers::from_der(KeyKind::rsa_public, key.to_der()).value();
  Bytes number(256, Byte{0x5a});
  number[0] = 0;
  Bytes raised = key.apply(number).value();
  EXPECT_TRUE(numbers.confirms_public(number, raised).value());
  EXPECT_TRUE(test_numbers().confirms_public(number, raised).value());
  for (const std::size_t place : {0u, 100u, 255u}) {
    raised[place] ^= 1;
    EXPECT_FALSE(numbers.confirms_public(number, raised).value()) << place;
    raised[place] ^= 1;
  }
  number[255] ^= 1;
  EXPECT_FALSE(numbers.confirms_public(number, raised).value());
}

TEST(RsaNumbers, refuse_what_is_no_key_or_none_whose_numbers_fit) {
  const SecretBytes der = numbers_test_key().to_der().value();
  EXPECT_EQ(error_of(RsaNumbers::from_der(KeyKind::rsa_public, der.view())),
            ErrorCode::invalid_argument);
  EXPECT_EQ(error_of(RsaNumbers::from_der(KeyKind::rsa_private, {})), ErrorCode::invalid_argument);
  // A prime that is not the modulus's.
  const Limbs p = limbs_of(test_numbers(), RsaNumber::p, 32);
  const auto* const bytes = reinterpret_cast<const Byte*>(p.data());
  Bytes big_endian(bytes, bytes + 128);
  std::reverse(big_endian.begin(), big_endian.end());
  Bytes damaged(der.view().begin(), der.view().end());
  const auto at = std::search(damaged.begin(), damaged.end(), big_endian.begin(), big_endian.end());
  ASSERT_NE(at, damaged.end());
  at[77] ^= 1;
  EXPECT_EQ(error_of(RsaNumbers::from_der(KeyKind::rsa_private, damaged)), ErrorCode::unsupported);
}

// Soundness is looked into once a key, which says nothing of keys like it.
TEST(RsaNumbers, refuse_an_unsound_modulus_each_time) {
  const Bytes sound = numbers_test_key().public_key().to_der();
  Bytes big_endian(256);
  Limbs limbs = limbs_of(test_numbers(), RsaNumber::modulus, 64);
  std::copy_n(reinterpret_cast<const Byte*>(limbs.data()), 256, big_endian.begin());
  std::reverse(big_endian.begin(), big_endian.end());
  Bytes unsound = sound;
  const auto at = std::search(unsound.begin(), unsound.end(), big_endian.begin(), big_endian.end());
  ASSERT_NE(at, unsound.end());
  // Odd, and divisible by 3 as the sum of its bytes is.
  const auto sum = [&] { return std::accumulate(at, at + 256, 0u); };
  do {
    at[255] = static_cast<Byte>(at[255] + 2);
  } while (sum() % 3 != 0);
  for (int round = 0; round < 3; ++round) {
    EXPECT_TRUE(RsaNumbers::from_der(KeyKind::rsa_public, sound).has_value());
    EXPECT_EQ(error_of(RsaNumbers::from_der(KeyKind::rsa_public, unsound)),
              ErrorCode::invalid_argument);
    EXPECT_EQ(error_of(RsaPublicKey::from_der(unsound)), ErrorCode::invalid_argument);
  }
}

TEST(RsaNumbers, of_public_keys_are_read_once) {
  const Bytes der = numbers_test_key().public_key().to_der();
  const auto first = RsaNumbers::of_public_key(der).value();
  EXPECT_EQ(RsaNumbers::of_public_key(der).value(), first);
  EXPECT_EQ(limbs_of(*first, RsaNumber::modulus, 64),
            limbs_of(test_numbers(), RsaNumber::modulus, 64));
  Bytes damaged = der;
  damaged.back() ^= 1;  // the exponent, which is even then
  for (int round = 0; round < 2; ++round)
    EXPECT_FALSE(RsaNumbers::of_public_key(damaged).has_value());
  // After many other keys, the first one is read again. A caller that still has the earlier object
  // keeps it.
  std::vector<Bytes> others;
  for (int i = 0; i < 64; ++i) {
    others.push_back(RsaPrivateKey::generate(1024, 1024).value().public_key().to_der());
    EXPECT_EQ(RsaNumbers::of_public_key(others.back()).value()->modulus_bits(), 1024);
  }
  const auto again = RsaNumbers::of_public_key(der).value();
  EXPECT_NE(again, first);
  EXPECT_EQ(limbs_of(*again, RsaNumber::modulus, 64), limbs_of(*first, RsaNumber::modulus, 64));
}

TEST(RsaNumbers, of_padding_open_as_openssl_pads) {
  TestRandom random;
  const RsaPrivateKey key = numbers_test_key();
  const std::size_t size = key.public_key().modulus_size_bytes();
  for (const std::size_t secret_size :
       {std::size_t{0}, std::size_t{1}, std::size_t{32}, size - 67, size - 66}) {
    const Bytes secret = random.bytes(secret_size);
    Bytes block(size);
    ASSERT_TRUE(encode_oaep(secret, "label", block).has_value());
    const Bytes wrapped = key.public_key().apply(block).value();
    EXPECT_TRUE(std::ranges::equal(key.unwrap(wrapped, "label").value().view(), secret));
    EXPECT_EQ(error_of(key.unwrap(wrapped, "other")), ErrorCode::wrong_key);
    Bytes again(size);
    ASSERT_TRUE(encode_oaep(secret, "label", again).has_value());
    EXPECT_NE(again, block) << "the seed is random";
  }
  Bytes block(size);
  EXPECT_EQ(error_of(encode_oaep(Bytes(size - 65), "label", block)), ErrorCode::invalid_argument);
  EXPECT_EQ(error_of(encode_oaep({}, "", MutableByteView(block).first(65))),
            ErrorCode::invalid_argument);
}

TEST(RsaFromPrimes, makes_the_key_that_the_primes_are_of) {
  const Limbs p = limbs_of(test_numbers(), RsaNumber::p, 32);
  const Limbs q = limbs_of(test_numbers(), RsaNumber::q, 48);
  for (const bool swapped : {false, true}) {
    const auto der = swapped ? make_rsa_key(2048, q, p) : make_rsa_key(2048, p, q);
    ASSERT_TRUE(der.has_value());
    const RsaPrivateKey key = RsaPrivateKey::from_der(der->view()).value();
    EXPECT_EQ(key.public_key().to_der(), numbers_test_key().public_key().to_der());
    const Bytes wrapped = numbers_test_key().public_key().wrap(as_bytes("secret"), "").value();
    EXPECT_EQ(as_text(key.unwrap(wrapped, "").value().view()), "secret");
  }
}

struct FreeNumber {
  void operator()(BIGNUM* number) const { BN_free(number); }
};
using BigNumber = std::unique_ptr<BIGNUM, FreeNumber>;

Limbs limbs_of(const BigNumber& number, int bits) {
  Limbs limbs(static_cast<std::size_t>(bits + 31) / 32);
  EXPECT_GT(BN_bn2lebinpad(number.get(), reinterpret_cast<unsigned char*>(limbs.data()),
                           static_cast<int>(4 * limbs.size())),
            0);
  return limbs;
}

// A prime with the two highest bits set. The prime less one has this many zeros at its lower end.
Limbs prime(int bits, int twos) {
  const BigNumber step(BN_new()), rest(BN_new()), made(BN_new());
  BN_set_bit(step.get(), twos + 1);
  BN_set_bit(rest.get(), twos);
  BN_add_word(rest.get(), 1);
  do {
    EXPECT_EQ(BN_generate_prime_ex(made.get(), bits, 0, step.get(), rest.get(), nullptr), 1);
  } while (!BN_is_bit_set(made.get(), bits - 2));
  return limbs_of(made, bits);
}

TEST(RsaFromPrimesOracle, makes_keys_that_openssl_finds_sound_and_writes_the_same) {
  for (const int bits : {1024, 1026, 1100, 2048, 2050, 3072}) {
    SCOPED_TRACE(bits);
    for (const int twos : {1, 2, 9}) {
      const auto der = make_rsa_key(bits, prime(bits / 2, twos), prime(bits / 2, 1));
      ASSERT_TRUE(der.has_value()) << der.error().message;
      ASSERT_LE(der->size(), rsa_private_key_size_bound(bits));
      const OpensslOwner<EVP_PKEY> key = parse_private_key(der->view());
      ASSERT_NE(key, nullptr);
      EXPECT_EQ(EVP_PKEY_get_bits(key.get()), bits);
      const OpensslOwner<EVP_PKEY_CTX> context(
          EVP_PKEY_CTX_new_from_pkey(nullptr, key.get(), nullptr));
      EXPECT_EQ(EVP_PKEY_check(context.get()), 1);
      const RsaPrivateKey read = RsaPrivateKey::from_der(der->view(), rsa_message_bits_min).value();
      EXPECT_TRUE(std::ranges::equal(read.to_der().value().view(), der->view()));
    }
  }
}

// Numbers that a sieve of small primes does not tell from primes: what a device that computes
// wrongly would give.
TEST(RsaFromPrimes, refuses_products_of_large_primes_in_place_of_primes) {
  const Limbs q = prime(1024, 1);
  for (int i = 0; i < 20; ++i) {
    const BigNumber a(BN_new()), b(BN_new()), product(BN_new());
    const std::unique_ptr<BN_CTX, decltype(&BN_CTX_free)> context(BN_CTX_new(), BN_CTX_free);
    do {
      ASSERT_EQ(BN_generate_prime_ex(a.get(), 512, 0, nullptr, nullptr, nullptr), 1);
      ASSERT_EQ(BN_generate_prime_ex(b.get(), 512, 0, nullptr, nullptr, nullptr), 1);
      ASSERT_EQ(BN_mul(product.get(), a.get(), b.get(), context.get()), 1);
    } while (BN_num_bits(product.get()) != 1024 || !BN_is_bit_set(product.get(), 1022));
    const Limbs composite = limbs_of(product, 1024);
    EXPECT_EQ(error_of(make_rsa_key(2048, composite, q)), ErrorCode::invalid_argument);
    EXPECT_EQ(error_of(make_rsa_key(2048, q, composite)), ErrorCode::invalid_argument);
  }
}

TEST(RsaFromPrimes, refuses_primes_of_which_no_good_key_is_made) {
  const Limbs p = limbs_of(test_numbers(), RsaNumber::p, 32);
  const Limbs q = limbs_of(test_numbers(), RsaNumber::q, 32);
  EXPECT_EQ(error_of(make_rsa_key(2048, p, p)), ErrorCode::invalid_argument);
  Limbs near = p;
  near[20] ^= 2;  // 642 bits below the top
  EXPECT_EQ(error_of(make_rsa_key(2048, p, near)), ErrorCode::invalid_argument);
  Limbs composite = q;
  composite[0] ^= 2;
  EXPECT_EQ(error_of(make_rsa_key(2048, p, composite)), ErrorCode::invalid_argument);
  EXPECT_EQ(error_of(make_rsa_key(3072, p, q)), ErrorCode::invalid_argument);
  Limbs even = q;
  even[0] ^= 1;
  EXPECT_EQ(error_of(make_rsa_key(2048, p, even)), ErrorCode::invalid_argument);
  EXPECT_EQ(error_of(make_rsa_key(2048, even, p)), ErrorCode::invalid_argument);
  EXPECT_EQ(error_of(make_rsa_key(2048, Limbs(32), q)), ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace nacre::engine
