// SPDX-License-Identifier: Apache-2.0
// Recipients come and go. Each present recipient opens the same keys, and a removed one opens none.
// A passphrase without its MAC is reported as such.
#include "metadata/keys/keyring_recipients.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include "metadata/keys/keyring_parts.h"
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

constexpr auto suite = engine::CipherSuite::aes_256_gcm;

engine::VolumeId some_volume_id() {
  engine::VolumeId volume_id;
  volume_id.fill(0xcd);
  return volume_id;
}

// "one", "two" and identity(0).
const NewKeyring& made() {
  static const NewKeyring keyring =
      create_keyring(some_volume_id(), suite,
                     recipients(passphrase("one", "first"), passphrase("two", "second"),
                                public_key(0, "backup")))
          .value();
  return keyring;
}

struct Opened {
  Keyring keyring;
  OpenedKeyring opened;
};
Result<Opened> open(const std::string& text, const VolumeSecret& with) {
  NACRE_ASSIGN(auto parsed, parse_keyring(as_bytes(text)));
  NACRE_ASSIGN(auto opened, open_keyring(parsed, with));
  return Opened{std::move(parsed.claims), std::move(opened)};
}
std::string text_of(const Keyring& keyring) {
  return encode_keyring(keyring, *made().keys);
}
Opened open(const VolumeSecret& with) {
  return open(text_of(made().keyring), with).value();
}
ErrorCode open_error(const std::string& text, const VolumeSecret& with) {
  const auto opened = open(text, with);
  return opened ? ErrorCode::exists : opened.error().code;
}
// Does it open to the volume's keys?
bool opens(const Keyring& keyring, const VolumeSecret& with) {
  const auto opened = open(text_of(keyring), with);
  if (!opened) {
    EXPECT_EQ(opened.error().code, ErrorCode::wrong_key) << opened.error().message;
    return false;
  }
  return opened->opened.keys->fingerprint() == made().keys->fingerprint();
}

TEST(KeyringRecipients, who_opened_it_is_told) {
  EXPECT_EQ(open(secret("one")).opened.access.recipient_index, 0u);
  EXPECT_EQ(open(secret("two")).opened.access.recipient_index, 1u);
  EXPECT_EQ(open(identity(0)).opened.access.recipient_index, 2u);
  EXPECT_FALSE(open(secret("one")).opened.access.is_unconfirmed);
}

TEST(KeyringRecipients, are_added_by_whoever_can_open_it) {
  const VolumeSecret secrets[] = {secret("one"), identity(0)};
  for (const VolumeSecret& with : secrets) {
    const auto [keyring, opened] = open(with);
    const auto with_key = add_recipient(keyring, opened.access, public_key(1, "new"));
    ASSERT_TRUE(with_key) << with_key.error().message;
    EXPECT_EQ(with_key->generation, keyring.generation + 1);
    EXPECT_EQ(with_key->recipients.back().fingerprint, identity(1).public_key().fingerprint());
    const auto with_both = add_recipient(*with_key, opened.access, passphrase("three", "third"));
    ASSERT_TRUE(with_both) << with_both.error().message;
    EXPECT_EQ(with_both->generation, keyring.generation + 2);
    EXPECT_EQ(with_both->recipients.size(), 5u);
    for (const VolumeSecret& each :
         {VolumeSecret(secret("one")), VolumeSecret(secret("two")), VolumeSecret(secret("three")),
          VolumeSecret(identity(0)), VolumeSecret(identity(1))}) {
      EXPECT_TRUE(opens(*with_both, each));
    }
    EXPECT_FALSE(opens(*with_both, secret("four")));
  }
}

TEST(KeyringRecipients, are_refused_when_given_twice_or_unsound) {
  const auto [keyring, opened] = open(secret("one"));
  const auto error_of = [&](const NewRecipient& wanted) {
    const auto next = add_recipient(keyring, opened.access, wanted);
    return next ? ErrorCode::exists : next.error().code;
  };
  EXPECT_EQ(error_of(public_key(0, "other label")), ErrorCode::invalid_argument);
  EXPECT_EQ(error_of(passphrase("")), ErrorCode::invalid_argument);
  EXPECT_EQ(error_of(public_key(1, "a\nb")), ErrorCode::invalid_argument);
}

TEST(KeyringRecipients, are_no_more_than_the_limits_allow) {
  auto [keyring, opened] = open(secret("one"));
  while (keyring.recipients.size() < 2 + passphrase_count_max - 1) {
    Recipient recipient = keyring.recipients[0];
    recipient.fingerprint[0] = static_cast<Byte>(keyring.recipients.size());
    keyring.recipients.push_back(recipient);
  }
  EXPECT_EQ(add_recipient(keyring, opened.access, passphrase("x")).error().code,
            ErrorCode::invalid_argument);
  // The passphrase that is changed takes no second place.
  EXPECT_TRUE(
      change_passphrase(keyring, opened.access, std::get<NewPassphrase>(passphrase("changed"))));
  while (keyring.recipients.size() < recipient_count_max)
    keyring.recipients.push_back(keyring.recipients[2]);
  const auto refused = add_recipient(keyring, opened.access, public_key(1));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("1000 recipients, of which 32 passphrases"),
            std::string::npos);
}

TEST(KeyringRecipients, taken_away_open_it_no_more_and_the_last_one_stays) {
  const auto [keyring, opened] = open(identity(0));
  const auto without_two = remove_recipient(keyring, opened.access, 1);
  ASSERT_TRUE(without_two);
  EXPECT_EQ(without_two->generation, keyring.generation + 1);
  EXPECT_FALSE(opens(*without_two, secret("two")));
  EXPECT_TRUE(opens(*without_two, secret("one")));
  EXPECT_TRUE(opens(*without_two, identity(0)));
  const auto one_left = remove_recipient(*without_two, opened.access, 1);
  ASSERT_TRUE(one_left);
  EXPECT_FALSE(opens(*one_left, identity(0)));
  EXPECT_TRUE(opens(*one_left, secret("one")));
  const auto none_left = remove_recipient(*one_left, opened.access, 0);
  ASSERT_FALSE(none_left);
  EXPECT_EQ(none_left.error().code, ErrorCode::not_permitted);
}

TEST(KeyringRecipients, are_found_by_label_and_fingerprint) {
  const Keyring& keyring = made().keyring;
  const std::string digits = to_hex(keyring.recipients[1].fingerprint);
  EXPECT_EQ(find_recipient(keyring, "second").value(), 1u);
  EXPECT_EQ(find_recipient(keyring, digits).value(), 1u);
  EXPECT_EQ(find_recipient(keyring, digits.substr(0, fingerprint_digits_min)).value(), 1u);
  EXPECT_EQ(find_recipient(keyring, digits.substr(0, fingerprint_digits_min - 1)).error().code,
            ErrorCode::not_found);
  EXPECT_EQ(find_recipient(keyring, "Second").error().code, ErrorCode::not_found);
  Keyring twins = keyring;
  twins.recipients[0].label = "second";
  const auto ambiguous = find_recipient(twins, "second");
  EXPECT_EQ(ambiguous.error().code, ErrorCode::invalid_argument);
  EXPECT_NE(ambiguous.error().message.find(digits.substr(0, 16)), std::string::npos);
  // A label that looks like another's fingerprint picks neither.
  twins.recipients[0].label = digits.substr(0, 16);
  EXPECT_EQ(find_recipient(twins, digits.substr(0, 16)).error().code, ErrorCode::invalid_argument);
}

TEST(KeyringRecipients, a_changed_passphrase_opens_instead_of_the_old_one) {
  const auto [keyring, opened] = open(secret("two"));
  const auto next = change_passphrase(keyring, opened.access,
                                      std::get<NewPassphrase>(passphrase("zwei", "ignored")));
  ASSERT_TRUE(next) << next.error().message;
  EXPECT_EQ(next->generation, keyring.generation + 1);
  ASSERT_EQ(next->recipients.size(), 3u);
  EXPECT_EQ(next->recipients[1].label, "second");
  EXPECT_EQ(next->recipients[0].fingerprint, keyring.recipients[0].fingerprint);
  EXPECT_EQ(next->recipients[2].fingerprint, keyring.recipients[2].fingerprint);
  EXPECT_FALSE(opens(*next, secret("two")));
  EXPECT_TRUE(opens(*next, secret("zwei")));
  EXPECT_TRUE(opens(*next, secret("one")));
  EXPECT_EQ(change_passphrase(keyring, open(identity(0)).opened.access,
                              std::get<NewPassphrase>(passphrase("x")))
                .error()
                .code,
            ErrorCode::invalid_argument);
}

// The old passphrase still opens a private key in an old copy of the keyring. That key must not
// open what is wrapped for this recipient later, for example by a rotation.
TEST(KeyringRecipients, a_changed_passphrase_has_a_key_pair_of_its_own) {
  const auto [keyring, opened] = open(secret("two"));
  const auto next =
      change_passphrase(keyring, opened.access, std::get<NewPassphrase>(passphrase("zwei")));
  ASSERT_TRUE(next);
  const auto keys =
      derive_passphrase_keys(as_bytes("two"), *keyring.recipients[1].passphrase).value();
  EXPECT_NE(next->recipients[1].public_key, keyring.recipients[1].public_key);
  EXPECT_NE(next->recipients[1].passphrase->salt, keyring.recipients[1].passphrase->salt);
  // Nothing of the old wrap is left in the text.
  const std::string text = text_of(*next);
  for (const Bytes& old :
       {keyring.recipients[1].wrapped_volume_key, keyring.recipients[1].public_key,
        keyring.recipients[1].passphrase->sealed_private_key}) {
    EXPECT_EQ(text.find(to_base64(old)), std::string::npos);
  }
}

// --- A passphrase whose MAC is missing since another recipient changed the volume key.

Keyring without_mac_of_two() {
  Keyring keyring = made().keyring;
  keyring.recipients[1].passphrase->mac.reset();
  return keyring;
}

TEST(KeyringUnconfirmed, opens_and_says_which_mac_is_missing) {
  const std::string text = text_of(without_mac_of_two());
  EXPECT_FALSE(json::parse(text)["recipients"][1].contains("mac"));
  const auto with_two = open(text, secret("two"));
  ASSERT_TRUE(with_two) << with_two.error().message;
  EXPECT_TRUE(with_two->opened.access.is_unconfirmed);
  EXPECT_EQ(with_two->opened.access.completed->passphrase->mac,
            made().keyring.recipients[1].passphrase->mac);
  EXPECT_FALSE(open(text, secret("one"))->opened.access.is_unconfirmed);
  EXPECT_FALSE(open(text, identity(0))->opened.access.is_unconfirmed);
}

TEST(KeyringUnconfirmed, is_confirmed_by_any_change_that_its_passphrase_makes) {
  const std::string text = text_of(without_mac_of_two());
  const auto [keyring, opened] = open(text, secret("two")).value();
  const auto& mac = made().keyring.recipients[1].passphrase->mac;
  EXPECT_EQ(confirm_recipient(keyring, opened.access).recipients[1].passphrase->mac, mac);
  EXPECT_EQ(confirm_recipient(keyring, opened.access).generation, keyring.generation + 1);
  EXPECT_EQ(add_recipient(keyring, opened.access, public_key(1))->recipients[1].passphrase->mac,
            mac);
  EXPECT_EQ(remove_recipient(keyring, opened.access, 0)->recipients[0].passphrase->mac, mac);
  // Only the passphrase itself can make its MAC.
  const auto [same, by_one] = open(text, secret("one")).value();
  EXPECT_FALSE(confirm_recipient(same, by_one.access).recipients[1].passphrase->mac);
}

TEST(KeyringUnconfirmed, cannot_be_made_of_a_confirmed_one_without_the_volume_key) {
  const std::string stripped =
      forge(text_of(made().keyring), [](json& f) { f["recipients"][1].erase("mac"); });
  EXPECT_EQ(open_error(stripped, secret("two")), ErrorCode::tampered);
  EXPECT_EQ(open_error(stripped, identity(0)), ErrorCode::tampered);
  EXPECT_FALSE(parse_keyring(
      as_bytes(forge(text_of(made().keyring), [](json& f) { f["recipients"][1]["mac"] = ""; }))));
}

// --- What an attacker may do to a keyring (docs/SECURITY.md).

TEST(KeyringHostile, ten_thousand_recipients_are_refused_at_once) {
  json fields = json::parse(text_of(made().keyring));
  const json small = {{"kind", "rsa"}, {"label", ""}};
  while (fields["recipients"].size() < 10'000)
    fields["recipients"].push_back(small);
  auto parsed = parse_keyring(as_bytes(tests::text_of(fields)));
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().code, ErrorCode::corrupt);
  EXPECT_NE(parsed.error().message.find("10000 entries, not between 1 and 1000"), std::string::npos)
      << parsed.error().message;
  // With real recipients this keyring would have more bytes than allowed. Such a text is refused
  // unread.
  const std::string real = std::string(keyring_size_bytes_max + 1, ' ');
  parsed = parse_keyring(as_bytes(real));
  ASSERT_FALSE(parsed);
  EXPECT_NE(parsed.error().message.find("more than the 16777216 allowed"), std::string::npos);
}

// A cost within the bounds may still need more memory than there is. Then the error says so and the
// process goes on. It is no verdict about the passphrase.
TEST(KeyringHostile, a_memory_bomb_within_the_bounds_is_told_from_a_wrong_passphrase) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the address sanitizer needs more address space than this test leaves";
#endif
  const std::string text = forge(text_of(made().keyring), [](json& f) {
    f["recipients"][0]["kdf"]["memory_kib"] = engine::argon2_memory_kib_max;
  });
  EXPECT_EXIT(
      {
        rlimit limit;
        limit.rlim_cur = limit.rlim_max = 2ull << 30;
        ::setrlimit(RLIMIT_AS, &limit);
        set_kdf_limit({.work_kib = 64u << 20, .memory_kib = 8u << 20});
        const auto opened = open(text, secret("one"));
        const bool is_told = !opened && opened.error().code == ErrorCode::out_of_memory &&
                             opened.error().message.find("4096 MiB") != std::string::npos;
        // The others are tried first, being cheaper.
        ::_exit(is_told && open_error(text, secret("two")) == ErrorCode::tampered ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST(KeyringHostile, no_more_than_the_limit_is_spent_before_anything_is_authenticated) {
  const auto error_with = [](const std::string& text, const KdfLimit& limit) {
    const auto keyring = parse_keyring(as_bytes(text)).value();
    const auto opened = open_keyring(keyring, secret("one"), limit);
    return opened ? Error{ErrorCode::exists} : opened.error();
  };
  const std::uint64_t cheap = work_kib_of(cheap_kdf);
  const std::string text = text_of(made().keyring);
  EXPECT_EQ(error_with(text, {.work_kib = 2 * cheap, .memory_kib = cheap_kdf.memory_kib}).code,
            ErrorCode::exists);
  // The limits hold for the memory of one passphrase, and for the work of all.
  const Error memory = error_with(text, {.memory_kib = cheap_kdf.memory_kib - 1});
  EXPECT_EQ(memory.code, ErrorCode::not_permitted);
  EXPECT_NE(memory.message.find("--kdf-limit"), std::string::npos) << memory.message;
  EXPECT_EQ(error_with(text, {.work_kib = cheap - 1}).code, ErrorCode::not_permitted);
  // The hours that the bounds of the format allow.
  const std::string costly = forge(text, [](json& f) {
    f["recipients"][0]["kdf"]["memory_kib"] = 1u << 20;
    f["recipients"][0]["kdf"]["passes"] = engine::argon2_passes_max;
  });
  EXPECT_EQ(error_with(costly, {}).code, ErrorCode::not_permitted);
  // The second passphrase is cheaper, and opens as before: up to its volume's MAC.
  EXPECT_EQ(open_error(costly, secret("two")), ErrorCode::tampered);
  EXPECT_EQ(open_error(costly, identity(0)), ErrorCode::tampered) << "costs nothing";
}

TEST(KeyringHostile, the_limit_is_for_all_passphrases_together) {
  Keyring keyring = made().keyring;
  const Recipient one = keyring.recipients[0];
  keyring.recipients.clear();
  for (Byte i = 1; i <= 20; ++i) {
    Recipient other = one;
    other.fingerprint[0] ^= i;
    other.passphrase->salt[0] ^= i;  // so it looks like another passphrase
    keyring.recipients.push_back(std::move(other));
  }
  keyring.recipients.push_back(one);  // the last that is tried
  const std::uint64_t cheap = work_kib_of(cheap_kdf);
  const auto error_with = [&](std::uint64_t work_kib) {
    const auto opened =
        open_keyring(Unverified<Keyring>{keyring, {}}, secret("one"), {.work_kib = work_kib});
    return opened ? ErrorCode::exists : opened.error().code;
  };
  EXPECT_EQ(error_with(3 * cheap), ErrorCode::not_permitted);
  EXPECT_EQ(error_with(21 * cheap), ErrorCode::tampered) << "all are tried; there is no MAC";
}

TEST(KeyringHostile, a_recipient_that_stands_there_twice_is_refused) {
  const std::string text = forge(text_of(made().keyring),
                                 [](json& f) { f["recipients"].push_back(f["recipients"][0]); });
  for (const auto* word : {"one", "two", "wrong"}) {
    const auto opened = open(text, secret(word));
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, ErrorCode::tampered);
    EXPECT_NE(opened.error().message.find("twice"), std::string::npos) << opened.error().message;
  }
}

TEST(KeyringRecipients, are_not_made_so_costly_that_opening_would_refuse_them) {
  NewPassphrase costly = std::get<NewPassphrase>(passphrase("costly"));
  costly.kdf = {.memory_kib = 2u << 20, .passes = 1, .lanes = 1};
  std::vector<NewRecipient> wanted;
  wanted.push_back(std::move(costly));
  const auto refused = create_keyring(some_volume_id(), engine::CipherSuite::aes_256_gcm, wanted);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::not_permitted);
  // Together with what is there already.
  const auto [keyring, opened] = open(secret("one"));
  set_kdf_limit({.work_kib = 3 * work_kib_of(cheap_kdf) - 1});
  const auto added = add_recipient(keyring, opened.access, passphrase("three"));
  set_kdf_limit({});
  ASSERT_FALSE(added);
  EXPECT_EQ(added.error().code, ErrorCode::not_permitted);
  EXPECT_NE(added.error().message.find("--kdf-limit"), std::string::npos);
  EXPECT_TRUE(add_recipient(keyring, opened.access, passphrase("three")));
}

TEST(KeyringHostile, edited_kdf_parameters_open_nothing) {
  for (const char* field : {"memory_kib", "passes", "lanes"}) {
    const std::string text = forge(text_of(made().keyring), [&](json& f) {
      auto& value = f["recipients"][0]["kdf"][field];
      value = value.get<std::uint32_t>() + 1;
    });
    EXPECT_EQ(open_error(text, secret("one")), ErrorCode::wrong_key) << field;
    EXPECT_EQ(open_error(text, secret("two")), ErrorCode::tampered) << field;
  }
}

TEST(KeyringHostile, a_downgraded_suite_is_refused) {
  // Key sizes differ, so most are no keyring at all; those that agree fail at the MAC.
  for (const char* cipher : {"aes-128-gcm", "des-cbc", "des-ede3-cbc", "aes-256-ctr"}) {
    const std::string text =
        forge(text_of(made().keyring), [&](json& f) { f["epochs"][0]["cipher"] = cipher; });
    EXPECT_EQ(open_error(text, secret("one")), ErrorCode::corrupt) << cipher;
  }
  const auto ctr =
      create_keyring(some_volume_id(), engine::CipherSuite::aes_128_ctr, recipients(public_key(0)))
          .value();
  const std::string text = encode_keyring(ctr.keyring, *ctr.keys);
  const std::string weaker =
      forge(text, [](json& f) { f["epochs"][0]["cipher"] = "des-cbc"; });  // 48 bytes, too
  EXPECT_EQ(open_error(text, identity(0)), ErrorCode::exists);
  EXPECT_EQ(open_error(weaker, identity(0)), ErrorCode::tampered);
}

// An attacker adds a recipient, or replaces the victim's recipient by another one.
TEST(KeyringHostile, a_recipient_added_or_exchanged_without_the_volume_key_is_refused) {
  const auto stranger =
      create_keyring(some_volume_id(), suite, recipients(public_key(1, "stranger"))).value();
  const json theirs = json::parse(encode_keyring(stranger.keyring, *stranger.keys));
  const std::string added = forge(text_of(made().keyring), [&](json& f) {
    f["recipients"].push_back(theirs["recipients"][0]);
  });
  const std::string exchanged = forge(
      text_of(made().keyring), [&](json& f) { f["recipients"][1] = theirs["recipients"][0]; });
  for (const std::string& text : {added, exchanged}) {
    EXPECT_EQ(open_error(text, secret("one")), ErrorCode::tampered);
    EXPECT_EQ(open_error(text, identity(0)), ErrorCode::tampered);
    EXPECT_EQ(open_error(text, identity(1)), ErrorCode::tampered);
  }
}

}  // namespace
}  // namespace nacre::metadata
