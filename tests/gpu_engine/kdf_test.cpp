// SPDX-License-Identifier: Apache-2.0
// Keys from keys and from passphrases.
#include "gpu_engine/kdf/kdf.h"

#include <argon2.h>
#include <gtest/gtest.h>

#include <array>
#include <numeric>
#include <set>

#include "tests/gpu_engine/hash_vectors.h"
#include "tests/gpu_engine/test_data.h"
#include "tests/support/error_of.h"

namespace nacre::engine {
namespace {

Bytes counting(Byte first, std::size_t count) {
  Bytes bytes(count);
  std::iota(bytes.begin(), bytes.end(), first);
  return bytes;
}

std::string hkdf_hex(ByteView key, ByteView salt, ByteView info, std::size_t size) {
  return to_hex(hkdf_sha256(key, salt, as_text(info), size).value().view());
}

TEST(Sha256, has_the_published_values) {
  EXPECT_EQ(to_hex(sha256({})), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(to_hex(sha256(as_bytes("abc"))),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  // FIPS 180-2, appendix B: two blocks, and very many.
  EXPECT_EQ(to_hex(sha256(as_bytes("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"))),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(to_hex(sha256(Bytes(1'000'000, 'a'))),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(KdfOracle, hkdf_agrees_with_rfc_5869) {
  EXPECT_EQ(hkdf_hex(Bytes(22, 0x0b), counting(0x00, 13), counting(0xf0, 10), 42),
            "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865");
  EXPECT_EQ(hkdf_hex(counting(0x00, 80), counting(0x60, 80), counting(0xb0, 80), 82),
            "b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c59045a99cac7827271cb41"
            "c65e590e09da3275600c2f09b8367793a9aca3db71cc30c58179ec3e87c14c01d5c1f3434f1d87");
  EXPECT_EQ(hkdf_hex(Bytes(22, 0x0b), {}, {}, 42),
            "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8");
}

TEST(KdfOracle, sha256_agrees_with_the_nist_vectors) {
  for (const ResponseCase& test : sha256_vectors())
    EXPECT_EQ(to_hex(sha256(test["Msg"])), test.fields.at("MD")) << test.fields.at("Msg");
}

TEST(KdfOracle, hmac_agrees_with_rfc_4231_and_the_nist_vectors) {
  for (const ResponseCase& test : hmac_vectors()) {
    const std::string& expected = test.fields.at("Mac");
    const Bytes message = test["Msg"];
    EXPECT_EQ(to_hex(hmac_sha256(test["Key"], message)).substr(0, expected.size()), expected);
    // In parts, under a key that stays.
    const HmacSha256Key key(test["Key"]);
    const ByteView whole(message);
    const std::array parts = {whole.first(3), ByteView(), whole.subspan(3)};
    EXPECT_EQ(to_hex(key.compute(parts)).substr(0, expected.size()), expected);
  }
}

TEST(Hmac, takes_an_empty_key_and_an_empty_message) {
  EXPECT_EQ(to_hex(hmac_sha256({}, {})),
            "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad");
}

TEST(Hkdf, separates_purposes_and_salts_and_extends_its_output) {
  const Bytes key(32, 7);
  std::set<std::string> seen;
  for (const char* info : {"", "nacre write session", "nacre keyring"}) {
    for (const std::size_t salt_size : {1u, 16u})
      seen.insert(hkdf_hex(key, Bytes(salt_size, 1), as_bytes(info), 32));
  }
  EXPECT_EQ(seen.size(), 6u);
  const std::string longest = hkdf_hex(key, {}, {}, 255 * 32);
  for (const std::size_t size : {1u, 31u, 32u, 33u, 64u, 1000u})
    EXPECT_EQ(hkdf_hex(key, {}, {}, size), longest.substr(0, 2 * size));
  EXPECT_EQ(error_of(hkdf_sha256(key, {}, "", 255 * 32 + 1)), ErrorCode::invalid_argument);
  EXPECT_TRUE(hkdf_sha256(key, {}, "", 0).value().empty());
}

// The vector has a secret and associated data, which volumes do not use, and less memory than we
// allow: it judges the library.
TEST(KdfOracle, the_argon2_library_agrees_with_rfc_9106) {
  Bytes password(32, 1);
  Bytes salt(16, 2);
  Bytes secret(8, 3);
  Bytes associated(12, 4);
  Bytes tag(32);
  argon2_context context = {};
  context.out = tag.data();
  context.outlen = 32;
  context.pwd = password.data();
  context.pwdlen = 32;
  context.salt = salt.data();
  context.saltlen = 16;
  context.secret = secret.data();
  context.secretlen = 8;
  context.ad = associated.data();
  context.adlen = 12;
  context.t_cost = 3;
  context.m_cost = 32;
  context.lanes = 4;
  context.threads = 4;
  context.version = ARGON2_VERSION_13;
  ASSERT_EQ(argon2id_ctx(&context), ARGON2_OK);
  EXPECT_EQ(to_hex(tag), "0d640df58d78766c08c037a34a8b53c9d01ef0452d75b65eb52520e96b01e659");
}

// From the reference implementation's own tests.
TEST(KdfOracle, argon2id_agrees_with_the_reference_implementation) {
  const auto key = argon2id(as_bytes("password"), as_bytes("somesalt"),
                            {.memory_kib = 65536, .passes = 2, .lanes = 1}, 32);
  ASSERT_TRUE(key.has_value()) << key.error().message;
  EXPECT_EQ(to_hex(key->view()),
            "09316115d5cf24ed5a15a31a3ba326e5cf32edc24702987c02b6566f61913cf7");
}

TEST(Argon2id, refuses_parameters_that_would_eat_the_machine) {
  const Bytes salt(16);
  const Argon2Parameters good = {.memory_kib = argon2_memory_kib_min, .passes = 1, .lanes = 1};
  const auto code_of = [&](Argon2Parameters parameters, std::size_t salt_size = 16,
                           std::size_t size = 32) {
    const auto key = argon2id(as_bytes("x"), ByteView(salt).first(salt_size), parameters, size);
    return key ? ErrorCode::stale : key.error().code;
  };
  EXPECT_EQ(code_of(good), ErrorCode::stale) << "the good ones must pass";
  for (const std::uint32_t kib :
       {0u, argon2_memory_kib_min - 1, argon2_memory_kib_max + 1, 0xffffffffu})
    EXPECT_EQ(code_of({kib, 1, 1}), ErrorCode::invalid_argument) << kib;
  for (const std::uint32_t passes : {0u, argon2_passes_max + 1, 0xffffffffu})
    EXPECT_EQ(code_of({argon2_memory_kib_min, passes, 1}), ErrorCode::invalid_argument);
  for (const std::uint32_t lanes : {0u, 17u, 0xffffffffu})
    EXPECT_EQ(code_of({argon2_memory_kib_min, 1, lanes}), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of(good, 7), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of(good, 16, 3), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of(good, 16, 1025), ErrorCode::invalid_argument);
}

TEST(Argon2id, depends_on_everything_that_it_is_given) {
  const Argon2Parameters least = {.memory_kib = argon2_memory_kib_min, .passes = 1, .lanes = 1};
  std::set<std::string> seen;
  const auto add = [&](std::string_view passphrase, Byte salt, Argon2Parameters parameters) {
    seen.insert(
        to_hex(argon2id(as_bytes(passphrase), Bytes(16, salt), parameters, 32).value().view()));
  };
  add("a", 1, least);
  add("b", 1, least);
  add("", 1, least);
  add("a", 2, least);
  add("a", 1, {least.memory_kib + 8, 1, 1});
  add("a", 1, {least.memory_kib, 2, 1});
  add("a", 1, {least.memory_kib, 1, 2});
  EXPECT_EQ(seen.size(), 7u);
}

TEST(Argon2id, calibration_keeps_its_floor_and_its_bounds) {
  const Argon2Parameters least = calibrate_argon2(0);
  EXPECT_EQ(least.memory_kib, 64u << 10);
  EXPECT_EQ(least.passes, 1u);
  for (const std::uint32_t target_ms : {1u, 500u, 20000u, 4000000u}) {
    const Argon2Parameters chosen = calibrate_argon2(target_ms);
    EXPECT_GE(chosen.memory_kib, 64u << 10);
    EXPECT_LE(chosen.memory_kib, argon2_memory_kib_max);
    EXPECT_GE(chosen.passes, 1u);
    EXPECT_LE(chosen.passes, argon2_passes_max);
    EXPECT_GE(chosen.lanes, 1u);
    EXPECT_LE(chosen.lanes, 16u);
  }
  EXPECT_EQ(calibrate_argon2(4000000000u).passes, argon2_passes_max);
}

TEST(Random, fills_all_of_it_and_never_twice_the_same) {
  std::set<Bytes> seen;
  for (int i = 0; i < 100; ++i) {
    Bytes bytes(32);
    random_bytes(bytes);
    seen.insert(bytes);
  }
  EXPECT_EQ(seen.size(), 100u);
  Bytes large(1u << 20);
  random_bytes(large);
  // The chance of 16 zero bytes in a row at an end is 2^-128.
  EXPECT_NE(Bytes(large.begin(), large.begin() + 16), Bytes(16));
  EXPECT_NE(Bytes(large.end() - 16, large.end()), Bytes(16));
  random_bytes({});
}

}  // namespace
}  // namespace nacre::engine
