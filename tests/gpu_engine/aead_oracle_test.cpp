// SPDX-License-Identifier: Apache-2.0
// Suites against published vectors, the two implementations against each other, and the suites with
// HMAC against OpenSSL's parts put together by the format's text.
#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/provider.h>

#include <algorithm>

#include "gpu_engine/cipher/aead.h"
#include "gpu_engine/cipher/implementation.h"
#include "tests/gpu_engine/all_suites.h"
#include "tests/gpu_engine/crypto_implementations.h"
#include "tests/gpu_engine/response_file.h"

namespace nacre::engine {
namespace {

// Returns how many cases must be refused.
int check_gcm_cases(const std::string& file, std::size_t case_count) {
  const std::vector<ResponseCase> cases = read_response_file(file, "Key");
  EXPECT_EQ(cases.size(), case_count);
  int failing = 0;
  for (const ResponseCase& test : cases) {
    SCOPED_TRACE(test.fields.at("Key"));
    failing += test.must_fail;
    const Bytes raw = test["Key"];
    const CipherSuite suite = raw.size() == 32   ? CipherSuite::aes_256_gcm
                              : raw.size() == 24 ? CipherSuite::aes_192_gcm
                                                 : CipherSuite::aes_128_gcm;
    for (const CryptoImplementation implementation : crypto_implementations()) {
      const auto key = AeadKey::create(suite, raw, implementation).value();
      Bytes opened(test["CT"].size());
      const auto result = key->open(test["IV"], test["AAD"], test["CT"], test["Tag"], opened);
      EXPECT_EQ(result.has_value(), !test.must_fail);
      if (test.must_fail) continue;
      EXPECT_EQ(opened, test["PT"]);
      Bytes sealed(opened.size());
      Bytes tag(16);
      key->seal(test["IV"], test["AAD"], test["PT"], sealed, tag);
      EXPECT_EQ(sealed, test["CT"]);
      EXPECT_EQ(tag, test["Tag"]);
    }
  }
  return failing;
}

// Short ones as often as long ones, up to 128 KiB.
std::size_t random_size(TestRandom& random) {
  return random.below(std::size_t{1} << (1 + random.below(17)));
}

// Checks every implementation that this processor can run.
void expect_seals_and_opens(CipherSuite suite, ByteView raw, ByteView nonce, ByteView aad,
                            const Bytes& plain, const Bytes& sealed, const Bytes& tag) {
  for (const CryptoImplementation implementation : crypto_implementations()) {
    const auto key = AeadKey::create(suite, raw, implementation).value();
    Bytes our_sealed(plain.size());
    Bytes our_tag(tag.size());
    key->seal(nonce, aad, plain, our_sealed, our_tag);
    ASSERT_TRUE(our_sealed == sealed);
    ASSERT_EQ(our_tag, tag);
    Bytes opened(plain.size());
    ASSERT_TRUE(key->open(nonce, aad, sealed, tag, opened).has_value());
    ASSERT_TRUE(opened == plain);
  }
}

TEST(AeadOracle, agrees_with_the_published_gcm_vectors) {
  EXPECT_EQ(check_gcm_cases("aes_256_gcm_cavp.rsp", 14), 4);
  EXPECT_EQ(check_gcm_cases("aes_128_192_gcm_nist.rsp", 8), 0);
}

TEST(AeadOracle, ipsec_mb_and_openssl_give_the_same_bytes) {
  if (!ipsec_mb_is_available()) {
    std::puts("skipped: ipsec-mb against OpenSSL: this processor lacks AES instructions");
    GTEST_SKIP();
  }
  TestRandom random;
  for (const CipherSuite suite : all_suites()) {
    SCOPED_TRACE(to_string(suite));
    for (int round = 0; round < (is_legacy(suite) ? 50 : 200); ++round) {
      const Bytes raw = random.bytes(key_size_bytes(suite));
      const auto one = AeadKey::create(suite, raw, CryptoImplementation::ipsec_mb).value();
      const auto other = AeadKey::create(suite, raw, CryptoImplementation::openssl).value();
      const std::size_t size = round_up(random_size(random), plain_unit_bytes(suite));
      Bytes nonce = random.bytes(nonce_size_bytes);
      std::fill_n(nonce.begin(), 4, Byte{0});
      const Bytes aad = random.bytes(random.below(300));
      const Bytes plain = random.bytes(size);
      SCOPED_TRACE(testing::Message() << "size " << size << " aad " << aad.size());

      Bytes sealed(size);
      Bytes tag(tag_size_bytes(suite));
      one->seal(nonce, aad, plain, sealed, tag);
      Bytes in_place = plain;
      Bytes other_tag(tag.size());
      other->seal(nonce, aad, in_place, in_place, other_tag);
      ASSERT_TRUE(sealed == in_place);
      ASSERT_EQ(tag, other_tag);

      Bytes opened(size);
      ASSERT_TRUE(other->open(nonce, aad, sealed, tag, opened).has_value());
      ASSERT_TRUE(opened == plain);
      ASSERT_TRUE(one->open(nonce, aad, in_place, tag, in_place).has_value());
      ASSERT_TRUE(in_place == plain);

      tag[random.below(tag.size())] ^= 0x40;
      ASSERT_FALSE(one->open(nonce, aad, sealed, tag, opened).has_value());
      ASSERT_FALSE(other->open(nonce, aad, sealed, tag, opened).has_value());
    }
  }
}

// OpenSSL's own calls, not the implementation that wraps them.
TEST(AeadOracle, openssl_gives_the_same_gcm_at_random_lengths) {
  TestRandom random;
  for (const CipherSuite suite : all_suites()) {
    if (construction(suite) != SuiteConstruction::gcm) continue;
    SCOPED_TRACE(to_string(suite));
    EVP_CIPHER* const cipher =
        EVP_CIPHER_fetch(nullptr, std::string(to_string(suite)).c_str(), nullptr);
    ASSERT_NE(cipher, nullptr);
    EVP_CIPHER_CTX* const context = EVP_CIPHER_CTX_new();
    for (int round = 0; round < 200; ++round) {
      const Bytes raw = random.bytes(key_size_bytes(suite));
      const Bytes nonce = random.bytes(nonce_size_bytes);
      const Bytes aad = random.bytes(round % 10 == 0 ? 0 : random.below(300));
      const Bytes plain = random.bytes(round == 0 ? 0 : random_size(random));
      SCOPED_TRACE(testing::Message() << "size " << plain.size() << " aad " << aad.size());
      Bytes sealed(plain.size());
      Bytes tag(tag_size_bytes(suite));
      int size = 0;
      ASSERT_EQ(EVP_EncryptInit_ex2(context, cipher, raw.data(), nonce.data(), nullptr), 1);
      ASSERT_EQ(
          EVP_EncryptUpdate(context, nullptr, &size, aad.data(), static_cast<int>(aad.size())), 1);
      ASSERT_EQ(EVP_EncryptUpdate(context, sealed.data(), &size, plain.data(),
                                  static_cast<int>(plain.size())),
                1);
      ASSERT_EQ(static_cast<std::size_t>(size), plain.size());
      ASSERT_EQ(EVP_EncryptFinal_ex(context, sealed.data() + size, &size), 1);
      ASSERT_EQ(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, static_cast<int>(tag.size()),
                                    tag.data()),
                1);
      expect_seals_and_opens(suite, raw, nonce, aad, plain, sealed, tag);
      if (HasFatalFailure()) return;
    }
    EVP_CIPHER_CTX_free(context);
    EVP_CIPHER_free(cipher);
  }
}

Bytes encrypt_by_openssl(OSSL_LIB_CTX* library, const std::string& name, ByteView key, ByteView iv,
                         ByteView in) {
  EVP_CIPHER* const cipher = EVP_CIPHER_fetch(library, name.c_str(), nullptr);
  EVP_CIPHER_CTX* const context = EVP_CIPHER_CTX_new();
  Bytes out(in.size());
  int size = 0;
  EXPECT_EQ(EVP_EncryptInit_ex2(context, cipher, key.data(), iv.data(), nullptr), 1);
  EVP_CIPHER_CTX_set_padding(context, 0);
  EXPECT_EQ(EVP_EncryptUpdate(context, out.data(), &size, in.data(), static_cast<int>(in.size())),
            1);
  EVP_CIPHER_CTX_free(context);
  EVP_CIPHER_free(cipher);
  return out;
}

// docs/FORMAT.md's "Cipher suites", step by step with OpenSSL's calls.
TEST(AeadOracle, hmac_suites_follow_the_format_to_the_byte) {
  OSSL_LIB_CTX* const library = OSSL_LIB_CTX_new();
  OSSL_PROVIDER* const legacy = OSSL_PROVIDER_load(library, "legacy");
  OSSL_PROVIDER* const standard = OSSL_PROVIDER_load(library, "default");
  ASSERT_NE(legacy, nullptr);
  TestRandom random;
  for (const CipherSuite suite : all_suites()) {
    if (construction(suite) == SuiteConstruction::gcm) continue;
    SCOPED_TRACE(to_string(suite));
    const std::string name(to_string(suite));
    const bool chained = name.ends_with("cbc");
    const std::size_t block = name.starts_with("aes") ? 16 : 8;
    const std::size_t cipher_key_size = (key_size_bytes(suite) - 32) / (chained ? 2 : 1);
    for (int round = 0; round < 60; ++round) {
      const std::size_t size =
          round == 0 ? 0 : round_up(random_size(random), plain_unit_bytes(suite));
      SCOPED_TRACE(size);
      const Bytes raw = random.bytes(key_size_bytes(suite));
      const Bytes aad = random.bytes(round == 1 ? 0 : random.below(300));
      const Bytes plain = random.bytes(size);
      Bytes nonce(4);
      const Bytes counter = random.bytes(8);
      nonce.insert(nonce.end(), counter.begin(), counter.end());

      Bytes iv = block == 8 ? counter : nonce;
      iv.resize(block);
      if (chained)
        iv = encrypt_by_openssl(library, name.substr(0, name.size() - 3) + "ecb",
                                ByteView(raw).subspan(cipher_key_size, cipher_key_size), {}, iv);
      const Bytes sealed = encrypt_by_openssl(library, name, raw, iv, plain);
      Bytes authenticated(16);
      store_le(authenticated.data(), std::uint64_t{aad.size()});
      store_le(authenticated.data() + 8, std::uint64_t{sealed.size()});
      for (const Bytes& part : {aad, iv, sealed})
        authenticated.insert(authenticated.end(), part.begin(), part.end());
      Bytes tag(32);
      HMAC(EVP_sha256(), raw.data() + raw.size() - 32, 32, authenticated.data(),
           authenticated.size(), tag.data(), nullptr);

      expect_seals_and_opens(suite, raw, nonce, aad, plain, sealed, tag);
    }
  }
  OSSL_PROVIDER_unload(legacy);
  OSSL_PROVIDER_unload(standard);
  OSSL_LIB_CTX_free(library);
}

}  // namespace
}  // namespace nacre::engine
