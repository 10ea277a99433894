// SPDX-License-Identifier: Apache-2.0
// OAEP against OpenSSL's own calls (the older interface, apart from the one that Nacre uses) and
// against files made with the openssl command.
#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>

#include "gpu_engine/publickey/rsa.h"
#include "gpu_engine/publickey/rsa_state.h"
#include "tests/gpu_engine/response_file.h"
#include "tests/gpu_engine/test_data.h"
#include "tests/support/error_of.h"

namespace nacre::engine {
namespace {

constexpr std::string_view secret_text = "thirty-two bytes of a volume key";
constexpr std::string_view label = "nacre volume key";

RsaPrivateKey oracle_test_key() {
  return RsaPrivateKey::from_pem(read_vector("rsa/test_key_pkcs8.pem")).value();
}

// EVP_PKEY_encrypt() or EVP_PKEY_decrypt() with OAEP, SHA-256 and a label.
Bytes run_openssl(EVP_PKEY* key, bool encrypt, ByteView in) {
  EVP_PKEY_CTX* const context = EVP_PKEY_CTX_new(key, nullptr);
  EXPECT_EQ(encrypt ? EVP_PKEY_encrypt_init(context) : EVP_PKEY_decrypt_init(context), 1);
  EXPECT_EQ(EVP_PKEY_CTX_set_rsa_padding(context, RSA_PKCS1_OAEP_PADDING), 1);
  EXPECT_EQ(EVP_PKEY_CTX_set_rsa_oaep_md(context, EVP_sha256()), 1);
  EXPECT_EQ(EVP_PKEY_CTX_set_rsa_mgf1_md(context, EVP_sha256()), 1);
  void* const owned = OPENSSL_memdup(label.data(), label.size());
  EXPECT_EQ(EVP_PKEY_CTX_set0_rsa_oaep_label(context, owned, static_cast<int>(label.size())), 1);
  Bytes out(1024);
  std::size_t size = out.size();
  EXPECT_EQ(encrypt ? EVP_PKEY_encrypt(context, out.data(), &size, in.data(), in.size())
                    : EVP_PKEY_decrypt(context, out.data(), &size, in.data(), in.size()),
            1);
  EVP_PKEY_CTX_free(context);
  EVP_PKEY_free(key);
  out.resize(size);
  return out;
}

TEST(RsaOracle, openssl_opens_what_we_wrap) {
  const SecretBytes der = oracle_test_key().to_der().value();
  const Byte* at = der.view().data();
  EVP_PKEY* const key = d2i_AutoPrivateKey(nullptr, &at, static_cast<long>(der.size()));
  ASSERT_NE(key, nullptr);
  const Bytes wrapped = oracle_test_key().public_key().wrap(as_bytes(secret_text), label).value();
  EXPECT_EQ(as_text(run_openssl(key, false, wrapped)), secret_text);
}

TEST(RsaOracle, we_open_what_openssl_wraps) {
  const Bytes der = oracle_test_key().public_key().to_der();
  const Byte* at = der.data();
  EVP_PKEY* const key = d2i_PUBKEY(nullptr, &at, static_cast<long>(der.size()));
  ASSERT_NE(key, nullptr);
  const Bytes wrapped = run_openssl(key, true, as_bytes(secret_text));
  EXPECT_EQ(as_text(oracle_test_key().unwrap(wrapped, label).value().view()), secret_text);
}

TEST(RsaOracle, we_open_what_the_openssl_command_wrapped) {
  const std::string wrapped = read_vector("rsa/wrapped_by_openssl.bin");
  const auto opened = oracle_test_key().unwrap(as_bytes(wrapped), label);
  ASSERT_TRUE(opened.has_value());
  EXPECT_EQ(as_text(opened->view()), secret_text);
  // With SHA-1, OpenSSL's default, it is another scheme.
  const std::string with_sha1 = read_vector("rsa/wrapped_with_sha1.bin");
  EXPECT_EQ(error_of(oracle_test_key().unwrap(as_bytes(with_sha1), "")), ErrorCode::wrong_key);
}

TEST(RsaOracle, agrees_with_the_wycheproof_vectors_of_oaep) {
  const auto cases = read_response_file("rsa/oaep_sha256_wycheproof.rsp", "CT");
  const auto keys = read_response_file("rsa/oaep_sha256_wycheproof.rsp", "Key");
  ASSERT_EQ(keys.size(), 1u);
  ASSERT_EQ(cases.size(), 37u);
  const RsaPrivateKey key = RsaPrivateKey::from_der(keys[0]["Key"]).value();
  for (const ResponseCase& test : cases) {
    SCOPED_TRACE(test.fields.at("CT").substr(0, 32));
    const Bytes label_bytes = test["Label"];
    const auto opened = key.unwrap(test["CT"], as_text(label_bytes));
    if (test.must_fail) {
      EXPECT_EQ(error_of(opened), ErrorCode::wrong_key);
      continue;
    }
    ASSERT_TRUE(opened.has_value());
    EXPECT_EQ(to_hex(opened->view()), test.fields.at("PT"));
  }
}

// For keys in tokens that know nothing but the bare operation.
TEST(RsaOracle, the_padding_taken_apart_here_agrees_with_the_wycheproof_vectors_of_oaep) {
  const auto cases = read_response_file("rsa/oaep_sha256_wycheproof.rsp", "CT");
  const auto keys = read_response_file("rsa/oaep_sha256_wycheproof.rsp", "Key");
  const RsaPrivateKey key = RsaPrivateKey::from_der(keys[0]["Key"]).value();
  std::size_t opened_count = 0, refused_count = 0;
  for (const ResponseCase& test : cases) {
    SCOPED_TRACE(test.fields.at("CT").substr(0, 32));
    const auto block = key.apply(test["CT"]);
    if (!block) {
      EXPECT_TRUE(test.must_fail);
      continue;
    }
    const Bytes label_bytes = test["Label"];
    const auto opened = decode_oaep(block->view(), as_text(label_bytes));
    ++(opened ? opened_count : refused_count);
    if (test.must_fail) {
      EXPECT_EQ(error_of(opened), ErrorCode::wrong_key);
      continue;
    }
    ASSERT_TRUE(opened.has_value());
    EXPECT_EQ(to_hex(opened->view()), test.fields.at("PT"));
  }
  EXPECT_GT(opened_count, 10u);
  EXPECT_GT(refused_count, 5u);
}

}  // namespace
}  // namespace nacre::engine
