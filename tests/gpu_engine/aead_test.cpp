// SPDX-License-Identifier: Apache-2.0
// Authenticated encryption keeps its contract.
#include "gpu_engine/cipher/aead.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <thread>

#include "gpu_engine/cipher/implementation.h"
#include "tests/gpu_engine/all_suites.h"
#include "tests/gpu_engine/test_data.h"
#include "tests/support/error_of.h"

namespace nacre::engine {
namespace {

struct Choice {
  CipherSuite suite;
  CryptoImplementation implementation;
};

std::vector<Choice> all_choices() {
  std::vector<Choice> all;
  for (const CipherSuite suite : all_suites()) {
    for (const CryptoImplementation implementation :
         {CryptoImplementation::ipsec_mb, CryptoImplementation::openssl})
      all.push_back({suite, implementation});
  }
  return all;
}

class Aead : public testing::TestWithParam<Choice> {
 protected:
  void SetUp() override {
    if (GetParam().implementation == CryptoImplementation::ipsec_mb && !ipsec_mb_is_available()) {
      std::puts("skipped: AEAD by ipsec-mb: this processor lacks AES instructions");
      GTEST_SKIP();
    }
  }
  CipherSuite suite() const { return GetParam().suite; }
  std::size_t tag_size() const { return tag_size_bytes(suite()); }
  // The size, or the next one that the suite takes.
  std::size_t valid(std::size_t size) const { return round_up(size, plain_unit_bytes(suite())); }
  std::shared_ptr<const AeadKey> random_key(TestRandom& random) const {
    return AeadKey::create(suite(), random.bytes(key_size_bytes(suite())),
                           GetParam().implementation)
        .value();
  }
  Bytes random_nonce(TestRandom& random) const {
    Bytes nonce = random.bytes(nonce_size_bytes);
    if (!is_valid_nonce(suite(), nonce)) std::fill_n(nonce.begin(), 4, Byte{0});
    return nonce;
  }
};

INSTANTIATE_TEST_SUITE_P(Choices, Aead, testing::ValuesIn(all_choices()), [](const auto& test) {
  return test_name(test.param.suite) +
         (test.param.implementation == CryptoImplementation::openssl ? "_openssl" : "_ipsec_mb");
});

TEST_P(Aead, opens_what_it_sealed) {
  TestRandom random;
  const auto key = random_key(random);
  for (const std::size_t edge : edge_sizes) {
    const std::size_t size = valid(std::min<std::size_t>(edge, 70000));
    const Bytes nonce = random_nonce(random);
    const Bytes aad = random.bytes(random.below(80));
    const Bytes plain = random.bytes(size);
    Bytes sealed(size);
    Bytes tag(tag_size());
    key->seal(nonce, aad, plain, sealed, tag);
    EXPECT_TRUE(size <= 16 || sealed != plain);
    Bytes opened(size, 0x11);
    EXPECT_TRUE(key->open(nonce, aad, sealed, tag, opened).has_value());
    EXPECT_TRUE(opened == plain);
  }
}

TEST_P(Aead, works_in_place) {
  TestRandom random;
  const auto key = random_key(random);
  for (const std::size_t edge : edge_sizes) {
    const std::size_t size = valid(std::min<std::size_t>(edge, 70000));
    const Bytes nonce = random_nonce(random);
    const Bytes plain = random.bytes(size);
    Bytes apart(size);
    Bytes tag_apart(tag_size());
    key->seal(nonce, {}, plain, apart, tag_apart);
    Bytes buffer = plain;
    Bytes tag(tag_size());
    key->seal(nonce, {}, buffer, buffer, tag);
    EXPECT_TRUE(buffer == apart);
    EXPECT_EQ(tag, tag_apart);
    EXPECT_TRUE(key->open(nonce, {}, buffer, tag, buffer).has_value());
    EXPECT_TRUE(buffer == plain);
  }
}

TEST_P(Aead, refuses_any_change_and_leaves_zeros) {
  TestRandom random;
  const auto key = random_key(random);
  const Bytes nonce = random_nonce(random);
  const Bytes aad = random.bytes(52);
  const Bytes plain = random.bytes(valid(333));
  Bytes sealed(plain.size());
  Bytes tag(tag_size());
  key->seal(nonce, aad, plain, sealed, tag);
  const auto expect_refused = [&](ByteView n, ByteView a, ByteView s, ByteView t) {
    Bytes opened(s.size(), 0x77);
    const auto result = key->open(n, a, s, t, opened);
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(error_of(result), ErrorCode::tampered);
    EXPECT_EQ(std::count(opened.begin(), opened.end(), 0),
              static_cast<std::ptrdiff_t>(opened.size()));
  };
  const auto flipped = [](Bytes bytes, std::size_t bit) {
    bytes[bit / 8] = static_cast<Byte>(bytes[bit / 8] ^ (1u << (bit % 8)));
    return bytes;
  };
  for (std::size_t bit = 0; bit < nonce.size() * 8; ++bit)
    expect_refused(flipped(nonce, bit), aad, sealed, tag);
  for (std::size_t bit = 0; bit < aad.size() * 8; ++bit)
    expect_refused(nonce, flipped(aad, bit), sealed, tag);
  for (std::size_t bit = 0; bit < sealed.size() * 8; ++bit)
    expect_refused(nonce, aad, flipped(sealed, bit), tag);
  for (std::size_t bit = 0; bit < tag.size() * 8; ++bit)
    expect_refused(nonce, aad, sealed, flipped(tag, bit));
  expect_refused(nonce, ByteView(aad).first(51), sealed, tag);
  expect_refused(nonce, aad, ByteView(sealed).first(sealed.size() - 1), tag);
  expect_refused(nonce, aad, sealed, ByteView(tag).first(tag_size() - 1));
  expect_refused(nonce, aad, ByteView(sealed).first(sealed.size() - plain_unit_bytes(suite())),
                 tag);
  expect_refused(nonce, aad, sealed, {});
}

TEST_P(Aead, one_key_serves_many_threads) {
  TestRandom random;
  const auto key = random_key(random);
  const Bytes plain = random.bytes(valid(10000));
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      Bytes nonce(nonce_size_bytes);
      Bytes sealed(plain.size());
      Bytes opened(plain.size());
      Bytes tag(tag_size());
      for (std::uint64_t i = 0; i < 30; ++i) {
        store_le(nonce.data() + 4, (i << 8) + t);
        key->seal(nonce, {}, plain, sealed, tag);
        EXPECT_TRUE(key->open(nonce, {}, sealed, tag, opened).has_value());
        EXPECT_TRUE(opened == plain);
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
}

TEST_P(Aead, refuses_keys_of_another_size) {
  const std::size_t right = key_size_bytes(suite());
  for (const std::size_t size : {std::size_t{0}, right - 1, right + 1, right / 2, 2 * right})
    EXPECT_EQ(error_of(AeadKey::create(suite(), Bytes(size), GetParam().implementation)),
              ErrorCode::invalid_argument);
}

// Each part of a key does something.
TEST_P(Aead, every_byte_of_the_key_counts) {
  TestRandom random;
  const Bytes raw = random.bytes(key_size_bytes(suite()));
  const Bytes nonce = random_nonce(random);
  const Bytes plain = random.bytes(valid(100));
  const auto run = [&](const Bytes& key_bytes) {
    Bytes sealed(plain.size());
    Bytes tag(tag_size());
    AeadKey::create(suite(), key_bytes, GetParam().implementation)
        .value()
        ->seal(nonce, {}, plain, sealed, tag);
    sealed.insert(sealed.end(), tag.begin(), tag.end());
    return sealed;
  };
  const Bytes right = run(raw);
  for (std::size_t at = 0; at < raw.size(); ++at) {
    Bytes changed = raw;
    changed[at] ^= 0x10;  // no parity bit
    EXPECT_NE(run(changed), right) << "key byte " << at;
  }
}

TEST_P(Aead, no_two_splits_of_additional_data_and_text_give_one_tag) {
  TestRandom random;
  const auto key = random_key(random);
  const Bytes nonce = random_nonce(random);
  Bytes tag(tag_size());
  Bytes sealed(valid(64));
  key->seal(nonce, Bytes(32), Bytes(sealed.size()), sealed, tag);
  const std::size_t unit = 16;
  Bytes longer_aad(32);
  longer_aad.insert(longer_aad.end(), sealed.begin(), sealed.begin() + unit);
  Bytes opened(sealed.size() - unit);
  EXPECT_FALSE(key->open(nonce, longer_aad, ByteView(sealed).subspan(unit), tag, opened));
}

TEST(AeadChoiceDeathTest, is_forced_by_the_environment) {
  // The choice is made once a process, so each is tried in a fresh one.
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto choose = [](const char* forced) {
    setenv("NACRE_CRYPTO", forced, 1);
    std::fputs(std::string(crypto_implementation_name()).c_str(), stderr);
    std::exit(0);
  };
  EXPECT_EXIT(choose("openssl"), testing::ExitedWithCode(0), "^openssl$");
  EXPECT_EXIT(choose("ipsec"), testing::ExitedWithCode(0), "^ipsec-mb$");
}

TEST(CipherSuiteRegistry, names_and_numbers_are_known_or_refused) {
  const std::vector<std::string> names = {
      "aes-256-gcm", "aes-192-gcm", "aes-128-gcm", "aes-256-ctr",  "aes-192-ctr", "aes-128-ctr",
      "aes-256-cbc", "aes-192-cbc", "aes-128-cbc", "des-ede3-cbc", "des-cbc"};
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto suite = static_cast<CipherSuite>(i + 1);
    EXPECT_EQ(to_string(suite), names[i]);
    EXPECT_EQ(suite_from_name(names[i]).value(), suite);
    EXPECT_EQ(suite_from_number(static_cast<std::uint8_t>(i + 1)).value(), suite);
  }
  for (const char* const name : {"rot13", "", "aes-256-ecb", "aes-256-ofb", "des-ctr", "unknown"})
    EXPECT_EQ(error_of(suite_from_name(name)), ErrorCode::invalid_argument) << name;
  EXPECT_EQ(error_of(suite_from_number(0)), ErrorCode::invalid_argument);
  for (unsigned number = 12; number < 256; ++number) {
    EXPECT_EQ(error_of(suite_from_number(static_cast<std::uint8_t>(number))),
              ErrorCode::invalid_argument);
    EXPECT_EQ(error_of(AeadKey::create(static_cast<CipherSuite>(number), {})),
              ErrorCode::invalid_argument);
  }
}

// The numbers of docs/FORMAT.md.
TEST(CipherSuiteRegistry, sizes_are_those_of_the_format) {
  const std::array<std::size_t, 11> key_sizes = {32, 24, 16, 64, 56, 48, 96, 80, 64, 80, 48};
  for (const CipherSuite suite : all_suites()) {
    const auto number = static_cast<std::size_t>(suite);
    EXPECT_EQ(key_size_bytes(suite), key_sizes[number - 1]) << to_string(suite);
    EXPECT_LE(key_size_bytes(suite), suite_key_size_bytes_max);
    EXPECT_EQ(tag_size_bytes(suite), number <= 3 ? 16u : 32u);
    EXPECT_EQ(plain_unit_bytes(suite), number <= 6 ? 1u : number <= 9 ? 16u : 8u);
  }
}

TEST(CipherSuiteRegistry, only_the_des_family_is_legacy_and_has_short_sessions) {
  for (const CipherSuite suite : all_suites()) {
    const bool des = suite == CipherSuite::des_cbc || suite == CipherSuite::des_ede3_cbc;
    EXPECT_EQ(is_legacy(suite), des);
    EXPECT_EQ(session_size_bytes_max(suite), des ? 1ull << 30 : UINT64_MAX);
  }
}

}  // namespace
}  // namespace nacre::engine
