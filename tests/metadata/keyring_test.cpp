// SPDX-License-Identifier: Apache-2.0
// The keyring: every recipient opens the same keys, no other secret does, and every change by an
// attacker gets the right verdict.
#include "metadata/keys/keyring.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "metadata/text/text_bytes.h"
#include "tests/metadata/forge.h"
#include "tests/metadata/test_keys.h"

namespace nacre::metadata {
namespace {

using nlohmann::json;
using tests::cheap_kdf;
using tests::forge;
using tests::identity;
using tests::passphrase;
using tests::public_key;
using tests::recipients;
using tests::secret;

constexpr auto keyring_suite = engine::CipherSuite::aes_256_gcm;

engine::VolumeId keyring_volume_id(Byte seed) {
  engine::VolumeId volume_id;
  volume_id.fill(seed);
  return volume_id;
}

struct Made {
  std::string text;
  engine::Sha256Digest fingerprint;
};

Made make(Byte seed, const std::vector<NewRecipient>& wanted) {
  const NewKeyring made = create_keyring(keyring_volume_id(seed), keyring_suite, wanted).value();
  return {encode_keyring(made.keyring, *made.keys), made.keys->fingerprint()};
}

// One volume for most tests: recipients 0 and 1 are passphrases "one" and "two", 2 is identity(0).
const Made& volume() {
  static const Made made = make(
      0xaa, recipients(passphrase("one", "first"), passphrase("two"), public_key(0, "backup")));
  return made;
}

Result<std::shared_ptr<const KeyTree>> open_keyring_text(const std::string& text,
                                                         const VolumeSecret& with) {
  NACRE_ASSIGN(const auto parsed, parse_keyring(as_bytes(text)));
  NACRE_ASSIGN(auto opened, open_keyring(parsed, with));
  return std::move(opened.keys);
}

ErrorCode keyring_open_error(const std::string& text, const VolumeSecret& with) {
  const auto opened = open_keyring_text(text, with);
  return opened ? ErrorCode::exists : opened.error().code;
}

ErrorCode keyring_parse_error(const std::string& text) {
  const auto parsed = parse_keyring(as_bytes(text));
  return parsed ? ErrorCode::exists : parsed.error().code;
}

TEST(Keyring, opens_for_every_recipient_to_the_same_keys) {
  const auto from_pem = engine::RsaPrivateKey::from_pem(identity(0).to_pem().value()).value();
  const VolumeSecret secrets[] = {secret("one"), secret("two"), from_pem};
  for (const VolumeSecret& with : secrets) {
    const auto keys = open_keyring_text(volume().text, with);
    ASSERT_TRUE(keys) << keys.error().message;
    EXPECT_EQ((*keys)->fingerprint(), volume().fingerprint);
    EXPECT_EQ((*keys)->volume_id(), keyring_volume_id(0xaa));
    EXPECT_EQ((*keys)->current_epoch().number, 1u);
    EXPECT_EQ((*keys)->current_epoch().suite, keyring_suite);
    EXPECT_EQ((*keys)->current_epoch().key.size(), 32u);
  }
  const auto first = open_keyring_text(volume().text, secret("one"));
  const auto second = open_keyring_text(volume().text, from_pem);
  EXPECT_TRUE(equal_constant_time((*first)->current_epoch().key.view(),
                                  (*second)->current_epoch().key.view()));
}

TEST(Keyring, says_who_its_recipients_are) {
  const auto parsed = parse_keyring(as_bytes(volume().text));
  ASSERT_TRUE(parsed);
  const Keyring& keyring = parsed->claims;
  EXPECT_EQ(keyring.generation, 1u);
  ASSERT_EQ(keyring.recipients.size(), 3u);
  EXPECT_EQ(keyring.recipients[0].label, "first");
  EXPECT_TRUE(keyring.recipients[0].passphrase && keyring.recipients[1].passphrase);
  EXPECT_EQ(keyring.recipients[0].passphrase->kdf.memory_kib, cheap_kdf.memory_kib);
  EXPECT_NE(keyring.recipients[0].passphrase->salt, keyring.recipients[1].passphrase->salt);
  EXPECT_FALSE(keyring.recipients[2].passphrase);
  EXPECT_EQ(keyring.recipients[2].label, "backup");
  EXPECT_EQ(keyring.recipients[2].fingerprint, identity(0).public_key().fingerprint());
  EXPECT_EQ(keyring.recipients[2].created.size(), 20u);
}

TEST(Keyring, holds_no_secret_in_the_clear) {
  const auto keys = open_keyring_text(volume().text, secret("one")).value();
  const std::string& text = volume().text;
  EXPECT_EQ(text.find(to_base64(keys->current_epoch().key.view())), std::string::npos);
  EXPECT_EQ(text.find("PRIVATE"), std::string::npos);
}

TEST(Keyring, wrong_secrets_are_wrong_keys) {
  EXPECT_EQ(keyring_open_error(volume().text, secret("three")), ErrorCode::wrong_key);
  EXPECT_EQ(keyring_open_error(volume().text, secret("")), ErrorCode::wrong_key);
  EXPECT_EQ(keyring_open_error(volume().text, secret("one ")), ErrorCode::wrong_key);
  EXPECT_EQ(keyring_open_error(volume().text, identity(1)), ErrorCode::wrong_key);
  const Made no_passphrase = make(1, recipients(public_key(0)));
  const auto opened = open_keyring_text(no_passphrase.text, secret("one"));
  EXPECT_EQ(opened.error().code, ErrorCode::wrong_key);
  EXPECT_NE(opened.error().message.find("--identity"), std::string::npos);
}

TEST(Keyring, is_not_made_without_sound_recipients) {
  const auto error_of = [](const std::vector<NewRecipient>& wanted) {
    const auto made = create_keyring(keyring_volume_id(1), keyring_suite, wanted);
    return made ? ErrorCode::exists : made.error().code;
  };
  EXPECT_EQ(error_of({}), ErrorCode::invalid_argument);
  EXPECT_EQ(error_of(recipients(passphrase(""))), ErrorCode::invalid_argument);
  EXPECT_EQ(error_of(recipients(public_key(0), public_key(0))), ErrorCode::invalid_argument);
  EXPECT_EQ(error_of(recipients(public_key(0, "a\nb"))), ErrorCode::invalid_argument);
  EXPECT_EQ(error_of(recipients(public_key(0, "\xff"))), ErrorCode::invalid_argument);
  for (const char* control : {"\x7f", "\u009b", "\u202e", "\u2066", "\u2028"})
    EXPECT_EQ(error_of(recipients(public_key(0, control))), ErrorCode::invalid_argument);
  EXPECT_EQ(error_of(recipients(public_key(0, std::string(256, 'x')))),
            ErrorCode::invalid_argument);
  NewPassphrase costly{.passphrase = secret("x"), .kdf = cheap_kdf};
  costly.kdf.memory_kib = engine::argon2_memory_kib_max + 1;
  EXPECT_EQ(error_of(recipients(NewRecipient(std::move(costly)))), ErrorCode::invalid_argument);
  EXPECT_EQ(error_of(recipients(public_key(0, "Ä\"\\"))), ErrorCode::exists);
}

TEST(Keyring, is_corrupt_after_any_change_of_a_byte_and_when_cut_off) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  const std::string& text = volume().text;
  // Without NACRE_LONG one byte in five, other ones in each run.
  const std::size_t step = std::getenv("NACRE_LONG") != nullptr ? 1 : 5;
  for (std::size_t at = random() % step; at < text.size(); at += step) {
    std::string changed = text;
    changed[at] = static_cast<char>(changed[at] ^ (1 << at % 8));
    ASSERT_EQ(keyring_parse_error(changed), ErrorCode::corrupt) << at;
    changed[at] = static_cast<char>(text[at] + 1 + static_cast<char>(random() % 255));
    ASSERT_EQ(keyring_parse_error(changed), ErrorCode::corrupt) << at;
    ASSERT_EQ(keyring_parse_error(text.substr(0, at)), ErrorCode::corrupt) << at;
  }
}

TEST(Keyring, is_tampered_with_after_any_forged_field) {
  const std::function<void(json&)> changes[] = {
      [](json& f) { f["generation"] = 2; },
      [](json& f) { f["epochs"][0]["number"] = 2; },
      [](json& f) { f["epochs"][0]["wrapped_key"] = to_base64(Bytes(60)); },
      [](json& f) { f["epochs"].push_back(f["epochs"][0]), f["epochs"][1]["number"] = 2; },
      [](json& f) { f["recipients"].erase(1); },
      [](json& f) { f["recipients"].push_back(f["recipients"][2]); },
      [](json& f) { f["recipients"][1]["label"] = "x"; },
      [](json& f) { f["recipients"][2]["created"] = ""; },
      [](json& f) { f["recipients"][0]["mac"] = std::string(64, '0'); },
      [](json& f) { f["recipients"][0]["wrapped_volume_key"] = to_base64(Bytes(256)); },
      [](json& f) { f["mac"] = std::string(64, '0'); },
      [](json& f) { f["unknown"] = 1; },
      [](json& f) { f["volume_id"] = std::string(32, 'b'); },
  };
  std::size_t index = 0;
  for (const auto& change : changes) {
    EXPECT_EQ(keyring_open_error(forge(volume().text, change), secret("one")), ErrorCode::tampered)
        << "change " << index++;
  }
  // A change that makes a passphrase fail looks like a wrong passphrase. Another recipient shows
  // the difference.
  const std::string resalted = forge(
      volume().text, [](json& f) { f["recipients"][0]["kdf"]["salt"] = to_base64(Bytes(32)); });
  EXPECT_EQ(keyring_open_error(resalted, secret("one")), ErrorCode::wrong_key);
  EXPECT_EQ(keyring_open_error(resalted, secret("two")), ErrorCode::tampered);
  EXPECT_EQ(keyring_open_error(resalted, identity(0)), ErrorCode::tampered);
}

// An attacker can wrap another volume key with the public keys in a keyring, and make everything
// else fit.
TEST(Keyring, substituted_around_an_attackers_volume_key_is_tampered_with) {
  const json ours = json::parse(volume().text);
  auto attacker =
      create_keyring(keyring_volume_id(0xaa), keyring_suite, recipients(public_key(1))).value();
  Keyring forged = attacker.keyring;
  forged.recipients = parse_keyring(as_bytes(volume().text))->claims.recipients;
  // The attacker unwraps the volume key of another volume, and wraps it with our public keys.
  const auto key = identity(1)
                       .unwrap(attacker.keyring.recipients[0].wrapped_volume_key,
                               "nacre volume key" + to_hex(keyring_volume_id(0xaa)))
                       .value();
  for (Recipient& recipient : forged.recipients) {
    recipient.wrapped_volume_key =
        engine::RsaPublicKey::from_der(recipient.public_key)
            ->wrap(key.view(), "nacre volume key" + to_hex(keyring_volume_id(0xaa)))
            .value();
  }
  const std::string text = encode_keyring(forged, *attacker.keys);
  EXPECT_EQ(keyring_open_error(text, secret("one")), ErrorCode::tampered);
  EXPECT_EQ(keyring_open_error(text, secret("two")), ErrorCode::tampered);
  // With a bare RSA key nothing in the volume shows the forgery. Only the pinned fingerprint does.
  const auto opened = open_keyring_text(text, identity(0));
  ASSERT_TRUE(opened);
  EXPECT_NE((*opened)->fingerprint(), volume().fingerprint);
}

TEST(Keyring, wrapped_keys_swapped_between_volumes_are_tampered_with) {
  const Made other = make(0xbb, recipients(passphrase("one"), passphrase("x"), public_key(0)));
  const json theirs = json::parse(other.text);
  const std::string swapped = forge(volume().text, [&](json& f) {
    for (std::size_t i = 0; i < 3; ++i) {
      f["recipients"][i]["wrapped_volume_key"] = theirs["recipients"][i]["wrapped_volume_key"];
    }
  });
  EXPECT_EQ(keyring_open_error(swapped, secret("one")), ErrorCode::tampered);
  EXPECT_EQ(keyring_open_error(swapped, identity(0)), ErrorCode::tampered);
  // A whole recipient with the same passphrase.
  const std::string moved =
      forge(volume().text, [&](json& f) { f["recipients"][0] = theirs["recipients"][0]; });
  EXPECT_EQ(keyring_open_error(moved, secret("one")), ErrorCode::tampered);
  // Epoch keys.
  const std::string epochs = forge(volume().text, [&](json& f) { f["epochs"] = theirs["epochs"]; });
  EXPECT_EQ(keyring_open_error(epochs, identity(0)), ErrorCode::tampered);
}

TEST(Keyring, with_a_public_key_exchanged_for_another_is_refused) {
  const auto other = identity(1).public_key();
  const std::string text = forge(volume().text, [&](json& f) {
    f["recipients"][0]["public_key"] = to_base64(other.to_der());
    f["recipients"][0]["fingerprint"] = to_hex(other.fingerprint());
  });
  EXPECT_EQ(keyring_open_error(text, secret("one")), ErrorCode::tampered);
  EXPECT_EQ(keyring_parse_error(forge(
                volume().text,
                [&](json& f) { f["recipients"][0]["public_key"] = to_base64(other.to_der()); })),
            ErrorCode::corrupt);
}

TEST(Keyring, with_hostile_kdf_parameters_is_refused_before_they_are_used) {
  const std::pair<const char*, std::uint64_t> hostile[] = {
      {"memory_kib", engine::argon2_memory_kib_max + 1ull},
      {"memory_kib", 1ull << 32},
      {"memory_kib", ~0ull},
      {"memory_kib", engine::argon2_memory_kib_min - 1ull},
      {"memory_kib", 0},
      {"passes", 0},
      {"passes", engine::argon2_passes_max + 1ull},
      {"passes", 1ull << 32},
      {"lanes", 0},
      {"lanes", 17},
  };
  for (const auto& [name, value] : hostile) {
    const auto parsed = parse_keyring(
        as_bytes(forge(volume().text, [&](json& f) { f["recipients"][0]["kdf"][name] = value; })));
    ASSERT_FALSE(parsed) << name << value;
    EXPECT_EQ(parsed.error().code, ErrorCode::corrupt);
    EXPECT_NE(parsed.error().message.find(name), std::string::npos) << parsed.error().message;
    EXPECT_NE(parsed.error().message.find("recipient 1"), std::string::npos);
  }
  EXPECT_EQ(keyring_parse_error(forge(
                volume().text, [](json& f) { f["recipients"][0]["kdf"]["memory_kib"] = -1; })),
            ErrorCode::corrupt);
}

TEST(Keyring, with_fields_out_of_bounds_is_corrupt) {
  const std::function<void(json&)> changes[] = {
      [](json& f) { f["recipients"] = json::array(); },
      [](json& f) { f["recipients"] = json::array({5}); },
      [](json& f) { f["epochs"] = json::array(); },
      [](json& f) { f["epochs"].push_back(f["epochs"][0]); },
      [](json& f) { f["epochs"][0]["number"] = 0; },
      [](json& f) { f["epochs"][0]["number"] = 1ull << 32; },
      [](json& f) { f["epochs"][0]["wrapped_key"] = to_base64(Bytes(59)); },
      [](json& f) { f["recipients"][0]["kdf"]["salt"] = to_base64(Bytes(15)); },
      [](json& f) { f["recipients"][0]["kdf"]["salt"] = to_base64(Bytes(65)); },
      [](json& f) { f["recipients"][0]["private_key"] = to_base64(Bytes(9000)); },
      [](json& f) { f["recipients"][0]["private_key"] = "?"; },
      [](json& f) { f["recipients"][0].erase("kdf"); },
      [](json& f) { f["recipients"][2]["public_key"] = to_base64(Bytes(3000)); },
      [](json& f) { f["recipients"][2]["wrapped_volume_key"] = ""; },
      [](json& f) { f["recipients"][2]["fingerprint"] = std::string(64, '0'); },
      [](json& f) {
        f["recipients"] = json::array();
        for (int i = 0; i < 1001; ++i)
          f["recipients"].push_back(5);
      },
  };
  for (const auto& change : changes) {
    EXPECT_EQ(keyring_parse_error(forge(volume().text, change)), ErrorCode::corrupt);
  }
  EXPECT_EQ(keyring_parse_error(forge(volume().text,
                                      [](json& f) {
                                        for (int i = 0; i < 40; ++i) {
                                          f["recipients"].push_back(f["recipients"][0]);
                                        }
                                      })),
            ErrorCode::corrupt);
}

TEST(Keyring, of_a_newer_nacre_is_unsupported) {
  const std::function<void(json&)> changes[] = {
      [](json& f) { f["version"] = 2; },
      [](json& f) { f["epochs"][0]["cipher"] = "from-the-future"; },
      [](json& f) { f["recipients"][0]["kind"] = "token"; },
      [](json& f) { f["recipients"][0]["kdf"]["name"] = "scrypt"; },
  };
  for (const auto& change : changes) {
    EXPECT_EQ(keyring_parse_error(forge(volume().text, change)), ErrorCode::unsupported);
  }
}

TEST(Keyring, with_labels_that_no_version_wrote_is_corrupt) {
  for (const char* bad : {"a\nvolume: clean", "\x1b[2J", "\r", "\t", "\x7f"}) {
    for (const char* field : {"label", "created"}) {
      EXPECT_EQ(keyring_parse_error(
                    forge(volume().text, [&](json& f) { f["recipients"][1][field] = bad; })),
                ErrorCode::corrupt)
          << field;
    }
  }
  // Earlier versions took these.
  for (const char* old : {"\u009b31m", "\u202e", "Ä"}) {
    EXPECT_EQ(keyring_parse_error(
                  forge(volume().text, [&](json& f) { f["recipients"][1]["label"] = old; })),
              ErrorCode::exists);
  }
}

// Writing such an object again would take a stack as deep as it is nested.
TEST(Keyring, nested_without_end_is_corrupt) {
  constexpr std::size_t depth = 4u << 20;
  const std::string text = R"({"crc32":"00000000","mac":")" + std::string(64, '0') +
                           R"(","nested":)" + std::string(depth, '[') + std::string(depth, ']') +
                           "}";
  EXPECT_EQ(keyring_parse_error(text), ErrorCode::corrupt);
  // Brackets within text are not nesting.
  EXPECT_EQ(keyring_parse_error(
                forge(volume().text,
                      [](json& f) { f["recipients"][0]["label"] = "[[[[[[[[[[\\\"{{{{{{{{{{"; })),
            ErrorCode::exists);
}

// Each takes far more memory than its text.
TEST(Keyring, of_too_many_values_is_corrupt) {
  std::string values = "{}";
  for (int i = 0; i < 200'000; ++i)
    values += ",{}";
  const std::string text =
      R"({"crc32":"00000000","mac":")" + std::string(64, '0') + R"(","values":[)" + values + "]}";
  const auto parsed = parse_keyring(as_bytes(text));
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().code, ErrorCode::corrupt);
  EXPECT_NE(parsed.error().message.find("too many values"), std::string::npos);
}

TEST(Keyring, takes_as_many_recipients_as_it_may_have) {
  json fields = json::parse(volume().text);
  while (fields["recipients"].size() < recipient_count_max) {
    fields["recipients"].push_back(fields["recipients"][2]);
  }
  const auto parsed = parse_keyring(as_bytes(tests::text_of(fields)));
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(parsed->claims.recipients.size(), recipient_count_max);
}

}  // namespace
}  // namespace nacre::metadata
