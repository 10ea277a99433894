// SPDX-License-Identifier: Apache-2.0
// Block ciphers against published vectors, and against OpenSSL's own calls with single DES from its
// legacy provider (which Nacre's OpenSSL implementation wraps in its own way).
#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/provider.h>

#include "gpu_engine/cipher/block_cipher.h"
#include "tests/gpu_engine/crypto_implementations.h"
#include "tests/gpu_engine/response_file.h"

namespace nacre::engine {
namespace {

struct Algorithm {
  BlockCipher cipher;
  CipherMode mode;
};

Algorithm find_algorithm(const std::string& name) {
  for (unsigned c = 0; c <= static_cast<unsigned>(BlockCipher::des_ede3); ++c) {
    for (unsigned m = 0; m <= static_cast<unsigned>(CipherMode::ctr); ++m) {
      const Algorithm algorithm = {static_cast<BlockCipher>(c), static_cast<CipherMode>(m)};
      if (name ==
          std::string(to_string(algorithm.cipher)) + "-" + std::string(to_string(algorithm.mode)))
        return algorithm;
    }
  }
  ADD_FAILURE() << "no cipher " << name;
  return {};
}

TEST(BlockCipherOracle, agrees_with_the_nist_vectors) {
  const auto cases = read_response_file("block_ciphers_nist.rsp", "Cipher");
  ASSERT_EQ(cases.size(), 30u);
  for (const ResponseCase& test : cases) {
    SCOPED_TRACE(test.fields.at("Cipher") + " " + test.fields.at("PT"));
    const Algorithm algorithm = find_algorithm(test.fields.at("Cipher"));
    CipherIv iv = {};
    const Bytes given_iv = test["IV"];
    std::copy(given_iv.begin(), given_iv.end(), iv.begin());
    for (const CryptoImplementation implementation : crypto_implementations()) {
      const auto key =
          CipherKey::create(algorithm.cipher, algorithm.mode, test["Key"], implementation).value();
      Bytes out(test["PT"].size());
      key->crypt(Direction::encrypt, iv, test["PT"], out);
      EXPECT_EQ(to_hex(out), test.fields.at("CT"));
      key->crypt(Direction::decrypt, iv, test["CT"], out);
      EXPECT_EQ(to_hex(out), test.fields.at("PT"));
    }
  }
}

// Every mode that OpenSSL has by itself.
TEST(BlockCipherOracle, openssl_agrees_at_random_lengths) {
  OSSL_LIB_CTX* const library = OSSL_LIB_CTX_new();
  OSSL_PROVIDER* const legacy = OSSL_PROVIDER_load(library, "legacy");
  OSSL_PROVIDER* const standard = OSSL_PROVIDER_load(library, "default");
  ASSERT_NE(legacy, nullptr);
  TestRandom random;
  for (const char* const name :
       {"aes-128-ecb", "aes-192-ecb", "aes-256-ecb", "aes-128-cbc", "aes-192-cbc", "aes-256-cbc",
        "aes-128-ofb", "aes-192-ofb", "aes-256-ofb", "aes-128-ctr", "aes-192-ctr", "aes-256-ctr",
        "des-ecb", "des-cbc", "des-ofb", "des-ede3-ecb", "des-ede3-cbc", "des-ede3-ofb"}) {
    SCOPED_TRACE(name);
    const Algorithm algorithm = find_algorithm(name);
    EVP_CIPHER* const cipher = EVP_CIPHER_fetch(library, name, nullptr);
    ASSERT_NE(cipher, nullptr);
    EVP_CIPHER_CTX* const context = EVP_CIPHER_CTX_new();
    for (int round = 0; round < 100; ++round) {
      const Bytes raw = random.bytes(key_size_bytes(algorithm.cipher));
      const auto key = CipherKey::create(algorithm.cipher, algorithm.mode, raw).value();
      std::size_t size = random.below(std::size_t{1} << (1 + random.below(17)));
      if (takes_whole_blocks(algorithm.mode))
        size = round_up(size, block_size_bytes(algorithm.cipher));
      const Bytes in = random.bytes(size);
      CipherIv iv;
      random.fill(iv);
      for (const bool encrypting : {true, false}) {
        Bytes expected(size + 16);
        int part = 0;
        ASSERT_EQ(EVP_CipherInit_ex2(context, cipher, raw.data(), iv.data(), encrypting, nullptr),
                  1);
        EVP_CIPHER_CTX_set_padding(context, 0);
        ASSERT_EQ(
            EVP_CipherUpdate(context, expected.data(), &part, in.data(), static_cast<int>(size)),
            1);
        ASSERT_EQ(static_cast<std::size_t>(part), size);
        expected.resize(size);
        Bytes out(size);
        key->crypt(encrypting ? Direction::encrypt : Direction::decrypt, iv, in, out);
        ASSERT_TRUE(out == expected) << "size " << size;
      }
    }
    EVP_CIPHER_CTX_free(context);
    EVP_CIPHER_free(cipher);
  }
  OSSL_PROVIDER_unload(legacy);
  OSSL_PROVIDER_unload(standard);
  OSSL_LIB_CTX_free(library);
}

// OpenSSL has no counter mode for 64-bit blocks, and there are no published vectors. So this test
// counts, and OpenSSL encrypts the counters.
TEST(BlockCipherOracle, des_in_counter_mode_is_openssl_on_counters) {
  OSSL_LIB_CTX* const library = OSSL_LIB_CTX_new();
  OSSL_PROVIDER* const legacy = OSSL_PROVIDER_load(library, "legacy");
  OSSL_PROVIDER* const standard = OSSL_PROVIDER_load(library, "default");
  ASSERT_NE(legacy, nullptr);
  TestRandom random;
  for (const auto& [cipher, name] :
       {std::pair{BlockCipher::des, "des-ecb"}, std::pair{BlockCipher::des_ede3, "des-ede3-ecb"}}) {
    EVP_CIPHER* const ecb = EVP_CIPHER_fetch(library, name, nullptr);
    ASSERT_NE(ecb, nullptr);
    EVP_CIPHER_CTX* const context = EVP_CIPHER_CTX_new();
    for (int round = 0; round < 50; ++round) {
      const Bytes raw = random.bytes(key_size_bytes(cipher));
      const Bytes in = random.bytes(random.below(5000));
      std::uint64_t counter = round % 2 == 0 ? random.below(1u << 30) : ~std::uint64_t{100};
      CipherIv iv = {};
      store_le(iv.data(), __builtin_bswap64(counter));
      Bytes stream(round_up(in.size(), 8));
      for (std::size_t at = 0; at < stream.size(); at += 8)
        store_le(&stream[at], __builtin_bswap64(counter++));
      ASSERT_EQ(EVP_EncryptInit_ex2(context, ecb, raw.data(), nullptr, nullptr), 1);
      EVP_CIPHER_CTX_set_padding(context, 0);
      int part = 0;
      ASSERT_EQ(EVP_EncryptUpdate(context, stream.data(), &part, stream.data(),
                                  static_cast<int>(stream.size())),
                1);
      Bytes expected(in.size());
      for (std::size_t i = 0; i < in.size(); ++i)
        expected[i] = in[i] ^ stream[i];
      for (const CryptoImplementation implementation : crypto_implementations()) {
        const auto key = CipherKey::create(cipher, CipherMode::ctr, raw, implementation).value();
        Bytes out(in.size());
        key->crypt(Direction::encrypt, iv, in, out);
        ASSERT_TRUE(out == expected) << name << ", " << in.size() << " bytes";
        key->crypt(Direction::decrypt, iv, expected, out);
        ASSERT_TRUE(out == in) << name << ", " << in.size() << " bytes";
      }
    }
    EVP_CIPHER_CTX_free(context);
    EVP_CIPHER_free(ecb);
  }
  OSSL_PROVIDER_unload(legacy);
  OSSL_PROVIDER_unload(standard);
  OSSL_LIB_CTX_free(library);
}

}  // namespace
}  // namespace nacre::engine
