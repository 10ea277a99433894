// SPDX-License-Identifier: Apache-2.0
// RSA keys and their forms.
#include "gpu_engine/publickey/rsa.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/gpu_engine/test_data.h"
#include "tests/support/error_of.h"
#include "tests/support/source_folder.h"

namespace nacre::engine {
namespace {

constexpr std::string_view passphrase = "test passphrase";

std::string pem(const std::string& name) {
  return read_vector("rsa/" + name);
}

RsaPrivateKey test_key() {
  return RsaPrivateKey::from_pem(pem("test_key_pkcs8.pem")).value();
}

TEST(Rsa, reads_every_form_of_one_private_key) {
  const Bytes public_der = test_key().public_key().to_der();
  for (const char* name : {"test_key_pkcs8.pem", "test_key_pkcs1.pem"}) {
    const auto key = RsaPrivateKey::from_pem(pem(name));
    ASSERT_TRUE(key.has_value()) << name << ": " << key.error().message;
    EXPECT_EQ(key->public_key().to_der(), public_der);
    // A passphrase for a key that needs none is passed over.
    EXPECT_TRUE(RsaPrivateKey::from_pem(pem(name), as_bytes("unneeded")).has_value());
  }
  for (const char* name : {"test_key_pkcs8_encrypted.pem", "test_key_pkcs8_scrypt.pem",
                           "test_key_pkcs1_encrypted.pem"}) {
    const auto key = RsaPrivateKey::from_pem(pem(name), as_bytes(passphrase));
    ASSERT_TRUE(key.has_value()) << name << ": " << key.error().message;
    EXPECT_EQ(key->public_key().to_der(), public_der);
  }
}

TEST(Rsa, tells_a_wrong_passphrase_from_a_missing_one) {
  // Many, since a wrong one leaves well-formed padding once in 256 times; fewer where each is slow.
  const std::pair<const char*, int> files[] = {{"test_key_pkcs1_encrypted.pem", 1000},
                                               {"test_key_pkcs8_encrypted.pem", 300},
                                               {"test_key_pkcs8_scrypt.pem", 10}};
  for (const auto& [name, count] : files) {
    EXPECT_EQ(error_of(RsaPrivateKey::from_pem(pem(name))), ErrorCode::invalid_argument);
    for (int i = 0; i < count; ++i) {
      const auto key = RsaPrivateKey::from_pem(pem(name), as_bytes("wrong " + std::to_string(i)));
      ASSERT_FALSE(key.has_value());
      ASSERT_EQ(error_of(key), ErrorCode::wrong_key) << name << " " << key.error().message;
    }
  }
}

TEST(Rsa, names_an_encryption_that_openssl_has_retired) {
  const auto key = RsaPrivateKey::from_pem(pem("test_key_pkcs8_md5_des.pem"), as_bytes(passphrase));
  ASSERT_FALSE(key.has_value());
  EXPECT_EQ(error_of(key), ErrorCode::unsupported) << key.error().message;
}

TEST(Rsa, reads_both_forms_of_a_public_key) {
  const auto key = RsaPublicKey::from_pem(pem("test_public_spki.pem"));
  ASSERT_TRUE(key.has_value()) << key.error().message;
  EXPECT_EQ(key->bits(), 2048);
  EXPECT_EQ(key->to_der(), test_key().public_key().to_der());
  EXPECT_EQ(key->to_pem(), pem("test_public_spki.pem"));
  const auto other = RsaPublicKey::from_pem(pem("test_public_pkcs1.pem"));
  ASSERT_TRUE(other.has_value()) << other.error().message;
  EXPECT_EQ(other->to_der(), key->to_der());
  EXPECT_EQ(key->fingerprint(), sha256(key->to_der()));
  EXPECT_EQ(RsaPublicKey::from_der(key->to_der()).value().to_der(), key->to_der());
}

TEST(Rsa, refuses_keys_that_are_not_acceptable_and_says_why) {
  const auto reason = [](const std::string& name) {
    const auto key = RsaPublicKey::from_pem(pem(name));
    EXPECT_FALSE(key.has_value()) << name;
    if (key) return std::string();
    EXPECT_EQ(error_of(key), ErrorCode::invalid_argument) << name;
    return key.error().message;
  };
  EXPECT_NE(reason("refused_1024_bits.pem").find("1024"), std::string::npos);
  EXPECT_NE(reason("refused_elliptic_curve.pem").find("RSA"), std::string::npos);
  EXPECT_NE(reason("refused_rsa_pss.pem").find("RSA"), std::string::npos);
  EXPECT_NE(reason("refused_certificate.pem").find("certificate"), std::string::npos);
  EXPECT_NE(reason("test_key_pkcs8.pem").find("private"), std::string::npos);
  EXPECT_NE(reason("test_key_pkcs1.pem").find("private"), std::string::npos);
  EXPECT_EQ(error_of(RsaPrivateKey::from_pem(pem("test_public_spki.pem"))),
            ErrorCode::invalid_argument);
}

TEST(Rsa, refuses_text_that_is_no_key) {
  TestRandom random;
  const std::string good_public = pem("test_public_spki.pem");
  const std::string good_private = pem("test_key_pkcs8.pem");
  for (const std::string& text :
       {std::string(), std::string("hello"), std::string("-----BEGIN PUBLIC KEY-----\n"),
        good_public.substr(0, 200), std::string(100000, 'A'),
        std::string("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n")}) {
    EXPECT_EQ(error_of(RsaPublicKey::from_pem(text)), ErrorCode::invalid_argument);
    EXPECT_EQ(error_of(RsaPrivateKey::from_pem(text)), ErrorCode::invalid_argument);
  }
  for (int round = 0; round < 300; ++round) {
    std::string changed = round % 2 == 0 ? good_public : good_private;
    changed[random.below(changed.size())] = static_cast<char>(random.next());
    // Any answer but a crash: some changes are harmless, such as one in a private exponent.
    static_cast<void>(RsaPublicKey::from_pem(changed));
    static_cast<void>(RsaPrivateKey::from_pem(changed));
  }
}

TEST(Rsa, refuses_der_that_is_cut_or_has_a_tail) {
  Bytes der = test_key().public_key().to_der();
  for (std::size_t size = 0; size < der.size(); size += 7)
    EXPECT_FALSE(RsaPublicKey::from_der(ByteView(der).first(size)).has_value());
  der.push_back(0);
  EXPECT_FALSE(RsaPublicKey::from_der(der).has_value());
  const SecretBytes secret = test_key().to_der().value();
  EXPECT_FALSE(RsaPrivateKey::from_der(secret.view().first(secret.size() - 1)).has_value());
  EXPECT_FALSE(RsaPrivateKey::from_der({}).has_value());
}

TEST(Rsa, a_private_key_survives_der_and_pem) {
  const RsaPrivateKey key = test_key();
  const Bytes wrapped = key.public_key().wrap(as_bytes("secret"), "label").value();
  const auto by_der = RsaPrivateKey::from_der(key.to_der().value().view());
  const auto by_pem = RsaPrivateKey::from_pem(key.to_pem().value());
  ASSERT_TRUE(by_der.has_value() && by_pem.has_value());
  EXPECT_EQ(key.to_pem().value().substr(0, 27), "-----BEGIN PRIVATE KEY-----");
  for (const RsaPrivateKey* other : {&*by_der, &*by_pem})
    EXPECT_EQ(as_text(other->unwrap(wrapped, "label").value().view()), "secret");
}

TEST(Rsa, unwraps_what_it_wrapped_and_never_the_same_bytes_twice) {
  TestRandom random;
  const RsaPrivateKey key = test_key();
  const std::size_t most = 2048 / 8 - 2 * 32 - 2;
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{32}, most}) {
    const Bytes secret = random.bytes(size);
    const Bytes wrapped = key.public_key().wrap(secret, "purpose").value();
    EXPECT_EQ(wrapped.size(), 256u);
    EXPECT_NE(key.public_key().wrap(secret, "purpose").value(), wrapped);
    EXPECT_TRUE(std::ranges::equal(key.unwrap(wrapped, "purpose").value().view(), secret));
  }
  EXPECT_EQ(error_of(key.public_key().wrap(Bytes(most + 1), "")), ErrorCode::invalid_argument);
}

TEST(Rsa, gives_wrong_key_for_another_key_label_or_any_change) {
  TestRandom random;
  const RsaPrivateKey key = test_key();
  const RsaPrivateKey other = RsaPrivateKey::generate(2048).value();
  const Bytes wrapped = key.public_key().wrap(as_bytes("secret"), "label").value();
  const auto code_of = [](const RsaPrivateKey& opener, ByteView bytes, std::string_view label) {
    const auto opened = opener.unwrap(bytes, label);
    return opened ? ErrorCode::stale : opened.error().code;
  };
  EXPECT_EQ(code_of(key, wrapped, "label"), ErrorCode::stale) << "the right ones must open it";
  EXPECT_EQ(code_of(other, wrapped, "label"), ErrorCode::wrong_key);
  EXPECT_EQ(code_of(key, wrapped, "Label"), ErrorCode::wrong_key);
  EXPECT_EQ(code_of(key, wrapped, ""), ErrorCode::wrong_key);
  EXPECT_EQ(code_of(key, {}, "label"), ErrorCode::wrong_key);
  EXPECT_EQ(code_of(key, ByteView(wrapped).first(255), "label"), ErrorCode::wrong_key);
  EXPECT_EQ(code_of(key, Bytes(256, 0xff), "label"), ErrorCode::wrong_key);
  EXPECT_EQ(code_of(key, Bytes(256, 0), "label"), ErrorCode::wrong_key);
  for (int round = 0; round < 50; ++round) {
    Bytes changed = wrapped;
    const std::size_t bit = random.below(changed.size() * 8);
    changed[bit / 8] = static_cast<Byte>(changed[bit / 8] ^ (1u << (bit % 8)));
    EXPECT_EQ(code_of(key, changed, "label"), ErrorCode::wrong_key) << "bit " << bit;
  }
}

TEST(Rsa, generates_sound_keys_within_the_bounds) {
  const auto key = RsaPrivateKey::generate(rsa_bits_default);
  ASSERT_TRUE(key.has_value());
  EXPECT_EQ(key->public_key().bits(), rsa_bits_default);
  const Bytes wrapped = key->public_key().wrap(as_bytes("secret"), "").value();
  EXPECT_EQ(as_text(key->unwrap(wrapped, "").value().view()), "secret");
  EXPECT_NE(RsaPrivateKey::generate(2048).value().public_key().to_der(),
            RsaPrivateKey::generate(2048).value().public_key().to_der());
  for (const int bits : {0, -1, 1024, 2047, 8193, 1000000})
    EXPECT_EQ(error_of(RsaPrivateKey::generate(bits)), ErrorCode::invalid_argument) << bits;
}

TEST(RsaUri, is_told_from_the_name_of_a_file) {
  for (const char* name : {"pkcs11:object=x", "engine:pkcs11:x", "file:/k.pem", "a+b-1.c:x"})
    EXPECT_TRUE(is_key_uri(name)) << name;
  for (const char* name : {"key.pem", "/etc/a:b", "./a:b", "C:key", ":x", "", "Key:x"})
    EXPECT_FALSE(is_key_uri(name)) << name;
}

TEST(RsaUri, names_a_key_in_openssls_store) {
  const std::string folder = "file:" + tests::source_folder() + "/tests/vectors/rsa/";
  int asked = 0;
  const auto answer = [&](std::string_view pin) {
    return [&asked, pin]() -> Result<SecretBytes> {
      ++asked;
      return SecretBytes(as_bytes(pin));
    };
  };
  const auto plain = RsaPrivateKey::from_uri(folder + "test_key_pkcs8.pem", answer("unasked"));
  ASSERT_TRUE(plain.has_value()) << plain.error().message;
  EXPECT_EQ(asked, 0);
  const auto sealed =
      RsaPrivateKey::from_uri(folder + "test_key_pkcs8_encrypted.pem", answer("test passphrase"));
  ASSERT_TRUE(sealed.has_value()) << sealed.error().message;
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(sealed->public_key().fingerprint(), plain->public_key().fingerprint());
  const Bytes wrapped = plain->public_key().wrap(as_bytes("a secret"), "a label").value();
  EXPECT_EQ(as_text(sealed->unwrap(wrapped, "a label").value().view()), "a secret");
  EXPECT_EQ(error_of(sealed->unwrap(wrapped, "another")), ErrorCode::wrong_key);
  EXPECT_EQ(error_of(sealed->unwrap(ByteView(wrapped).first(100), "a label")),
            ErrorCode::wrong_key);

  EXPECT_EQ(
      error_of(RsaPrivateKey::from_uri(folder + "test_key_pkcs8_encrypted.pem", answer("wrong"))),
      ErrorCode::wrong_key);
  EXPECT_EQ(error_of(RsaPrivateKey::from_uri(folder + "nothing.pem", answer("x"))),
            ErrorCode::not_found);
  EXPECT_EQ(error_of(RsaPrivateKey::from_uri("engine:nonsense:key", answer("x"))),
            ErrorCode::not_found);
  // The error of asking for the PIN is the error that is returned.
  const auto no_pin = []() -> Result<SecretBytes> { return fail(ErrorCode::cancelled, "no"); };
  EXPECT_EQ(error_of(RsaPrivateKey::from_uri(folder + "test_key_pkcs8_encrypted.pem", no_pin)),
            ErrorCode::cancelled);
}

}  // namespace
}  // namespace nacre::engine
