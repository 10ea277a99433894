// SPDX-License-Identifier: Apache-2.0
// Recipients of a keyring of format 2 (docs/FORMAT.md): a passphrase seals the volume key itself,
// behind a value that commits to it, and kinds that this version does not know are kept.
#include <gtest/gtest.h>

#include "metadata/keys/keyring_parts.h"
#include "metadata/keys/keyring_recipients.h"
#include "metadata/keys/keyring_rotation.h"
#include "metadata/keys/passphrase_seal.h"
#include "metadata/keys/sealed_secret.h"
#include "metadata/text/text_bytes.h"
#include "tests/metadata/forge.h"
#include "tests/metadata/test_keys.h"

namespace nacre::metadata {
namespace {

using nlohmann::json;
using tests::forge;
using tests::identity;
using tests::passphrase;
using tests::public_key;
using tests::recipients;
using tests::secret;

constexpr auto gcm_suite = engine::CipherSuite::aes_256_gcm;

engine::VolumeId volume_id_2() {
  engine::VolumeId volume_id;
  volume_id.fill(0xe2);
  return volume_id;
}

NewRecipient bare_passphrase(std::string_view text, std::string label = "") {
  NewRecipient made = passphrase(text, std::move(label));
  std::get<NewPassphrase>(made).has_key_pair = false;
  return made;
}

NewKeyring make_2(const std::vector<NewRecipient>& who, EpochFormat format = EpochFormat::two) {
  return create_keyring(volume_id_2(), gcm_suite, who, format).value();
}

// "one" and "two" without key pairs, "three" with one, identity(0).
const NewKeyring& made_2() {
  static const NewKeyring made =
      make_2(recipients(bare_passphrase("one", "first"), bare_passphrase("two", "second"),
                        passphrase("three", "third"), public_key(0, "key")));
  return made;
}
std::string text_2() {
  return encode_keyring(made_2().keyring, *made_2().keys);
}

struct OpenedText {
  Keyring keyring;
  OpenedKeyring opened;
};
Result<OpenedText> open_text(const std::string& text, const VolumeSecret& with) {
  NACRE_ASSIGN(auto parsed, parse_keyring(as_bytes(text)));
  NACRE_ASSIGN(auto opened, open_keyring(parsed, with));
  return OpenedText{std::move(parsed.claims), std::move(opened)};
}
Error error_2(const std::string& text, const VolumeSecret& with) {
  const auto opened = open_text(text, with);
  return opened ? Error{ErrorCode::exists, "it opens"} : opened.error();
}
ErrorCode parse_error_2(const std::string& text) {
  const auto parsed = parse_keyring(as_bytes(text));
  return parsed ? ErrorCode::exists : parsed.error().code;
}
constexpr engine::Sha256Digest counting_superblock = {1, 2, 3};

Result<KeyringRotation> rotate_2(const Keyring& keyring, const KeyTree& keys,
                                 std::span<const RecipientSeal> seals = {},
                                 EpochFormat format = EpochFormat::two) {
  return begin_keyring_rotation(keyring, keys, counting_superblock, gcm_suite, format, seals);
}

TEST(KeyringFormat2, opens_for_every_recipient_to_the_same_keys) {
  const VolumeSecret secrets[] = {
      secret("one"), secret("two"), secret("three"),
      engine::RsaPrivateKey::from_pem(identity(0).to_pem().value()).value()};
  for (const VolumeSecret& with : secrets) {
    const auto opened = open_text(text_2(), with);
    ASSERT_TRUE(opened) << opened.error().message;
    EXPECT_EQ(opened->opened.keys->fingerprint(), made_2().keys->fingerprint());
    EXPECT_FALSE(opened->opened.access.is_unconfirmed);
    EXPECT_FALSE(opened->opened.access.completed);
    EXPECT_FALSE(opened->opened.access.follows);
  }
  EXPECT_EQ(encode_keyring(open_text(text_2(), secret("one"))->keyring, *made_2().keys), text_2());
}

TEST(KeyringFormat2, a_passphrase_needs_no_rsa) {
  const json fields = json::parse(text_2());
  for (const char* name : {"public_key", "private_key", "wrapped_volume_key", "mac"}) {
    EXPECT_FALSE(fields["recipients"][0].contains(name)) << name;
  }
  // For a recipient with a key pair, nothing is wrapped for that pair either.
  EXPECT_TRUE(fields["recipients"][2].contains("public_key"));
  EXPECT_FALSE(fields["recipients"][2].contains("wrapped_volume_key"));
}

TEST(KeyringFormat2, changing_a_passphrase_changes_everything_that_depends_on_it) {
  const auto [keyring, opened] = open_text(text_2(), secret("two")).value();
  const auto next =
      change_passphrase(keyring, opened.access, std::get<NewPassphrase>(bare_passphrase("zwei")));
  ASSERT_TRUE(next) << next.error().message;
  const std::string text = encode_keyring(*next, *made_2().keys);
  EXPECT_EQ(error_2(text, secret("two")).code, ErrorCode::wrong_key);
  EXPECT_EQ(open_text(text, secret("zwei"))->opened.access.recipient_index, 1u);
  const Recipient& before = keyring.recipients[1];
  const Recipient& after = next->recipients[1];
  EXPECT_EQ(after.label, "second");
  EXPECT_TRUE(after.public_key.empty());
  EXPECT_NE(after.fingerprint, before.fingerprint);
  EXPECT_NE(after.passphrase->salt, before.passphrase->salt);
  EXPECT_NE(after.passphrase->check, before.passphrase->check);
  // A recipient with a key pair gets another key pair.
  const auto [same, by_three] = open_text(text_2(), secret("three")).value();
  const auto other =
      change_passphrase(same, by_three.access, std::get<NewPassphrase>(bare_passphrase("drei")));
  EXPECT_FALSE(other->recipients[2].public_key.empty());
  EXPECT_NE(other->recipients[2].public_key, same.recipients[2].public_key);
}

// --- AUDIT F13: what a guesser learns.

// Every failure between a passphrase and the volume key has the same message and the same code.
TEST(KeyringFormat2, every_failure_of_a_passphrase_is_the_same_one) {
  const Error wrong = error_2(text_2(), secret("four"));
  EXPECT_EQ(wrong.code, ErrorCode::wrong_key);
  const json other = json::parse(encode_keyring(make_2(recipients(bare_passphrase("one"))).keyring,
                                                *made_2().keys))["recipients"][0];
  const std::function<void(json&)> changes[] = {
      [](json& f) { f["kdf"]["salt"] = to_base64(Bytes(32)); },
      [](json& f) { f["kdf"]["passes"] = 2; },
      [](json& f) { f["sealed_volume_key"] = to_base64(Bytes(60)); },
      [&](json& f) { f["sealed_volume_key"] = other["sealed_volume_key"]; },
      [](json& f) { f["follows"] = std::string(64, 'a'); },
      [](json& f) {
        f["check"] = std::string(64, '0');
        engine::Sha256Digest check = {};
        f["fingerprint"] = to_hex(passphrase_fingerprint(check, {}));
      },
  };
  std::size_t index = 0;
  for (const auto& change : changes) {
    const std::string text = forge(text_2(), [&](json& f) { change(f["recipients"][0]); });
    const Error error = error_2(text, secret("one"));
    EXPECT_EQ(error.code, wrong.code) << "change " << index;
    EXPECT_EQ(error.message, wrong.message) << "change " << index++;
  }
  // The same of a recipient whose private key must open it.
  const std::string unsealed = forge(text_2(), [](json& f) {
    f["recipients"][2].erase("sealed_volume_key");
    f["recipients"][2]["wrapped_volume_key"] = to_base64(Bytes(256));
  });
  const std::string garbled =
      forge(unsealed, [](json& f) { f["recipients"][2]["private_key"] = to_base64(Bytes(1200)); });
  for (const std::string& text : {unsealed, garbled}) {
    const Error error = error_2(text, secret("three"));
    EXPECT_EQ(error.code, wrong.code);
    EXPECT_EQ(error.message, wrong.message);
  }
}

// With AES-GCM an attacker can make bytes that open under the keys of many passphrases. If the
// victim's passphrase is one of them, the answer must not show it. This test makes bytes for one
// passphrase, as an attacker who guesses does, and leaves the check of another one.
TEST(KeyringFormat2, nothing_is_opened_behind_a_check_of_another_passphrase) {
  const Recipient& genuine = made_2().keyring.recipients[0];
  const auto guessed = derive_recipient_seal(
      derive_passphrase_keys(as_bytes("guess"), *genuine.passphrase).value(), volume_id_2(), {});
  Recipient trap = genuine;
  ASSERT_TRUE(seal_volume_key(trap, volume_id_2(), guessed, Bytes(32), std::nullopt));
  EXPECT_TRUE(unseal_volume_key(trap, volume_id_2(), guessed)) << "the seal opens by itself";
  trap.passphrase->check = genuine.passphrase->check;
  trap.fingerprint = genuine.fingerprint;
  const auto opened = unseal_volume_key(trap, volume_id_2(), guessed);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::wrong_key);
}

// In format 1 such bytes open to something that is no private key. An earlier version had an error
// of its own for that.
TEST(KeyringFormat1, bytes_that_open_to_no_private_key_are_a_wrong_passphrase) {
  const NewKeyring made =
      make_2(recipients(passphrase("one"), passphrase("two")), EpochFormat::one);
  const std::string text = encode_keyring(made.keyring, *made.keys);
  const Error wrong = error_2(text, secret("three"));
  const Recipient& recipient = made.keyring.recipients[0];
  const auto keys = derive_passphrase_keys(as_bytes("guess"), *recipient.passphrase).value();
  const Bytes garbage =
      seal_secret(keys.sealing(), as_bytes(private_key_aad), Bytes(1200, 7)).value();
  const std::string trap =
      forge(text, [&](json& f) { f["recipients"][0]["private_key"] = to_base64(garbage); });
  const Error error = error_2(trap, secret("guess"));
  EXPECT_EQ(error.code, wrong.code);
  EXPECT_EQ(error.message, wrong.message);
}

// --- Rotation.

TEST(KeyringFormat2, a_rotation_seals_for_its_passphrase_and_wraps_for_key_pairs) {
  auto [keyring, opened] = open_text(text_2(), secret("one")).value();
  keyring = remove_recipient(keyring, opened.access, 1).value();  // "two"
  const auto next = rotate_2(keyring, *opened.keys, std::span(&*opened.access.seal, 1));
  ASSERT_TRUE(next) << next.error().message;
  const std::string text = encode_keyring(next->keyring, *next->keys);
  const auto one = open_text(text, secret("one"));
  ASSERT_TRUE(one) << one.error().message;
  EXPECT_EQ(one->opened.keys->fingerprint(), next->keys->fingerprint());
  EXPECT_EQ(one->opened.access.follows, made_2().keys->fingerprint());
  EXPECT_FALSE(one->opened.access.is_unconfirmed);

  // The recipient of another passphrase has only what every recipient can make for it, until that
  // passphrase opens the volume for writing.
  const auto three = open_text(text, secret("three"));
  ASSERT_TRUE(three) << three.error().message;
  EXPECT_TRUE(three->opened.access.is_unconfirmed);
  EXPECT_FALSE(three->opened.access.follows);
  EXPECT_FALSE(json::parse(text)["recipients"][1].contains("sealed_volume_key"));
  const Keyring confirmed = confirm_recipient(three->keyring, three->opened.access);
  const std::string later = encode_keyring(confirmed, *next->keys);
  EXPECT_FALSE(json::parse(later)["recipients"][1].contains("wrapped_volume_key"));
  const auto again = open_text(later, secret("three"));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_FALSE(again->opened.access.is_unconfirmed);
  EXPECT_EQ(again->opened.access.follows, made_2().keys->fingerprint());
  EXPECT_TRUE(open_text(text, identity(0)));
}

TEST(KeyringFormat2, a_rotation_needs_every_passphrase_without_a_key_pair) {
  const auto [keyring, opened] = open_text(text_2(), secret("one")).value();
  const auto refused = rotate_2(keyring, *opened.keys, std::span(&*opened.access.seal, 1));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::not_permitted);
  EXPECT_NE(refused.error().message.find("second"), std::string::npos) << refused.error().message;
  EXPECT_EQ(check_can_be_rotated(keyring, std::span(&*opened.access.seal, 1)).error().message,
            refused.error().message);
  const auto by_two = open_text(text_2(), secret("two"));
  const RecipientSeal seals[] = {opened.access.seal->clone(), by_two->opened.access.seal->clone()};
  EXPECT_TRUE(check_can_be_rotated(keyring, seals));
  const auto next = rotate_2(keyring, *opened.keys, seals);
  ASSERT_TRUE(next) << next.error().message;
  const std::string text = encode_keyring(next->keyring, *next->keys);
  EXPECT_TRUE(open_text(text, secret("one")));
  EXPECT_TRUE(open_text(text, secret("two")));
}

// A removed recipient has the secret that opened the earlier keyrings, and all that they hold.
TEST(KeyringFormat2, a_seal_of_an_earlier_key_does_not_vouch_for_another_order) {
  auto [keyring, opened] = open_text(text_2(), secret("one")).value();
  keyring = remove_recipient(keyring, opened.access, 1).value();
  const auto seal = std::span(&*opened.access.seal, 1);
  const auto second = rotate_2(keyring, *opened.keys, seal).value();
  // Forged: the first key as the successor of the second one, with the seal of then.
  Keyring forged = keyring;
  forged.generation = 99;
  forged.previous_superblock = counting_superblock;
  forged.sealed_previous_volume_key =
      seal_previous_volume_key(volume_id_2(), opened.keys->volume_key().view(),
                               second.keys->volume_key().view())
          .value();
  const auto trap = open_text(encode_keyring(forged, *opened.keys), secret("one"));
  ASSERT_TRUE(trap) << trap.error().message;
  EXPECT_EQ(trap->opened.keys->previous_fingerprint(), second.keys->fingerprint());
  EXPECT_NE(trap->opened.access.follows, second.keys->fingerprint());
  // The fingerprint that the seal vouches for cannot be changed.
  forged.recipients[0].passphrase->follows = second.keys->fingerprint();
  EXPECT_EQ(error_2(encode_keyring(forged, *opened.keys), secret("one")).code,
            ErrorCode::wrong_key);
}

TEST(KeyringFormat2, a_rotation_that_names_no_superblock_is_corrupt) {
  auto [keyring, opened] = open_text(text_2(), secret("one")).value();
  keyring = remove_recipient(keyring, opened.access, 1).value();
  auto next = rotate_2(keyring, *opened.keys, std::span(&*opened.access.seal, 1)).value();
  next.keyring.previous_superblock.reset();
  EXPECT_EQ(parse_error_2(encode_keyring(next.keyring, *next.keys)), ErrorCode::corrupt);
}

// --- From format 1 to format 2.

TEST(KeyringFormat2, a_rotation_from_format_1_turns_the_passphrase_that_is_given) {
  const NewKeyring made =
      make_2(recipients(passphrase("one"), passphrase("two"), public_key(0)), EpochFormat::one);
  const auto [keyring, opened] =
      open_text(encode_keyring(made.keyring, *made.keys), secret("one")).value();
  const auto next = rotate_2(keyring, *opened.keys, std::span(&*opened.access.seal, 1));
  ASSERT_TRUE(next) << next.error().message;
  const std::string text = encode_keyring(next->keyring, *next->keys);
  const json fields = json::parse(text);
  EXPECT_TRUE(fields["recipients"][0].contains("check"));
  EXPECT_FALSE(fields["recipients"][0].contains("wrapped_volume_key"));
  EXPECT_EQ(fields["recipients"][0]["fingerprint"], to_hex(made.keyring.recipients[0].fingerprint));
  EXPECT_FALSE(fields["recipients"][1].contains("check"));
  EXPECT_EQ(open_text(text, secret("one"))->opened.access.follows, made.keys->fingerprint());

  // The other passphrase is converted when it is used for writing. Its key pair stays in use.
  const auto two = open_text(text, secret("two"));
  ASSERT_TRUE(two) << two.error().message;
  EXPECT_TRUE(two->opened.access.is_unconfirmed);
  const Keyring confirmed = confirm_recipient(two->keyring, two->opened.access);
  const std::string later = encode_keyring(confirmed, *next->keys);
  EXPECT_TRUE(json::parse(later)["recipients"][1].contains("sealed_volume_key"));
  EXPECT_FALSE(json::parse(later)["recipients"][1].contains("mac"));
  const auto again = open_text(later, secret("two"));
  ASSERT_TRUE(again) << again.error().message;
  next->keys->end_rotation();
  const auto third = rotate_2(end_keyring_rotation(again->keyring), *next->keys);
  ASSERT_TRUE(third) << third.error().message;
  const auto last = open_text(encode_keyring(third->keyring, *third->keys), secret("two"));
  EXPECT_TRUE(last) << last.error().message;
}

TEST(KeyringFormat2, stays_out_of_format_1) {
  const NewKeyring made = make_2(recipients(passphrase("one")), EpochFormat::one);
  const std::string text = encode_keyring(made.keyring, *made.keys);
  for (const char* name : {"check", "sealed_volume_key", "follows"}) {
    EXPECT_FALSE(json::parse(text)["recipients"][0].contains(name)) << name;
  }
  EXPECT_EQ(parse_error_2(
                forge(text, [](json& f) { f["recipients"][0]["check"] = std::string(64, '0'); })),
            ErrorCode::corrupt);
}

TEST(KeyringFormat2, fields_that_do_not_belong_together_are_corrupt) {
  const json pair = json::parse(text_2())["recipients"][2];
  const std::function<void(json&)> changes[] = {
      [](json& f) { f.erase("sealed_volume_key"); },
      [](json& f) { f["mac"] = std::string(64, '0'); },
      [&](json& f) { f["public_key"] = pair["public_key"]; },
      [&](json& f) { f["private_key"] = pair["private_key"]; },
      [](json& f) { f["wrapped_volume_key"] = to_base64(Bytes(256)); },
      [](json& f) { f["sealed_volume_key"] = to_base64(Bytes(59)); },
      [](json& f) { f["check"] = "00"; },
      [](json& f) { f["check"] = std::string(64, '0'); },
      [](json& f) { f["follows"] = ""; },
      [](json& f) { f["fingerprint"] = std::string(64, '0'); },
      [](json& f) { f.erase("kdf"); },
  };
  std::size_t index = 0;
  for (const auto& change : changes) {
    EXPECT_EQ(parse_error_2(forge(text_2(), [&](json& f) { change(f["recipients"][0]); })),
              ErrorCode::corrupt)
        << "change " << index++;
  }
}

// --- Kinds of recipients that a later version has.

json later_kind() {
  return {{"kind", 3},
          {"label", "hybrid"},
          {"created", "2030-01-31T23:59:59Z"},
          {"fingerprint", std::string(64, 'c')},
          {"body", to_base64(Bytes(2000, 5))}};
}
// A keyring that a holder of the volume key made, with this recipient.
std::string with_later_kind(const json& recipient) {
  json fields = json::parse(text_2());
  fields["recipients"].insert(fields["recipients"].begin(), recipient);
  const auto parsed = parse_keyring(as_bytes(tests::text_of(fields)));
  return parsed ? encode_keyring(parsed->claims, *made_2().keys) : std::string();
}

TEST(KeyringFormat2, a_kind_that_it_does_not_know_is_passed_over_and_kept) {
  const std::string text = with_later_kind(later_kind());
  ASSERT_FALSE(text.empty());
  const auto opened = open_text(text, secret("two"));
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ(opened->opened.access.recipient_index, 2u);
  const auto more = add_recipient(opened->keyring, opened->opened.access, public_key(1));
  ASSERT_TRUE(more);
  EXPECT_EQ(json::parse(encode_keyring(*more, *made_2().keys))["recipients"][0], later_kind());
  EXPECT_EQ(find_recipient(*more, "hybrid").value(), 0u);
  const auto less = remove_recipient(*more, opened->opened.access, 0);
  ASSERT_TRUE(less);
  EXPECT_FALSE(less->recipients[0].other_kind);
  // Any of its bytes is under the MAC.
  const std::string forged =
      forge(text, [](json& f) { f["recipients"][0]["body"] = to_base64(Bytes(2000, 6)); });
  EXPECT_EQ(error_2(forged, secret("two")).code, ErrorCode::tampered);
}

TEST(KeyringFormat2, a_kind_that_it_does_not_know_stops_a_rotation) {
  const auto opened = open_text(with_later_kind(later_kind()), secret("one"));
  ASSERT_TRUE(opened);
  const auto by_two = open_text(text_2(), secret("two"));
  const RecipientSeal seals[] = {opened->opened.access.seal->clone(),
                                 by_two->opened.access.seal->clone()};
  const auto refused = rotate_2(opened->keyring, *opened->opened.keys, seals);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::unsupported);
  EXPECT_NE(refused.error().message.find("hybrid"), std::string::npos);
}

TEST(KeyringFormat2, kinds_have_bounds_and_format_1_has_none) {
  const std::function<void(json&)> changes[] = {
      [](json& f) { f["kind"] = 2; },
      [](json& f) { f["kind"] = 65536; },
      [](json& f) { f["kind"] = -3; },
      [](json& f) { f["kind"] = 3.5; },
      [](json& f) { f["more"] = 1; },
      [](json& f) { f.erase("body"); },
      [](json& f) { f["body"] = to_base64(Bytes((16u << 10) + 1)); },
      [](json& f) { f["label"] = "a\nb"; },
      [](json& f) { f["fingerprint"] = "00"; },
  };
  std::size_t index = 0;
  for (const auto& change : changes) {
    json recipient = later_kind();
    change(recipient);
    EXPECT_TRUE(with_later_kind(recipient).empty()) << "change " << index++;
  }
  json empty_body = later_kind();
  empty_body["body"] = "";
  EXPECT_FALSE(with_later_kind(empty_body).empty());
  const NewKeyring made = make_2(recipients(passphrase("one")), EpochFormat::one);
  EXPECT_EQ(parse_error_2(forge(encode_keyring(made.keyring, *made.keys),
                                [](json& f) { f["recipients"].push_back(later_kind()); })),
            ErrorCode::corrupt);
}

}  // namespace
}  // namespace nacre::metadata
