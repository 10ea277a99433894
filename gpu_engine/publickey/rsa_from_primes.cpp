// SPDX-License-Identifier: Apache-2.0
// A key from two primes, with OpenSSL's check of the whole; see rsa_numbers.h.
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/param_build.h>

#include <utility>

#include "gpu_engine/publickey/openssl_number.h"
#include "gpu_engine/publickey/rsa_numbers.h"
#include "gpu_engine/publickey/rsa_state.h"

namespace nacre::engine {
namespace {

constexpr unsigned long public_exponent = 65537;
constexpr int prime_distance_bits = 100;

struct FreeParameters {
  void operator()(OSSL_PARAM_BLD* builder) const { OSSL_PARAM_BLD_free(builder); }
  void operator()(OSSL_PARAM* parameters) const { OSSL_PARAM_free(parameters); }
};

tl::unexpected<Error> no_memory() {
  return fail(ErrorCode::out_of_memory, "RSA key from primes: " + take_openssl_reason());
}

tl::unexpected<Error> refuse(const char* why) {
  ERR_clear_error();
  return fail(ErrorCode::invalid_argument, why);
}

Number new_number() {
  Number number(BN_secure_new());
  if (number != nullptr) BN_set_flags(number.get(), BN_FLG_CONSTTIME);
  return number;
}

bool read(BIGNUM* number, std::span<const std::uint32_t> limbs) {
  return BN_lebin2bn(reinterpret_cast<const unsigned char*>(limbs.data()),
                     static_cast<int>(limbs.size_bytes()), number) != nullptr;
}

// What a key consists of.
struct Numbers {
  Number p = new_number(), q = new_number(), n = new_number(), e = new_number(), d = new_number();
  Number p_exponent = new_number(), q_exponent = new_number(), q_inverse = new_number();
  Number below_p = new_number(), below_q = new_number(), scratch = new_number();
  NumberOwner<BN_CTX> context{BN_CTX_secure_new()};

  bool are_there() const {
    return p && q && n && e && d && p_exponent && q_exponent && q_inverse && below_p && below_q &&
           scratch && context;
  }
  // False for want of memory, or where the exponent has no inverse.
  bool compute() {
    BN_CTX* const c = context.get();
    return BN_set_word(e.get(), public_exponent) == 1 && BN_mul(n.get(), p.get(), q.get(), c) &&
           BN_copy(below_p.get(), p.get()) && BN_sub_word(below_p.get(), 1) &&
           BN_copy(below_q.get(), q.get()) && BN_sub_word(below_q.get(), 1) &&
           // d = 1 / e modulo the least common multiple.
           BN_gcd(scratch.get(), below_p.get(), below_q.get(), c) &&
           BN_mul(d.get(), below_p.get(), below_q.get(), c) &&
           BN_div(scratch.get(), nullptr, d.get(), scratch.get(), c) &&
           BN_mod_inverse(d.get(), e.get(), scratch.get(), c) != nullptr &&
           BN_mod(p_exponent.get(), d.get(), below_p.get(), c) &&
           BN_mod(q_exponent.get(), d.get(), below_q.get(), c) &&
           BN_mod_inverse(q_inverse.get(), q.get(), p.get(), c) != nullptr;
  }
};

OpensslOwner<EVP_PKEY> make_key(const Numbers& numbers) {
  const std::unique_ptr<OSSL_PARAM_BLD, FreeParameters> builder(OSSL_PARAM_BLD_new());
  if (builder == nullptr) return nullptr;
  const std::pair<const char*, const BIGNUM*> all[] = {
      {OSSL_PKEY_PARAM_RSA_N, numbers.n.get()},
      {OSSL_PKEY_PARAM_RSA_E, numbers.e.get()},
      {OSSL_PKEY_PARAM_RSA_D, numbers.d.get()},
      {OSSL_PKEY_PARAM_RSA_FACTOR1, numbers.p.get()},
      {OSSL_PKEY_PARAM_RSA_FACTOR2, numbers.q.get()},
      {OSSL_PKEY_PARAM_RSA_EXPONENT1, numbers.p_exponent.get()},
      {OSSL_PKEY_PARAM_RSA_EXPONENT2, numbers.q_exponent.get()},
      {OSSL_PKEY_PARAM_RSA_COEFFICIENT1, numbers.q_inverse.get()}};
  for (const auto& [name, number] : all) {
    if (OSSL_PARAM_BLD_push_BN(builder.get(), name, number) != 1) return nullptr;
  }
  const std::unique_ptr<OSSL_PARAM, FreeParameters> parameters(
      OSSL_PARAM_BLD_to_param(builder.get()));
  const OpensslOwner<EVP_PKEY_CTX> context(EVP_PKEY_CTX_new_from_name(nullptr, "RSA", nullptr));
  EVP_PKEY* key = nullptr;
  if (parameters == nullptr || context == nullptr || EVP_PKEY_fromdata_init(context.get()) != 1 ||
      EVP_PKEY_fromdata(context.get(), &key, EVP_PKEY_KEYPAIR, parameters.get()) != 1)
    return nullptr;
  return OpensslOwner<EVP_PKEY>(key);
}

}  // namespace

Result<SecretBytes> make_rsa_key(int bits, std::span<const std::uint32_t> p,
                                 std::span<const std::uint32_t> q) {
  Numbers numbers;
  if (!numbers.are_there() || !read(numbers.p.get(), p) || !read(numbers.q.get(), q))
    return no_memory();
  if (BN_cmp(numbers.p.get(), numbers.q.get()) < 0) std::swap(numbers.p, numbers.q);
  if (BN_sub(numbers.scratch.get(), numbers.p.get(), numbers.q.get()) != 1) return no_memory();
  if (BN_num_bits(numbers.scratch.get()) <= bits / 2 - prime_distance_bits)
    return refuse("two primes are too near to each other");
  if (!numbers.compute()) return refuse("two primes make no RSA key");
  if (BN_num_bits(numbers.n.get()) != bits || BN_num_bits(numbers.d.get()) <= bits / 2)
    return refuse("two primes make no RSA key of the length wanted");
  OpensslOwner<EVP_PKEY> key = make_key(numbers);
  if (key == nullptr) return no_memory();
  const OpensslOwner<EVP_PKEY_CTX> context(EVP_PKEY_CTX_new_from_pkey(nullptr, key.get(), nullptr));
  if (context == nullptr) return no_memory();
  if (EVP_PKEY_check(context.get()) != 1) return refuse("OpenSSL finds the new RSA key bad");
  NACRE_ASSIGN(const RsaPrivateKey made, make_private_key(std::move(key)));
  return made.to_der();
}

}  // namespace nacre::engine
