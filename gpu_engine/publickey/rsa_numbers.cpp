// SPDX-License-Identifier: Apache-2.0
// Reads numbers out of OpenSSL's keys, and makes keys of numbers.
#include "gpu_engine/publickey/rsa_numbers.h"

#include <openssl/core_names.h>
#include <openssl/err.h>

#include <algorithm>
#include <array>
#include <deque>
#include <utility>

#include "gpu_engine/base/mutex.h"
#include "gpu_engine/publickey/openssl_number.h"
#include "gpu_engine/publickey/rsa_state.h"

namespace nacre::engine {
namespace {

constexpr std::size_t number_count = 6;
constexpr std::array<const char*, number_count> names = {
    OSSL_PKEY_PARAM_RSA_N,         OSSL_PKEY_PARAM_RSA_FACTOR1,   OSSL_PKEY_PARAM_RSA_FACTOR2,
    OSSL_PKEY_PARAM_RSA_EXPONENT1, OSSL_PKEY_PARAM_RSA_EXPONENT2, OSSL_PKEY_PARAM_RSA_COEFFICIENT1};

tl::unexpected<Error> no_memory_for_numbers() {
  return fail(ErrorCode::out_of_memory, "RSA numbers: " + take_openssl_reason());
}

tl::unexpected<Error> refuse_key(const char* why) {
  ERR_clear_error();
  return fail(ErrorCode::unsupported, why);
}

Number get_number(const EVP_PKEY* key, const char* name) {
  BIGNUM* number = nullptr;
  if (EVP_PKEY_get_bn_param(key, name, &number) != 1) {
    ERR_clear_error();
    return nullptr;
  }
  return Number(number);
}

bool are_of_one_key(const BIGNUM* n, const BIGNUM* p, const BIGNUM* q, BN_CTX* context) {
  const Number product(BN_secure_new());
  return product != nullptr && BN_is_odd(p) && BN_is_odd(q) && !BN_is_negative(p) &&
         !BN_is_negative(q) && BN_mul(product.get(), p, q, context) == 1 &&
         BN_cmp(product.get(), n) == 0;
}

}  // namespace

struct RsaNumbers::State {
  std::array<Number, number_count> numbers;
  NumberOwner<BN_CTX> context;
  std::uint64_t public_exponent = 0;

  const BIGNUM* of(RsaNumber number) const {
    return numbers[static_cast<std::size_t>(number)].get();
  }
};

RsaNumbers::RsaNumbers(std::unique_ptr<State> state) : state_(std::move(state)) {}
RsaNumbers::RsaNumbers(RsaNumbers&&) noexcept = default;
RsaNumbers::~RsaNumbers() = default;

Result<RsaNumbers> RsaNumbers::from_der(KeyKind kind, ByteView der) {
  auto state = std::make_unique<State>();
  state->context.reset(BN_CTX_secure_new());
  if (state->context == nullptr) return no_memory_for_numbers();
  const auto read = [&](const EVP_PKEY* key, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      state->numbers[i] = get_number(key, names[i]);
      if (state->numbers[i] == nullptr) return false;
      if (i > 0) BN_set_flags(state->numbers[i].get(), BN_FLG_CONSTTIME);
    }
    const Number exponent = get_number(key, OSSL_PKEY_PARAM_RSA_E);
    if (exponent == nullptr || BN_num_bits(exponent.get()) > 64) return false;
    state->public_exponent = BN_get_word(exponent.get());
    return state->public_exponent % 2 == 1 && state->public_exponent >= 3 &&
           BN_is_odd(state->numbers[0].get());
  };
  if (kind == KeyKind::rsa_public) {
    const OpensslOwner<EVP_PKEY> key = parse_public_key(der);
    if (key == nullptr) return fail(ErrorCode::invalid_argument, "not a public RSA key");
    NACRE_TRY(check_rsa_key(key.get(), rsa_message_bits_min));
    if (!read(key.get(), 1)) return refuse_key("the public RSA key has an unusual form");
    return RsaNumbers(std::move(state));
  }
  const OpensslOwner<EVP_PKEY> key = parse_private_key(der);
  if (key == nullptr) return fail(ErrorCode::invalid_argument, "not a private RSA key");
  NACRE_TRY(check_rsa_key(key.get(), rsa_message_bits_min));
  if (!read(key.get(), number_count)) return refuse_key("the private RSA key has an unusual form");
  const BIGNUM* const p = state->of(RsaNumber::p);
  const BIGNUM* const q = state->of(RsaNumber::q);
  if (!are_of_one_key(state->of(RsaNumber::modulus), p, q, state->context.get()) ||
      BN_cmp(state->of(RsaNumber::p_exponent), p) >= 0 ||
      BN_cmp(state->of(RsaNumber::q_exponent), q) >= 0 ||
      BN_cmp(state->of(RsaNumber::q_inverse), p) >= 0)
    return refuse_key("the numbers of a private RSA key do not fit each other");
  return RsaNumbers(std::move(state));
}

Result<std::shared_ptr<const RsaNumbers>> RsaNumbers::of_public_key(ByteView der) {
  constexpr std::size_t kept_max = 64;
  static Mutex mutex;  // held while a key is read: other threads want the same key
  using Kept = std::pair<Bytes, std::shared_ptr<const RsaNumbers>>;
  static std::deque<Kept> kept NACRE_GUARDED_BY(mutex);
  const LockGuard lock(mutex);
  const auto known = std::ranges::find_if(
      kept, [&](const auto& one) { return std::ranges::equal(one.first, der); });
  if (known != kept.end()) return known->second;
  NACRE_ASSIGN(RsaNumbers read, from_der(KeyKind::rsa_public, der));
  auto numbers = std::make_shared<const RsaNumbers>(std::move(read));
  if (kept.size() == kept_max) kept.pop_front();
  kept.emplace_back(Bytes(der.begin(), der.end()), numbers);
  return numbers;
}

std::size_t RsaNumbers::modulus_size_bytes() const {
  return static_cast<std::size_t>(BN_num_bytes(state_->of(RsaNumber::modulus)));
}

int RsaNumbers::modulus_bits() const {
  return BN_num_bits(state_->of(RsaNumber::modulus));
}

int RsaNumbers::prime_bits() const {
  if (state_->of(RsaNumber::p) == nullptr) return 0;
  return std::max(BN_num_bits(state_->of(RsaNumber::p)), BN_num_bits(state_->of(RsaNumber::q)));
}

std::uint64_t RsaNumbers::public_exponent() const {
  return state_->public_exponent;
}

Result<> RsaNumbers::write(RsaNumber number, std::span<std::uint32_t> limbs) const {
  const BIGNUM* const value = state_->of(number);
  if (value == nullptr || BN_bn2lebinpad(value, reinterpret_cast<unsigned char*>(limbs.data()),
                                         static_cast<int>(limbs.size_bytes())) < 0) {
    ERR_clear_error();
    return fail(ErrorCode::invalid_argument, "a number of an RSA key does not fit");
  }
  return {};
}

Result<> RsaNumbers::write_r_squared(RsaNumber modulus, std::span<std::uint32_t> limbs) const {
  const Number square(BN_secure_new());
  const NumberOwner<BN_CTX> context(BN_CTX_secure_new());
  if (square == nullptr || context == nullptr ||
      BN_set_bit(square.get(), static_cast<int>(64 * limbs.size())) != 1 ||
      BN_mod(square.get(), square.get(), state_->of(modulus), context.get()) != 1)
    return no_memory_for_numbers();
  if (BN_bn2lebinpad(square.get(), reinterpret_cast<unsigned char*>(limbs.data()),
                     static_cast<int>(limbs.size_bytes())) < 0)
    return no_memory_for_numbers();
  return {};
}

Result<bool> RsaNumbers::confirms_public(ByteView number, ByteView raised) const {
  const auto of_bytes = [](ByteView bytes) {
    return Number(BN_bin2bn(bytes.data(), static_cast<int>(bytes.size()), nullptr));
  };
  const Number base = of_bytes(number);
  const Number result = of_bytes(raised);
  const Number exponent(BN_new());
  const Number power(BN_new());
  const NumberOwner<BN_CTX> context(BN_CTX_new());
  if (base == nullptr || result == nullptr || exponent == nullptr || power == nullptr ||
      context == nullptr || BN_set_word(exponent.get(), state_->public_exponent) != 1 ||
      BN_mod_exp(power.get(), base.get(), exponent.get(), state_->of(RsaNumber::modulus),
                 context.get()) != 1)
    return no_memory_for_numbers();
  return BN_cmp(power.get(), result.get()) == 0;
}

}  // namespace nacre::engine
