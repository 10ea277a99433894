// SPDX-License-Identifier: Apache-2.0
// Keys for rsa_plain.h.
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>

#include <memory>

#include "gpu_engine/seeds/rsa_plain.h"

namespace nacre::engine::seeds {
namespace {

template <typename T, void (*release)(T*)>
struct Release {
  void operator()(T* object) const { release(object); }
};
using Number = std::unique_ptr<BIGNUM, Release<BIGNUM, BN_clear_free>>;
using Scratch = std::unique_ptr<BN_CTX, Release<BN_CTX, BN_CTX_free>>;
using Key = std::unique_ptr<EVP_PKEY, Release<EVP_PKEY, EVP_PKEY_free>>;
using KeyContext = std::unique_ptr<EVP_PKEY_CTX, Release<EVP_PKEY_CTX, EVP_PKEY_CTX_free>>;
using Builder = std::unique_ptr<OSSL_PARAM_BLD, Release<OSSL_PARAM_BLD, OSSL_PARAM_BLD_free>>;
using Parameters = std::unique_ptr<OSSL_PARAM, Release<OSSL_PARAM, OSSL_PARAM_free>>;

constexpr int miller_rabin_rounds = 32;
constexpr unsigned small_prime_max = 1000;

tl::unexpected<Error> failed() {
  return fail(ErrorCode::out_of_memory, "OpenSSL could not make an RSA key");
}

Result<Bytes> number_of(const Key& key, const char* name, int bits) {
  BIGNUM* raw = nullptr;
  if (EVP_PKEY_get_bn_param(key.get(), name, &raw) != 1) return failed();
  const Number number(raw);
  Bytes bytes(static_cast<std::size_t>(bits) / 8);
  if (BN_bn2binpad(number.get(), bytes.data(), bits / 8) != bits / 8) return failed();
  return bytes;
}

template <typename Encode>
Result<Bytes> der_of(const Encode& encode) {
  const int size = encode(nullptr);
  if (size <= 0) return failed();
  Bytes der(static_cast<std::size_t>(size));
  unsigned char* at = der.data();
  if (encode(&at) != size) return failed();
  return der;
}

Result<RsaNumbers> numbers_of(const Key& key, int bits) {
  RsaNumbers numbers;
  NACRE_ASSIGN(numbers.modulus, number_of(key, OSSL_PKEY_PARAM_RSA_N, bits));
  NACRE_ASSIGN(numbers.public_exponent, number_of(key, OSSL_PKEY_PARAM_RSA_E, bits));
  NACRE_ASSIGN(numbers.private_exponent, number_of(key, OSSL_PKEY_PARAM_RSA_D, bits));
  NACRE_ASSIGN(numbers.public_der,
               der_of([&](unsigned char** to) { return i2d_PUBKEY(key.get(), to); }));
  const std::unique_ptr<PKCS8_PRIV_KEY_INFO, Release<PKCS8_PRIV_KEY_INFO, PKCS8_PRIV_KEY_INFO_free>>
      info(EVP_PKEY2PKCS8(key.get()));
  if (!info) return failed();
  NACRE_ASSIGN(numbers.private_der,
               der_of([&](unsigned char** to) { return i2d_PKCS8_PRIV_KEY_INFO(info.get(), to); }));
  return numbers;
}

bool has_small_factor(const BIGNUM* candidate) {
  for (unsigned divisor = 3; divisor < small_prime_max; divisor += 2) {
    bool is_prime = true;
    for (unsigned i = 3; i * i <= divisor && is_prime; i += 2)
      is_prime = divisor % i != 0;
    if (is_prime && BN_mod_word(candidate, divisor) == 0) return true;
  }
  return false;
}

// 1: every round says prime; 0: composite; -1: no memory.
int passes_miller_rabin(const BIGNUM* candidate, BN_CTX* scratch) {
  const Number less(BN_dup(candidate)), odd(BN_new()), base(BN_new()), power(BN_new());
  if (!less || !odd || !base || !power || BN_sub_word(less.get(), 1) != 1) return -1;
  int twos = 0;
  while (BN_is_bit_set(less.get(), twos) == 0)
    ++twos;
  if (BN_rshift(odd.get(), less.get(), twos) != 1) return -1;
  for (int round = 0; round < miller_rabin_rounds; ++round) {
    do {
      if (BN_priv_rand_range(base.get(), less.get()) != 1) return -1;
    } while (BN_is_zero(base.get()) || BN_is_one(base.get()));
    if (BN_mod_exp(power.get(), base.get(), odd.get(), candidate, scratch) != 1) return -1;
    bool says_prime = BN_is_one(power.get()) || BN_cmp(power.get(), less.get()) == 0;
    for (int i = 1; i < twos && !says_prime; ++i) {
      if (BN_mod_sqr(power.get(), power.get(), candidate, scratch) != 1) return -1;
      says_prime = BN_cmp(power.get(), less.get()) == 0;
    }
    if (!says_prime) return 0;
  }
  return 1;
}

Number find_prime(int bits, const BIGNUM* exponent, BN_CTX* scratch) {
  const Number less(BN_new()), common(BN_new());
  Number candidate(BN_new());
  if (!less || !common || !candidate) return nullptr;
  for (;;) {
    // The two highest bits are set, so that a product of two such primes has all its bits.
    if (BN_priv_rand(candidate.get(), bits, BN_RAND_TOP_TWO, BN_RAND_BOTTOM_ODD) != 1)
      return nullptr;
    if (has_small_factor(candidate.get())) continue;
    const int verdict = passes_miller_rabin(candidate.get(), scratch);
    if (verdict < 0) return nullptr;
    if (verdict == 0) continue;
    if (BN_copy(less.get(), candidate.get()) == nullptr || BN_sub_word(less.get(), 1) != 1 ||
        BN_gcd(common.get(), less.get(), exponent, scratch) != 1)
      return nullptr;
    if (BN_is_one(common.get())) return candidate;
  }
}

}  // namespace

Result<RsaNumbers> make_rsa_numbers(int bits) {
  const Key key(EVP_RSA_gen(static_cast<unsigned>(bits)));
  if (!key) return failed();
  return numbers_of(key, bits);
}

Result<RsaNumbers> search_rsa_numbers(int bits) {
  const Scratch scratch(BN_CTX_new());
  const Number exponent(BN_new()), modulus(BN_new()), totient(BN_new()), inverse(BN_new());
  if (!scratch || !exponent || !modulus || !totient || !inverse ||
      BN_set_word(exponent.get(), RSA_F4) != 1)
    return failed();
  const Number p = find_prime(bits / 2, exponent.get(), scratch.get());
  const Number q = find_prime(bits / 2, exponent.get(), scratch.get());
  if (!p || !q || BN_mul(modulus.get(), p.get(), q.get(), scratch.get()) != 1) return failed();
  const Number p_less(BN_dup(p.get())), q_less(BN_dup(q.get()));
  if (!p_less || !q_less || BN_sub_word(p_less.get(), 1) != 1 ||
      BN_sub_word(q_less.get(), 1) != 1 ||
      BN_mul(totient.get(), p_less.get(), q_less.get(), scratch.get()) != 1 ||
      BN_mod_inverse(inverse.get(), exponent.get(), totient.get(), scratch.get()) == nullptr)
    return failed();
  // PKCS#8 also holds the numbers for the Chinese remainder theorem.
  const Number p_part(BN_new()), q_part(BN_new()), coefficient(BN_new());
  if (!p_part || !q_part || !coefficient ||
      BN_mod(p_part.get(), inverse.get(), p_less.get(), scratch.get()) != 1 ||
      BN_mod(q_part.get(), inverse.get(), q_less.get(), scratch.get()) != 1 ||
      BN_mod_inverse(coefficient.get(), q.get(), p.get(), scratch.get()) == nullptr)
    return failed();
  const Builder builder(OSSL_PARAM_BLD_new());
  const std::pair<const char*, const BIGNUM*> parts[] = {
      {OSSL_PKEY_PARAM_RSA_N, modulus.get()},
      {OSSL_PKEY_PARAM_RSA_E, exponent.get()},
      {OSSL_PKEY_PARAM_RSA_D, inverse.get()},
      {OSSL_PKEY_PARAM_RSA_FACTOR1, p.get()},
      {OSSL_PKEY_PARAM_RSA_FACTOR2, q.get()},
      {OSSL_PKEY_PARAM_RSA_EXPONENT1, p_part.get()},
      {OSSL_PKEY_PARAM_RSA_EXPONENT2, q_part.get()},
      {OSSL_PKEY_PARAM_RSA_COEFFICIENT1, coefficient.get()}};
  for (const auto& [name, number] : parts) {
    if (!builder || OSSL_PARAM_BLD_push_BN(builder.get(), name, number) != 1) return failed();
  }
  const Parameters parameters(OSSL_PARAM_BLD_to_param(builder.get()));
  const KeyContext context(EVP_PKEY_CTX_new_from_name(nullptr, "RSA", nullptr));
  EVP_PKEY* raw = nullptr;
  if (!parameters || !context || EVP_PKEY_fromdata_init(context.get()) != 1 ||
      EVP_PKEY_fromdata(context.get(), &raw, EVP_PKEY_KEYPAIR, parameters.get()) != 1)
    return failed();
  const Key key(raw);
  return numbers_of(key, bits);
}

}  // namespace nacre::engine::seeds
