// SPDX-License-Identifier: Apache-2.0
// Makes a key of two primes that were found elsewhere, and checks it; see rsa_numbers.h.
//
// The primes have been tested where they were found. The checks here guard against wrong arithmetic
// there. A number that is not prime passes a round of Miller-Rabin with a random base at most once
// in four times, and a random one so rarely that it does not happen. A key with a wrong number in
// it does not bring back the random number that the public operation was applied to.
#include <openssl/err.h>

#include <utility>

#include "gpu_engine/publickey/openssl_number.h"
#include "gpu_engine/publickey/rsa_numbers.h"
#include "gpu_engine/publickey/rsa_private_der.h"
#include "gpu_engine/publickey/rsa_state.h"

namespace nacre::engine {
namespace {

constexpr unsigned long public_exponent = 65537;
constexpr int prime_distance_bits = 100;

struct FreeMontgomery {
  void operator()(BN_MONT_CTX* context) const { BN_MONT_CTX_free(context); }
};
using Montgomery = std::unique_ptr<BN_MONT_CTX, FreeMontgomery>;

tl::unexpected<Error> no_memory() {
  return fail(ErrorCode::out_of_memory, "RSA key from primes: " + take_openssl_reason());
}

tl::unexpected<Error> refuse(const char* why) {
  ERR_clear_error();
  return fail(ErrorCode::invalid_argument, why);
}

Number new_secret() {
  Number number(BN_secure_new());
  if (number != nullptr) BN_set_flags(number.get(), BN_FLG_CONSTTIME);
  return number;
}

bool read(BIGNUM* number, std::span<const std::uint32_t> limbs) {
  return BN_lebin2bn(reinterpret_cast<const unsigned char*>(limbs.data()),
                     static_cast<int>(limbs.size_bytes()), number) != nullptr;
}

// The values that belong to one of the two primes.
struct Prime {
  Number value = new_secret(), below = new_secret(), exponent = new_secret();
  Number odd_part = new_secret();  // of below: below = odd_part * 2^twos
  Number base = new_secret(), power = new_secret();
  Montgomery montgomery{BN_MONT_CTX_new()};
  int twos = 0;

  bool is_there() const {
    return value && below && exponent && odd_part && base && power && montgomery;
  }
  bool prepare(BN_CTX* context) {
    if (!BN_copy(below.get(), value.get()) || !BN_sub_word(below.get(), 1)) return false;
    for (twos = 1; !BN_is_bit_set(below.get(), twos); ++twos) {
    }
    return BN_rshift(odd_part.get(), below.get(), twos) == 1 &&
           BN_MONT_CTX_set(montgomery.get(), value.get(), context) == 1;
  }
};

struct Numbers {
  Prime p, q;
  Number n{BN_new()}, e{BN_new()};
  Number d = new_secret(), multiple = new_secret(), q_inverse = new_secret();
  Number scratch = new_secret(), more_scratch = new_secret();
  NumberOwner<BN_CTX> context{BN_CTX_secure_new()};

  bool are_there() const {
    return p.is_there() && q.is_there() && n && e && d && multiple && q_inverse && scratch &&
           more_scratch && context;
  }
  // False when memory is exhausted, or when the exponent has no inverse.
  bool compute() {
    BN_CTX* const c = context.get();
    return p.prepare(c) && q.prepare(c) && BN_set_word(e.get(), public_exponent) == 1 &&
           // d = 1 / e modulo the least common multiple.
           BN_gcd(scratch.get(), p.below.get(), q.below.get(), c) &&
           BN_mul(multiple.get(), p.below.get(), q.below.get(), c) &&
           BN_div(multiple.get(), nullptr, multiple.get(), scratch.get(), c) &&
           BN_mod_inverse(d.get(), e.get(), multiple.get(), c) != nullptr &&
           BN_mod(p.exponent.get(), d.get(), p.below.get(), c) &&
           BN_mod(q.exponent.get(), d.get(), q.below.get(), c) &&
           BN_mod_inverse(q_inverse.get(), q.value.get(), p.value.get(), c) != nullptr;
  }

  bool exponents_fit() const {
    return BN_mod_mul(scratch.get(), d.get(), e.get(), multiple.get(), context.get()) == 1 &&
           BN_is_one(scratch.get());
  }

  // power = base^exponent modulo each prime, for both primes at once where the processor has
  // instructions for that.
  bool raise(const Number Prime::*exponent) const {
    return BN_mod_exp_mont_consttime_x2(p.power.get(), p.base.get(), (p.*exponent).get(),
                                        p.value.get(), p.montgomery.get(), q.power.get(),
                                        q.base.get(), (q.*exponent).get(), q.value.get(),
                                        q.montgomery.get(), context.get()) == 1;
  }

  // A round of Miller-Rabin for each prime, with random bases (FIPS 186-5, B.3.1).
  bool may_be_primes() const {
    for (const Prime* const prime : {&p, &q}) {
      // The bases 1 and -1 prove nothing.
      do {
        if (BN_priv_rand_range(prime->base.get(), prime->below.get()) != 1) return false;
      } while (BN_is_zero(prime->base.get()) || BN_is_one(prime->base.get()));
    }
    return raise(&Prime::odd_part) && is_witnessed(p) && is_witnessed(q);
  }
  bool is_witnessed(const Prime& prime) const {
    if (BN_is_one(prime.power.get())) return true;
    for (int i = 0; i < prime.twos; ++i) {
      if (BN_cmp(prime.power.get(), prime.below.get()) == 0) return true;
      if (BN_mod_sqr(prime.power.get(), prime.power.get(), prime.value.get(), context.get()) != 1)
        return false;
    }
    return false;
  }

  // Whether the private operation, with the very numbers that will be given out, reverses the
  // public one.
  bool belong_together() const {
    const Number plain(BN_new());
    const Number raised(BN_new());
    const Montgomery montgomery(BN_MONT_CTX_new());
    BN_CTX* const c = context.get();
    return plain && raised && montgomery && BN_rand_range(plain.get(), n.get()) == 1 &&
           BN_MONT_CTX_set(montgomery.get(), n.get(), c) == 1 &&
           BN_mod_exp_mont(raised.get(), plain.get(), e.get(), n.get(), c, montgomery.get()) == 1 &&
           BN_mod(p.base.get(), raised.get(), p.value.get(), c) == 1 &&
           BN_mod(q.base.get(), raised.get(), q.value.get(), c) == 1 && raise(&Prime::exponent) &&
           // q power + ((p power - q power) * q inverse mod p) * q
           BN_mod_sub(scratch.get(), p.power.get(), q.power.get(), p.value.get(), c) == 1 &&
           BN_mod_mul(scratch.get(), scratch.get(), q_inverse.get(), p.value.get(), c) == 1 &&
           BN_mul(more_scratch.get(), scratch.get(), q.value.get(), c) == 1 &&
           BN_add(more_scratch.get(), more_scratch.get(), q.power.get()) == 1 &&
           BN_cmp(more_scratch.get(), plain.get()) == 0;
  }
};

}  // namespace

Result<SecretBytes> make_rsa_key(int bits, std::span<const std::uint32_t> p,
                                 std::span<const std::uint32_t> q) {
  Numbers numbers;
  if (!numbers.are_there() || !read(numbers.p.value.get(), p) || !read(numbers.q.value.get(), q))
    return no_memory();
  Number& larger = numbers.p.value;
  Number& smaller = numbers.q.value;
  if (BN_cmp(larger.get(), smaller.get()) < 0) std::swap(larger, smaller);
  for (const Number* const prime : {&larger, &smaller}) {
    if (BN_num_bits(prime->get()) != bits / 2 || !BN_is_odd(prime->get()))
      return refuse("a prime is even or has another length than requested");
  }
  BIGNUM* const distance = numbers.scratch.get();
  if (BN_sub(distance, larger.get(), smaller.get()) != 1 ||
      BN_mul(numbers.n.get(), larger.get(), smaller.get(), numbers.context.get()) != 1)
    return no_memory();
  if (BN_num_bits(distance) <= bits / 2 - prime_distance_bits)
    return refuse("two primes are too near to each other");
  if (!numbers.compute()) return refuse("two primes do not make an RSA key");
  if (BN_num_bits(numbers.n.get()) != bits || BN_num_bits(numbers.d.get()) <= bits / 2)
    return refuse("two primes do not make an RSA key of the requested length");
  if (!numbers.exponents_fit() || !numbers.may_be_primes() || !numbers.belong_together())
    return refuse("the new RSA key does not pass its check");
  return encode_rsa_private_key({.n = numbers.n.get(),
                                 .e = numbers.e.get(),
                                 .d = numbers.d.get(),
                                 .p = larger.get(),
                                 .q = smaller.get(),
                                 .p_exponent = numbers.p.exponent.get(),
                                 .q_exponent = numbers.q.exponent.get(),
                                 .q_inverse = numbers.q_inverse.get()});
}

}  // namespace nacre::engine
