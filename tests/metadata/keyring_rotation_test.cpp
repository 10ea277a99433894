// SPDX-License-Identifier: Apache-2.0
// The keyrings of a rotation: which secrets open them, and what each secret opens and does not
// open.
#include <gtest/gtest.h>

#include <functional>

#include "metadata/keys/keyring_rotation.h"
#include "metadata/volume_files.h"
#include "tests/metadata/test_keys.h"
#include "tests/support/format_under_test.h"
#include "tests/support/memory_backing.h"

namespace nacre::tests {
namespace {

using namespace metadata;

class KeyringRotationTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto who = recipients(passphrase("first"), passphrase("second"), public_key(0));
    auto made = create_volume_files(*backing_, {.format = format_under_test()}, who);
    ASSERT_TRUE(made) << made.error().message;
    ASSERT_TRUE(complete_volume_files(*backing_, *made));
  }
  Result<VolumeKeys> open(std::string_view text = "first") const {
    return open_volume_keys(*backing_, VolumeSecret(secret(text)));
  }
  Result<VolumeKeys> open_identity() const {
    auto key = engine::RsaPrivateKey::from_der(identity(0).to_der()->view());
    return open_volume_keys(*backing_, VolumeSecret(std::move(*key)));
  }
  engine::Sha256Digest superblock() const {
    return superblock_digest(find_superblock(*backing_)->superblock);
  }
  // Writes the keyring that a rotation begins with; keys become those of the rotation.
  void begin(VolumeKeys& volume, engine::CipherSuite suite = engine::CipherSuite::aes_256_gcm) {
    auto next = begin_keyring_rotation(volume.keyring, *volume.keys, superblock(), suite,
                                       format_under_test());
    ASSERT_TRUE(next) << next.error().message;
    ASSERT_TRUE(save_keyring(*backing_, next->keyring, *next->keys));
    volume.keyring = next->keyring;
    volume.keys->begin_rotation(next->keys->volume_key(), next->keys->current_epoch(),
                                superblock());
  }

  std::shared_ptr<MemoryBacking> backing_ = MemoryBacking::create();
};

TEST_F(KeyringRotationTest, opens_for_every_recipient_although_the_superblock_is_the_older_one) {
  auto volume = open();
  ASSERT_TRUE(volume);
  begin(*volume);
  for (const auto& opened : {open("first"), open("second"), open_identity()}) {
    ASSERT_TRUE(opened) << opened.error().message;
    EXPECT_TRUE(opened->keys->is_rotating());
    EXPECT_EQ(opened->keys->current_epoch_number(), 2u);
    EXPECT_EQ(opened->keys->epochs().size(), 2u);
    EXPECT_EQ(opened->keys->fingerprint(), volume->keys->fingerprint());
    EXPECT_EQ(opened->keys->previous_fingerprint(), volume->keys->previous_fingerprint());
    EXPECT_NE(opened->keys->fingerprint(), *opened->keys->previous_fingerprint());
  }
}

TEST_F(KeyringRotationTest, keeps_the_key_of_the_older_epoch_until_its_end) {
  auto volume = open();
  const SecretBytes before = volume->keys->current_epoch().key.clone();
  begin(*volume, engine::CipherSuite::aes_128_ctr);
  auto during = open();
  ASSERT_TRUE(during);
  EXPECT_TRUE(equal_constant_time(during->keys->epochs().front().key.view(), before.view()));
  EXPECT_EQ(during->keys->current_epoch().suite, engine::CipherSuite::aes_128_ctr);

  ASSERT_TRUE(save_superblock(*backing_, during->superblock, *during->keys));
  const Keyring last = end_keyring_rotation(during->keyring);
  during->keys->end_rotation();
  ASSERT_TRUE(save_keyring(*backing_, last, *during->keys));
  EXPECT_FALSE(during->keys->is_rotating());
  EXPECT_FALSE(during->keys->session_key(1, {}));
  EXPECT_FALSE(during->keys->database_file_key(1, Bytes(16), "CURRENT"));
  EXPECT_FALSE(during->keys->previous_fingerprint());

  const auto after = open("second");
  ASSERT_TRUE(after) << after.error().message;
  EXPECT_EQ(after->keys->epochs().size(), 1u);
  EXPECT_EQ(after->keyring.generation, 3u);
  EXPECT_TRUE(after->keyring.sealed_previous_volume_key.empty());
}

TEST_F(KeyringRotationTest, ends_with_a_keyring_that_refuses_a_superblock_of_the_older_key) {
  const auto superblock = *backing_->load("superblock");
  auto volume = open();
  begin(*volume);
  Superblock newer = volume->superblock;
  newer.generation++;
  ASSERT_TRUE(save_superblock(*backing_, newer, *volume->keys));
  const Keyring last = end_keyring_rotation(volume->keyring);
  volume->keys->end_rotation();
  ASSERT_TRUE(save_keyring(*backing_, last, *volume->keys));
  ASSERT_TRUE(open());
  backing_->store("superblock", superblock);
  backing_->store("superblock.copy", superblock);
  const auto refused = open();
  ASSERT_FALSE(refused);
  EXPECT_EQ(to_string(refused.error().code), to_string(ErrorCode::tampered));
}

// AUDIT F1: a removed recipient has the older volume key, and can make a MAC for any superblock
// while a rotation is under way, however long it is paused.
TEST_F(KeyringRotationTest, takes_no_superblock_that_somebody_makes_with_the_older_key) {
  const auto before = open();
  ASSERT_TRUE(before);
  const Superblock genuine = before->superblock;
  auto volume = open();
  begin(*volume);
  const auto text = backing_->load("superblock").value();
  const std::function<void(Superblock&)> forgeries[] = {
      [](Superblock& it) { it.chunk_size_bytes *= 2; },
      [](Superblock& it) { it.padding = engine::Padding::padme; },
      [](Superblock& it) { it.codec = engine::Codec::rle; },
      [](Superblock& it) { it.label = "another"; },
      [](Superblock& it) { it.generation += 1000; },
      [](Superblock& it) { it.generation = generation_end - 1; },
      [](Superblock& it) { it.has_format_2 = !it.has_format_2; },
  };
  for (const auto& forge : forgeries) {
    Superblock forged = genuine;
    forge(forged);
    ASSERT_TRUE(save_superblock(*backing_, forged, *before->keys));
    for (const auto& opened : {open("first"), open_identity()}) {
      ASSERT_FALSE(opened);
      EXPECT_EQ(to_string(opened.error().code), to_string(ErrorCode::tampered))
          << opened.error().message;
    }
  }
  backing_->store("superblock", text);
  backing_->store("superblock.copy", text);
  EXPECT_TRUE(open());
}

TEST_F(KeyringRotationTest, takes_no_older_superblock_that_is_put_back) {
  const auto older = *backing_->load("superblock");
  auto volume = open();
  Superblock newer = volume->superblock;
  newer.codec = engine::Codec::none;
  newer.generation++;
  ASSERT_TRUE(save_superblock(*backing_, newer, *volume->keys));
  begin(*volume);
  ASSERT_TRUE(open());
  backing_->store("superblock", older);
  backing_->store("superblock.copy", older);
  const auto refused = open();
  ASSERT_FALSE(refused);
  EXPECT_EQ(to_string(refused.error().code), to_string(ErrorCode::tampered));
}

// A rotation that an earlier program began names no superblock. None did in format 2.
TEST_F(KeyringRotationTest, that_names_no_superblock_takes_the_older_key_for_it) {
  auto volume = open();
  auto next = begin_keyring_rotation(volume->keyring, *volume->keys, superblock(),
                                     engine::CipherSuite::aes_256_gcm, format_under_test());
  ASSERT_TRUE(next);
  next->keyring.previous_superblock.reset();
  ASSERT_TRUE(save_keyring(*backing_, next->keyring, *next->keys));
  EXPECT_EQ(open().has_value(), format_under_test() == EpochFormat::one);
}

// In format 2: KeyringFormat2.a_rotation_seals_for_its_passphrase_and_wraps_for_key_pairs.
TEST_F(KeyringRotationTest, confirms_a_passphrase_once_it_is_known_again) {
  if (format_under_test() != EpochFormat::one) return;
  auto volume = open();
  begin(*volume);
  EXPECT_FALSE(volume->keyring.recipients[0].passphrase->mac);
  const auto wrong = confirm_passphrase(volume->keyring, *volume->keys, as_bytes("third"));
  ASSERT_TRUE(wrong);
  EXPECT_FALSE(*wrong);
  const auto right = confirm_passphrase(volume->keyring, *volume->keys, as_bytes("second"));
  ASSERT_TRUE(right);
  EXPECT_TRUE(*right);
  EXPECT_FALSE(volume->keyring.recipients[0].passphrase->mac);
  EXPECT_TRUE(volume->keyring.recipients[1].passphrase->mac);
  volume->keyring.generation++;
  ASSERT_TRUE(save_keyring(*backing_, volume->keyring, *volume->keys));
  EXPECT_TRUE(open("first"));
  EXPECT_TRUE(open("second"));

  volume->keyring.recipients[1].passphrase->mac->at(0) ^= 1;
  volume->keyring.generation++;
  ASSERT_TRUE(save_keyring(*backing_, volume->keyring, *volume->keys));
  const auto forged = open("second");
  ASSERT_FALSE(forged);
  EXPECT_EQ(to_string(forged.error().code), to_string(ErrorCode::tampered));
}

TEST_F(KeyringRotationTest, is_refused_while_another_one_runs) {
  auto volume = open();
  begin(*volume);
  const auto second = begin_keyring_rotation(volume->keyring, *volume->keys, superblock(),
                                             engine::CipherSuite::aes_256_gcm, format_under_test());
  ASSERT_FALSE(second);
  EXPECT_EQ(to_string(second.error().code), to_string(ErrorCode::busy));
}

// Power is lost at each change that writing the keyring makes: every recipient opens what is there.
TEST_F(KeyringRotationTest, opens_wherever_power_is_lost) {
  const auto whole = backing_->process_kill();
  auto volume = open();
  auto next = begin_keyring_rotation(volume->keyring, *volume->keys, superblock(),
                                     engine::CipherSuite::aes_256_gcm, format_under_test());
  ASSERT_TRUE(save_keyring(*whole, next->keyring, *next->keys));
  const std::uint64_t count = whole->change_count();
  ASSERT_GT(count, 4u);
  for (std::uint64_t change = 0; change < count; ++change) {
    for (const std::uint64_t survival : {0u, 1u, 7u}) {
      const auto wreck = backing_->process_kill();
      wreck->fail_at(change);
      EXPECT_FALSE(save_keyring(*wreck, next->keyring, *next->keys));
      const auto left = wreck->power_loss(survival);
      const auto opened = open_volume_keys(*left, VolumeSecret(secret("second")));
      EXPECT_TRUE(opened) << "change " << change << ": " << opened.error().message;
    }
  }
}

}  // namespace
}  // namespace nacre::tests
