// SPDX-License-Identifier: Apache-2.0
// RSA as messages of payloads, and the bare operation.
#include <gtest/gtest.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

#include "gpu_engine/engine.h"
#include "gpu_engine/publickey/rsa.h"
#include "tests/gpu_engine/response_file.h"
#include "tests/gpu_engine/test_data.h"
#include "tests/gpu_engine/test_engine.h"
#include "tests/gpu_engine/test_payload.h"
#include "tests/support/error_of.h"

namespace nacre::engine {
namespace {

RsaPrivateKey operations_test_key() {
  return RsaPrivateKey::from_pem(read_vector("rsa/test_key_pkcs8.pem")).value();
}

// The modulus, big-endian.
Bytes modulus_of(const RsaPublicKey& key) {
  const Bytes der = key.to_der();
  const Byte* at = der.data();
  EVP_PKEY* const parsed = d2i_PUBKEY(nullptr, &at, static_cast<long>(der.size()));
  BIGNUM* n = nullptr;
  EXPECT_EQ(EVP_PKEY_get_bn_param(parsed, OSSL_PKEY_PARAM_RSA_N, &n), 1);
  Bytes modulus(key.modulus_size_bytes());
  EXPECT_EQ(BN_bn2binpad(n, modulus.data(), static_cast<int>(modulus.size())),
            static_cast<int>(modulus.size()));
  BN_free(n);
  EVP_PKEY_free(parsed);
  return modulus;
}

// number^65537 mod modulus.
Bytes power_by_openssl(ByteView number, ByteView modulus) {
  BN_CTX* const context = BN_CTX_new();
  BIGNUM* const base = BN_bin2bn(number.data(), static_cast<int>(number.size()), nullptr);
  BIGNUM* const n = BN_bin2bn(modulus.data(), static_cast<int>(modulus.size()), nullptr);
  BIGNUM* const e = BN_new();
  EXPECT_EQ(BN_set_word(e, 65537), 1);
  EXPECT_EQ(BN_mod_exp(base, base, e, n, context), 1);
  Bytes result(modulus.size());
  BN_bn2binpad(base, result.data(), static_cast<int>(result.size()));
  BN_free(base);
  BN_free(n);
  BN_free(e);
  BN_CTX_free(context);
  return result;
}

Bytes random_number(TestRandom& random, std::size_t size) {
  Bytes number = random.bytes(size);
  number[0] = 0;  // below any modulus of that size
  return number;
}

TEST(RsaOracle, the_bare_operation_is_the_power_modulo_n) {
  TestRandom random;
  const RsaPrivateKey key = operations_test_key();
  const Bytes modulus = modulus_of(key.public_key());
  for (int round = 0; round < 10; ++round) {
    const Bytes number = random_number(random, modulus.size());
    const Bytes power = key.public_key().apply(number).value();
    EXPECT_EQ(power, power_by_openssl(number, modulus));
    EXPECT_TRUE(std::ranges::equal(key.apply(power).value().view(), number));
  }
}

TEST(RsaRaw, takes_numbers_below_the_modulus_only) {
  const RsaPrivateKey key = operations_test_key();
  const Bytes modulus = modulus_of(key.public_key());
  Bytes below = modulus;
  below.back() ^= 1;  // n is odd
  Bytes zero(modulus.size());
  EXPECT_EQ(key.public_key().apply(zero).value(), zero);
  EXPECT_TRUE(key.public_key().apply(below).has_value());
  EXPECT_TRUE(key.apply(below).has_value());
  Bytes above = modulus;
  above[0] = 0xff;
  for (const Bytes& bad : {modulus, above, Bytes(modulus.size(), 0xff), Bytes{},
                           Bytes(modulus.size() - 1), Bytes(modulus.size() + 1)}) {
    EXPECT_EQ(error_of(key.public_key().apply(bad)), ErrorCode::invalid_argument);
    EXPECT_EQ(error_of(key.apply(bad)), ErrorCode::invalid_argument);
  }
}

TEST(EngineRsa, batches_wrap_unwrap_and_raise_on_all_workers) {
  TestRandom random;
  const RsaPrivateKey key = operations_test_key();
  const Bytes public_der = key.public_key().to_der();
  const SecretBytes private_der = key.to_der().value();
  const std::size_t size = key.public_key().modulus_size_bytes();
  const auto engine = Engine::create({.choice = test_engine_choice(), .thread_count = 3}).value();
  TestPayload out(*engine);
  std::vector<Bytes> inputs;
  for (std::size_t i = 0; i < 12; ++i) {
    const bool oaep = i % 2 == 0;
    inputs.push_back(oaep ? random.bytes(i) : random_number(random, size));
    Message& message = out.add(Operation::rsa_public, inputs.back(), size);
    // A private key holds the public one.
    message.key_index = i % 4 < 2 ? out.get().add_rsa_public_key(public_der)
                                  : out.get().add_rsa_private_key(private_der.view());
    message.rsa_padding = oaep ? RsaPadding::oaep_sha256 : RsaPadding::none;
    if (oaep) out.set_aad(message, as_bytes("label"));
  }
  engine->run(out.get());
  TestPayload back(*engine);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    ASSERT_TRUE(out.result(i).ok) << out.result(i).detail;
    ASSERT_EQ(out.result(i).output_size, size);
    Message& message = back.add(Operation::rsa_private, out.output(i), size);
    message.key_index = back.get().add_rsa_private_key(private_der.view());
    message.rsa_padding = out.get().messages[i].rsa_padding;
    if (i % 2 == 0) back.set_aad(message, as_bytes(i == 4 ? "another label" : "label"));
  }
  engine->run(back.get());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (i == 4) {
      EXPECT_FALSE(back.result(i).ok);
      EXPECT_EQ(back.result(i).error, ErrorCode::wrong_key);
      continue;
    }
    ASSERT_TRUE(back.result(i).ok) << back.result(i).detail;
    EXPECT_TRUE(std::ranges::equal(back.output(i), inputs[i])) << i;
  }
}

TEST(EngineRsa, agrees_with_the_wycheproof_vectors_of_oaep) {
  const auto cases = read_response_file("rsa/oaep_sha256_wycheproof.rsp", "CT");
  const auto keys = read_response_file("rsa/oaep_sha256_wycheproof.rsp", "Key");
  ASSERT_EQ(cases.size(), 37u);
  const Bytes private_der = keys.at(0)["Key"];
  const auto engine = Engine::create({.choice = test_engine_choice(), .thread_count = 3}).value();
  // More than once, so that a device has batches worth having.
  constexpr std::size_t repetitions = 8;
  TestPayload payload(*engine);
  for (std::size_t i = 0; i < repetitions * cases.size(); ++i) {
    const ResponseCase& test = cases[i % cases.size()];
    Message& message = payload.add(Operation::rsa_private, test["CT"], 512);
    message.key_index = payload.get().add_rsa_private_key(private_der);
    message.rsa_padding = RsaPadding::oaep_sha256;
    payload.set_aad(message, test["Label"]);
  }
  engine->run(payload.get());
  for (std::size_t i = 0; i < repetitions * cases.size(); ++i) {
    const ResponseCase& test = cases[i % cases.size()];
    SCOPED_TRACE(test.fields.at("CT").substr(0, 32));
    ASSERT_EQ(payload.result(i).ok, !test.must_fail) << payload.result(i).detail;
    if (test.must_fail) {
      EXPECT_EQ(payload.result(i).error, ErrorCode::wrong_key);
    } else {
      EXPECT_EQ(to_hex(payload.output(i)), test.fields.at("PT"));
    }
  }
}

TEST(EngineRsa, messages_may_name_keys_that_are_too_short_for_a_recipient) {
  TestRandom random;
  const RsaPrivateKey key = RsaPrivateKey::generate(1024, rsa_message_bits_min).value();
  const Bytes public_der = key.public_key().to_der();
  const SecretBytes private_der = key.to_der().value();
  EXPECT_EQ(error_of(RsaPublicKey::from_der(public_der)), ErrorCode::invalid_argument);
  EXPECT_EQ(error_of(RsaPrivateKey::from_der(private_der.view())), ErrorCode::invalid_argument);
  EXPECT_EQ(error_of(RsaPublicKey::from_pem(key.public_key().to_pem())),
            ErrorCode::invalid_argument);
  const auto engine = Engine::create({.choice = test_engine_choice(), .thread_count = 2}).value();
  const std::size_t size = 1024 / 8;
  const Bytes number = random_number(random, size);
  const Bytes secret = random.bytes(32);
  TestPayload out(*engine, 1u << 20);
  TestPayload back(*engine, 1u << 20);
  for (const Bytes& input : {number, secret}) {
    Message& message = out.add(Operation::rsa_public, input, size);
    message.key_index = out.get().add_rsa_public_key(public_der);
    if (input.size() < size) message.rsa_padding = RsaPadding::oaep_sha256;
  }
  engine->run(out.get());
  for (std::size_t i = 0; i < 2; ++i) {
    ASSERT_TRUE(out.result(i).ok) << out.result(i).detail;
    Message& message = back.add(Operation::rsa_private, out.output(i), size);
    message.key_index = back.get().add_rsa_private_key(private_der.view());
    message.rsa_padding = out.get().messages[i].rsa_padding;
  }
  engine->run(back.get());
  EXPECT_TRUE(std::ranges::equal(back.output(0), number));
  EXPECT_TRUE(std::ranges::equal(back.output(1), secret));
  EXPECT_TRUE(
      std::ranges::equal(out.output(0), power_by_openssl(number, modulus_of(key.public_key()))));
}

TEST(EngineRsa, refuses_bad_messages_each_for_itself) {
  const RsaPrivateKey key = operations_test_key();
  const std::size_t size = key.public_key().modulus_size_bytes();
  const auto engine = Engine::create({.choice = test_engine_choice(), .thread_count = 2}).value();
  TestPayload payload(*engine, 1u << 20);
  const std::uint32_t public_key = payload.get().add_rsa_public_key(key.public_key().to_der());
  const std::uint32_t private_key = payload.get().add_rsa_private_key(key.to_der().value().view());
  const std::uint32_t damaged = payload.get().add_rsa_public_key(Bytes(50, 0x30));
  const auto add = [&](Operation operation, std::uint32_t index, std::size_t input_size,
                       std::size_t capacity) -> Message& {
    Message& message = payload.add(operation, Bytes(input_size), capacity);
    message.key_index = index;
    return message;
  };
  add(Operation::rsa_public, public_key, size, size);
  add(Operation::rsa_private, public_key, size, size);
  add(Operation::rsa_public, damaged, size, size);
  add(Operation::rsa_public, 9, size, size);
  add(Operation::rsa_public, public_key, size - 1, size);
  add(Operation::rsa_public, public_key, size, size - 1);
  add(Operation::rsa_private, private_key, size, size - 1);
  add(Operation::rsa_private, private_key, size, size).rsa_padding = RsaPadding::oaep_sha256;
  add(Operation::rsa_public, public_key, size - 65, size).rsa_padding = RsaPadding::oaep_sha256;
  add(Operation::rsa_public, public_key, size, size).rsa_padding = RsaPadding{5};
  add(Operation::rsa_generate, 0, 0, 10000).rsa_bits = 1023;
  add(Operation::rsa_generate, 0, 0, 10000).rsa_bits = 8193;
  add(Operation::rsa_generate, 0, 0, 1279).rsa_bits = 2048;
  add(Operation::rsa_private, private_key, size, size);
  engine->run(payload.get());
  const ErrorCode expected[] = {ErrorCode::stale,
                                ErrorCode::invalid_argument,
                                ErrorCode::invalid_argument,
                                ErrorCode::invalid_argument,
                                ErrorCode::invalid_argument,
                                ErrorCode::range,
                                ErrorCode::range,
                                ErrorCode::wrong_key,
                                ErrorCode::invalid_argument,
                                ErrorCode::unsupported,
                                ErrorCode::invalid_argument,
                                ErrorCode::invalid_argument,
                                ErrorCode::range,
                                ErrorCode::stale};
  for (std::size_t i = 0; i < std::size(expected); ++i) {
    const bool good = expected[i] == ErrorCode::stale;
    ASSERT_EQ(payload.result(i).ok, good) << i << ": " << payload.result(i).detail;
    if (good) continue;
    EXPECT_EQ(payload.result(i).error, expected[i]) << i << ": " << payload.result(i).detail;
    EXPECT_STRNE(payload.result(i).detail, "");
  }
}

TEST(EngineRsa, generates_keys_that_differ_and_work) {
  const auto engine = Engine::create({.choice = test_engine_choice(), .thread_count = 2}).value();
  TestPayload payload(*engine, 1u << 20);
  for (int i = 0; i < 3; ++i)
    payload.add(Operation::rsa_generate, {}, rsa_private_key_size_bound(2048)).rsa_bits = 2048;
  payload.add(Operation::rsa_generate, {}, rsa_private_key_size_bound(3072)).rsa_bits = 3072;
  payload.add(Operation::rsa_generate, {}, rsa_private_key_size_bound(1024)).rsa_bits = 1024;
  engine->run(payload.get());
  std::vector<Sha256Digest> fingerprints;
  const int bits[] = {2048, 2048, 2048, 3072, 1024};
  for (std::size_t i = 0; i < std::size(bits); ++i) {
    ASSERT_TRUE(payload.result(i).ok) << payload.result(i).detail;
    const RsaPrivateKey key =
        RsaPrivateKey::from_der(payload.output(i), rsa_message_bits_min).value();
    EXPECT_EQ(key.public_key().bits(), bits[i]);
    const Bytes wrapped = key.public_key().wrap(as_bytes("secret"), "").value();
    EXPECT_EQ(as_text(key.unwrap(wrapped, "").value().view()), "secret");
    for (const Sha256Digest& other : fingerprints)
      EXPECT_NE(other, key.public_key().fingerprint());
    fingerprints.push_back(key.public_key().fingerprint());
  }
}

}  // namespace
}  // namespace nacre::engine
