// SPDX-License-Identifier: Apache-2.0
// The arithmetic of the RSA kernels, which is the same code on the host, with OpenSSL's numbers as
// the judge. Lanes that work together on a device are threads here. No device is needed.
#include <gtest/gtest.h>
#include <openssl/bn.h>

#include <algorithm>
#include <array>
#include <barrier>
#include <memory>
#include <thread>
#include <vector>

#include "gpu_engine/cuda/kernels/prime_test.cuh"
#include "gpu_engine/cuda/kernels/rsa_power.cuh"
#include "tests/gpu_engine/test_data.h"

namespace nacre::engine::cuda {
namespace {

struct FreeNumber {
  void operator()(BIGNUM* number) const { BN_free(number); }
};
using Number = std::unique_ptr<BIGNUM, FreeNumber>;
using Words = std::vector<std::uint32_t>;

BN_CTX* scratch() {
  static const std::unique_ptr<BN_CTX, decltype(&BN_CTX_free)> context(BN_CTX_new(), BN_CTX_free);
  return context.get();
}

Number number(unsigned long word = 0) {
  Number made(BN_new());
  BN_set_word(made.get(), word);
  return made;
}

Number number(const std::uint32_t* limbs, std::size_t count) {
  return Number(BN_lebin2bn(reinterpret_cast<const unsigned char*>(limbs),
                            static_cast<int>(4 * count), nullptr));
}

void write(const Number& from, std::uint32_t* limbs, std::size_t count) {
  ASSERT_GT(BN_bn2lebinpad(from.get(), reinterpret_cast<unsigned char*>(limbs),
                           static_cast<int>(4 * count)),
            0);
}

Words words(const Number& from, std::size_t count) {
  Words limbs(count);
  write(from, limbs.data(), count);
  return limbs;
}

Number below(TestRandom& random, const Number& bound) {
  const Bytes bytes = random.bytes(static_cast<std::size_t>(BN_num_bytes(bound.get())) + 8);
  Number made(BN_bin2bn(bytes.data(), static_cast<int>(bytes.size()), nullptr));
  BN_mod(made.get(), made.get(), bound.get(), scratch());
  return made;
}

Number power_of_two(int exponent) {
  Number made = number();
  BN_set_bit(made.get(), exponent);
  return made;
}

// An odd number of exactly this many bits.
Number odd_number(TestRandom& random, int bits) {
  Number made = below(random, power_of_two(bits));
  BN_set_bit(made.get(), bits - 1);
  BN_set_bit(made.get(), 0);
  return made;
}

Number prime(int bits) {
  Number made = number();
  EXPECT_EQ(BN_generate_prime_ex(made.get(), bits, 0, nullptr, nullptr, nullptr), 1);
  return made;
}

Number product(const Number& a, const Number& b, const Number& m) {
  Number made = number();
  BN_mod_mul(made.get(), a.get(), b.get(), m.get(), scratch());
  return made;
}

Number power(const Number& a, const Number& exponent, const Number& m) {
  Number made = number();
  BN_mod_exp(made.get(), a.get(), exponent.get(), m.get(), scratch());
  return made;
}

Number inverse(const Number& a, const Number& m) {
  return Number(BN_mod_inverse(nullptr, a.get(), m.get(), scratch()));
}

// R^2 mod m, for the R that belongs to this many limbs.
Number r_squared(const Number& m, int limbs) {
  Number made = power_of_two(64 * limbs);
  BN_mod(made.get(), made.get(), m.get(), scratch());
  return made;
}

std::uint32_t negative_inverse(std::uint32_t odd) {
  std::uint32_t made = 1;
  while (odd * made != 1)
    made *= 2 - odd * made;
  return 0 - made;
}

LimbColumn column(Words& words, std::uint32_t stride = 1) {
  return {words.data(), stride};
}

// Moduli that fill their limbs and such that do not, among them the longest; factors at the ends of
// their range.
template <int N>
void check_multiplication(TestRandom& random) {
  for (int round = 0; round < 60; ++round) {
    Number m = odd_number(random, 32 * N - (round % 3 == 0 ? 0 : round % 40));
    if (round % 7 == 0) {
      m = power_of_two(32 * N);
      BN_sub_word(m.get(), 1 + 2 * static_cast<unsigned>(round % 5));
    }
    Number a = below(random, m);
    Number b = below(random, power_of_two(32 * N));
    if (round % 5 == 0) {
      BN_copy(a.get(), m.get());
      BN_sub_word(a.get(), 1);
      b = power_of_two(32 * N);
      BN_sub_word(b.get(), 1);
    }
    Limbs<N> modulus, x;
    write(m, modulus.at, N);
    write(a, x.at, N);
    // Limbs apart, as threads have them.
    Words apart(3 * N);
    const Words factor = words(b, N);
    for (std::uint32_t j = 0; j < N; ++j)
      column(apart, 3)[j] = factor[j];
    const std::uint32_t m_inverse = negative_inverse(modulus.at[0]);

    Limbs<N> result = x;
    multiply(result, column(apart, 3), modulus, m_inverse);
    const Number r = inverse(power_of_two(32 * N), m);
    ASSERT_EQ(BN_cmp(number(result.at, N).get(), product(product(a, b, m), r, m).get()), 0) << N;

    const Number word = number(random.next());
    const Words short_factor = words(word, 2);
    result = multiply_short(x, short_factor[0], short_factor[1], modulus, m_inverse);
    ASSERT_EQ(BN_cmp(number(result.at, N).get(),
                     product(product(a, word, m), inverse(power_of_two(64), m), m).get()),
              0);

    const Number c = below(random, m);
    Limbs<N> other;
    write(c, other.at, N);
    Number sum = number();
    result = x;
    add_modulo(result, other, modulus);
    BN_mod_add(sum.get(), a.get(), c.get(), m.get(), scratch());
    ASSERT_EQ(BN_cmp(number(result.at, N).get(), sum.get()), 0);
    result = x;
    subtract_modulo(result, other, modulus);
    BN_mod_sub(sum.get(), a.get(), c.get(), m.get(), scratch());
    ASSERT_EQ(BN_cmp(number(result.at, N).get(), sum.get()), 0);

    Words out(2 * N), added = words(b, N);
    Limbs<N> long_factor;
    write(b, long_factor.at, N);
    multiply_add(column(out), long_factor, column(apart, 3), column(added));
    BN_sqr(sum.get(), b.get(), scratch());
    BN_add(sum.get(), sum.get(), b.get());
    ASSERT_EQ(BN_cmp(number(out.data(), 2 * N).get(), sum.get()), 0);
  }
}

TEST(RsaKernelsOracle, multiply_add_and_subtract_modulo_as_openssl_does) {
  TestRandom random;
  check_multiplication<4>(random);
  check_multiplication<16>(random);
  check_multiplication<32>(random);
  check_multiplication<48>(random);
  check_multiplication<64>(random);
}

// A private operation by its two halves: from a number below p q to the number of which it is a
// power.
template <int N>
void check_private(TestRandom& random, int p_bits, int q_bits) {
  constexpr int window = 4;
  const Number primes[] = {prime(p_bits), prime(q_bits)};
  Number n = number();
  BN_mul(n.get(), primes[0].get(), primes[1].get(), scratch());
  for (int round = 0; round < 4; ++round) {
    Number x = below(random, n);
    if (round == 1) BN_copy(x.get(), primes[1].get());
    if (round == 2) BN_zero(x.get());
    if (round == 3) BN_sub(x.get(), n.get(), number(1).get());
    Words residues[2];
    Number powers[2];
    for (int half = 0; half < 2; ++half) {
      const Number& p = primes[half];
      const Number exponent = below(random, p);
      powers[half] = power(x, exponent, p);
      Limbs<N> modulus, a;
      write(p, modulus.at, N);
      Words in = words(x, 2 * N), square = words(r_squared(p, N), N), digits = words(exponent, N);
      Words work(2 * N), table((N << window) * 3);
      raise<N, window>(a, column(in), square.data(), digits.data(),
                       static_cast<std::uint32_t>(std::max(p_bits, q_bits)), column(work, 2),
                       column(table, 3), modulus, negative_inverse(modulus.at[0]));
      ASSERT_EQ(BN_cmp(number(a.at, N).get(), powers[half].get()), 0) << N << " " << round;
      residues[half].assign(a.at, a.at + N);
    }
    Limbs<N> p;
    write(primes[0], p.at, N);
    Words out(2 * N), work(N), q = words(primes[1], N);
    Words q_inverse = words(inverse(primes[1], primes[0]), N);
    Words square = words(r_squared(primes[0], N), N);
    recombine<N>(column(out), column(residues[0]), column(residues[1]), p,
                 negative_inverse(p.at[0]), square.data(), q.data(), q_inverse.data(),
                 column(work));
    const Number whole = number(out.data(), 2 * N);
    ASSERT_LT(BN_cmp(whole.get(), n.get()), 0);
    for (int half = 0; half < 2; ++half) {
      Number rest = number();
      BN_mod(rest.get(), whole.get(), primes[half].get(), scratch());
      ASSERT_EQ(BN_cmp(rest.get(), powers[half].get()), 0);
    }
  }
}

TEST(RsaKernelsOracle, raise_halves_and_put_them_together) {
  TestRandom random;
  check_private<16>(random, 512, 512);
  check_private<16>(random, 500, 512);
  check_private<16>(random, 512, 300);
  check_private<32>(random, 1024, 1024);
  check_private<48>(random, 1026, 1025);
}

TEST(RsaKernels, take_digits_from_everywhere_in_an_exponent) {
  const std::uint32_t exponent[] = {0x89abcdef, 0x01234567, 0xffffffff};
  EXPECT_EQ((exponent_digit<3, 4>(exponent, 0)), 0xfu);
  EXPECT_EQ((exponent_digit<3, 4>(exponent, 28)), 0x8u);
  EXPECT_EQ((exponent_digit<3, 5>(exponent, 30)), 0b11110u);
  EXPECT_EQ((exponent_digit<3, 5>(exponent, 95)), 1u) << "zeros above";
  EXPECT_EQ((exponent_digit<3, 4>(exponent, 96)), 0u);
}

// Exchanges words between two threads, as two lanes of a warp do by shuffles.
class Meeting {
 public:
  std::uint32_t exchange(bool is_low, std::uint32_t word, int of) {
    words_[is_low ? 0 : 1] = word;
    both_.arrive_and_wait();
    const std::uint32_t seen = words_[of];
    both_.arrive_and_wait();
    return seen;
  }
  void meet() { both_.arrive_and_wait(); }

 private:
  std::barrier<> both_{2};
  std::array<std::uint32_t, 2> words_ = {};
};

struct ThreadLane {
  Meeting* meeting;
  bool low;
  bool is_low() const { return low; }
  std::uint32_t from_low(std::uint32_t word) const { return meeting->exchange(low, word, 0); }
  std::uint32_t from_high(std::uint32_t word) const { return meeting->exchange(low, word, 1); }
  void meet() const { meeting->meet(); }
};

template <int N>
void check_public(TestRandom& random, int bits, std::uint64_t exponent) {
  for (int round = 0; round < 3; ++round) {
    Number m = odd_number(random, bits);
    if (round == 1) {
      m = power_of_two(bits);
      BN_sub_word(m.get(), 1);
    }
    Number x = below(random, m);
    if (round == 1) BN_sub(x.get(), m.get(), number(1).get());
    Words modulus = words(m, 2 * N), square = words(r_squared(m, 2 * N), 2 * N);
    Words in = words(x, 2 * N), work(2 * N), base(2 * N), out(2 * N);
    Meeting meeting;
    const auto run_lane = [&](bool low) {
      const int own = low ? 0 : N;
      Limbs<N> half, a;
      std::copy_n(modulus.begin() + own, N, half.at);
      raise_public<N>(a, column(in), square.data(), exponent, column(work), column(base), half,
                      negative_inverse(modulus[0]), ThreadLane{&meeting, low});
      std::copy_n(a.at, N, out.begin() + own);
    };
    std::thread high([&] { run_lane(false); });
    run_lane(true);
    high.join();
    ASSERT_EQ(BN_cmp(number(out.data(), 2 * N).get(), power(x, number(exponent), m).get()), 0)
        << N << " " << exponent << " " << round;
  }
}

TEST(RsaKernelsOracle, raise_to_public_exponents_by_two_lanes) {
  TestRandom random;
  for (const std::uint64_t exponent : {3ull, 5ull, 17ull, 65537ull, 0x8000000000000001ull})
    check_public<4>(random, 256, exponent);
  check_public<16>(random, 1000, 7);
  check_public<32>(random, 2048, 3);
  check_public<48>(random, 2049, 3);
}

TEST(RsaKernels, turn_bytes_to_limbs_and_back_at_every_length) {
  TestRandom random;
  for (std::uint32_t size = 1; size <= 13; ++size) {
    const Bytes bytes = random.bytes(size);
    Bytes back(size);
    Number whole(BN_bin2bn(bytes.data(), static_cast<int>(size), nullptr));
    const Words expected = words(whole, 5);
    for (std::uint32_t i = 0; i < 5; ++i) {
      EXPECT_EQ(load_limb(bytes.data(), size, i), expected[i]);
      store_limb(back.data(), size, i, expected[i]);
    }
    EXPECT_EQ(back, bytes);
  }
}

// RFC 8439, 2.3.2.
TEST(RsaKernels, draw_from_chacha20) {
  ChaChaKey key;
  for (std::uint32_t i = 0; i < 8; ++i)
    key.words[i] = (4 * i) | (4 * i + 1) << 8 | (4 * i + 2) << 16 | (4 * i + 3) << 24;
  const ChaChaBlock block = chacha20_block(key, 1, 0x09000000, 0x4a000000, 0);
  const std::uint32_t expected[16] = {0xe4e7f110, 0x15593bd1, 0x1fdd0f50, 0xc47120a3,
                                      0xc7f4d1c7, 0x0368c033, 0x9aaa2204, 0x4e6cd4c3,
                                      0x466482d2, 0x09aa9f07, 0x05d7c214, 0xa2028bd9,
                                      0xd19c12b5, 0xb94e16de, 0xe883d0cb, 0x4e3c50a2};
  for (int i = 0; i < 16; ++i)
    EXPECT_EQ(block.words[i], expected[i]) << i;
}

constexpr int start_limbs = 16;

std::vector<SmallPrime> small_primes() {
  std::vector<SmallPrime> primes;
  for (std::uint32_t n = 3; n < 2000; n += 2) {
    const Number prime = number(n);
    if (BN_check_prime(prime.get(), scratch(), nullptr) != 1) continue;
    const Number factor = product(power_of_two(32 * start_limbs), inverse(number(4), prime), prime);
    primes.push_back(
        {n, negative_inverse(n), n - static_cast<std::uint32_t>(BN_get_word(factor.get()))});
  }
  return primes;
}

// 487 bits: a start that ends within a limb.
TEST(PrimeKernelsOracle, sieve_and_test_as_openssl_does) {
  TestRandom random;
  const std::vector<SmallPrime> small = small_primes();
  std::size_t prime_count = 0;
  for (int round = 0; round < 10 || prime_count < 2; ++round) {
    const std::uint32_t bits = round % 2 == 0 ? 512 : 487;
    std::uint32_t start[start_limbs];
    for (std::uint32_t i = 0; i < start_limbs; ++i)
      start[i] = shape_start(static_cast<std::uint32_t>(random.next()), i, bits);
    std::uint64_t composite = 0;
    for (const SmallPrime& prime : small)
      composite |= find_multiples<start_limbs>(prime, start);
    for (std::uint32_t k = 0; k < interval_length; ++k) {
      Number candidate = number(start, start_limbs);
      BN_add_word(candidate.get(), 4 * k);
      ASSERT_EQ(BN_num_bits(candidate.get()), static_cast<int>(bits));
      ASSERT_EQ(BN_is_bit_set(candidate.get(), static_cast<int>(bits) - 2), 1);
      ASSERT_EQ(BN_mod_word(candidate.get(), 4), 3u);
      const bool divided = std::ranges::any_of(small, [&](const SmallPrime& prime) {
        return BN_mod_word(candidate.get(), prime.prime) == 0;
      });
      ASSERT_EQ((composite >> k & 1) != 0, divided) << k;
      if (divided && k > 2) continue;
      Limbs<start_limbs> n;
      write(candidate, n.at, start_limbs);
      Words work(start_limbs);
      const bool passed =
          may_be_prime<start_limbs>(n, LimbColumn{n.at, 1}, negative_inverse(n.at[0]), bits,
                                    static_cast<std::uint32_t>(random.next()),
                                    static_cast<std::uint32_t>(random.next()), column(work));
      const bool is_prime = BN_check_prime(candidate.get(), scratch(), nullptr) == 1;
      ASSERT_EQ(passed, is_prime);
      prime_count += is_prime;
    }
  }
}

}  // namespace
}  // namespace nacre::engine::cuda
