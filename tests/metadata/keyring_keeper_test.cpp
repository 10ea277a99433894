// SPDX-License-Identifier: Apache-2.0
// The keyring of a volume in use: which keyring may take its place, what is left of the old one,
// and which error is reported if the disk fails in between.
#include "metadata/keys/keyring_keeper.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "metadata/backing/two_copies.h"
#include "metadata/keys/keyring_recipients.h"
#include "metadata/text/text_bytes.h"
#include "tests/metadata/forge.h"
#include "tests/metadata/test_keys.h"
#include "tests/support/memory_backing.h"
#include "tests/support/temporary_directory.h"

namespace nacre::metadata {
namespace {

using tests::identity;
using tests::InjectedFailure;
using tests::MemoryBacking;
using tests::public_key;
using tests::recipients;

engine::VolumeId volume_id_of(Byte seed) {
  engine::VolumeId volume_id;
  volume_id.fill(seed);
  return volume_id;
}

class KeyringKeeperTest : public ::testing::Test {
 protected:
  void SetUp() override {
    made_ = create_keyring(volume_id_of(1), engine::CipherSuite::aes_256_gcm,
                           recipients(public_key(0, "zero"), public_key(1, "one")))
                .value();
    ASSERT_TRUE(save_keyring(*backing_, made_.keyring, *made_.keys));
    opened_ = open_keyring(find_keyring(*backing_)->keyring, identity(0)).value();
    keeper_ = keeper_of(backing_);
  }
  std::unique_ptr<KeyringKeeper> keeper_of(std::shared_ptr<BackingDirectory> directory) {
    return std::make_unique<KeyringKeeper>(std::move(directory), made_.keys, made_.keyring,
                                           [this](std::uint64_t generation) -> Result<> {
                                             if (note_result_) noted_.push_back(generation);
                                             return note_result_;
                                           });
  }
  Keyring without_one() const {
    return remove_recipient(keeper_->current(), opened_.access, 1).value();
  }
  std::string text_of(const Keyring& keyring) const { return encode_keyring(keyring, *made_.keys); }
  Result<> replace_text(const std::string& text) {
    return keeper_->replace_recipients(as_bytes(text));
  }
  ErrorCode refusal(const Keyring& keyring) {
    const auto done = replace_text(text_of(keyring));
    EXPECT_EQ(keeper_->generation(), 1u);
    EXPECT_TRUE(noted_.empty());
    return done ? ErrorCode::exists : done.error().code;
  }
  std::uint64_t on_disk() { return find_keyring(*backing_)->keyring.claims.generation; }

  std::shared_ptr<MemoryBacking> backing_ = MemoryBacking::create();
  NewKeyring made_;
  OpenedKeyring opened_;
  Result<> note_result_ = {};
  std::vector<std::uint64_t> noted_;
  std::unique_ptr<KeyringKeeper> keeper_;
};

TEST_F(KeyringKeeperTest, replaces_both_copies_then_notes_the_generation) {
  const auto done = replace_text(text_of(without_one()));
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(noted_, std::vector<std::uint64_t>{2});
  EXPECT_EQ(keeper_->generation(), 2u);
  EXPECT_EQ(backing_->load("keyring"), backing_->load("keyring.copy"));
  const auto after = backing_->power_loss(0);
  EXPECT_EQ(find_keyring(*after)->keyring.claims.generation, 2u);
  EXPECT_EQ(find_keyring(*after)->keyring.claims.recipients.size(), 1u);
  // Another change succeeds from there.
  EXPECT_TRUE(
      keeper_->replace(add_recipient(keeper_->current(), opened_.access, public_key(2)).value()));
  EXPECT_EQ(on_disk(), 3u);
}

TEST_F(KeyringKeeperTest, takes_nothing_but_other_recipients_of_the_next_generation) {
  Keyring next = without_one();
  next.generation = 1;
  EXPECT_EQ(refusal(next), ErrorCode::busy);
  next.generation = 3;
  EXPECT_EQ(refusal(next), ErrorCode::busy);
  next = without_one();
  next.epochs.push_back(next.epochs[0]);
  next.epochs[1].number = 2;
  EXPECT_EQ(refusal(next), ErrorCode::not_permitted);
  next = without_one();
  next.epochs[0].wrapped_key[5] ^= 1;
  EXPECT_EQ(refusal(next), ErrorCode::not_permitted);
  next = without_one();
  next.volume_id = volume_id_of(2);
  EXPECT_EQ(refusal(next), ErrorCode::tampered);
  EXPECT_EQ(keeper_->replace(keeper_->current()).error().code, ErrorCode::invalid_argument);
}

TEST_F(KeyringKeeperTest, takes_nothing_from_who_does_not_know_the_volume_key) {
  const auto other =
      create_keyring(volume_id_of(1), engine::CipherSuite::aes_256_gcm, recipients(public_key(0)))
          .value();
  Keyring theirs = other.keyring;
  theirs.generation = 2;
  const auto done = replace_text(encode_keyring(theirs, *other.keys));
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::tampered);
  EXPECT_EQ(replace_text("{}").error().code, ErrorCode::corrupt);
  EXPECT_EQ(replace_text("").error().code, ErrorCode::corrupt);
  EXPECT_EQ(on_disk(), 1u);
}

// If the row required a keyring that power loss can take away, no secret would open the volume any
// more.
TEST_F(KeyringKeeperTest, notes_nothing_when_a_copy_could_not_be_made_durable) {
  for (const std::uint32_t operation : {+tests::change_write, +tests::change_sync,
                                        +tests::change_rename, +tests::change_sync_directory}) {
    for (const char* path : {"keyring", "keyring.copy"}) {
      SetUp();
      backing_->inject({.operations = operation,
                        .path_part = operation == tests::change_sync_directory ? "" : path,
                        .count = 1});
      const auto done = replace_text(text_of(without_one()));
      backing_->clear_failures();
      ASSERT_FALSE(done);
      EXPECT_TRUE(noted_.empty());
      // The keeper goes on from the keyring that is on the disk.
      EXPECT_EQ(on_disk(), keeper_->generation()) << done.error().message;
      EXPECT_TRUE(keeper_->replace(
          add_recipient(keeper_->current(), opened_.access, public_key(2)).value()));
      EXPECT_EQ(noted_.size(), 1u);
      noted_.clear();
      backing_ = MemoryBacking::create();
    }
  }
}

TEST_F(KeyringKeeperTest, says_what_a_database_that_takes_no_note_means) {
  note_result_ = fail(ErrorCode::io, "the disk is gone");
  const auto done = replace_text(text_of(without_one()));
  ASSERT_FALSE(done);
  EXPECT_NE(done.error().message.find("the new keyring is in place"), std::string::npos);
  EXPECT_NE(done.error().message.find("the disk is gone"), std::string::npos);
  EXPECT_EQ(keeper_->generation(), 2u);
  EXPECT_EQ(on_disk(), 2u);
}

TEST_F(KeyringKeeperTest, finishes_an_update_that_stopped_between_the_copies) {
  const Keyring next = without_one();
  backing_->store("keyring", as_bytes(text_of(next)));
  auto found = find_keyring(*backing_);
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->is_torn);
  EXPECT_EQ(found->keyring.claims.generation, 2u);
  KeyringKeeper keeper(backing_, made_.keys, next, [](std::uint64_t) { return Result<>(); });
  ASSERT_TRUE(keeper.finish_update());
  found = find_keyring(*backing_);
  EXPECT_FALSE(found->is_torn);
  EXPECT_TRUE(found->warnings.empty());
  EXPECT_EQ(as_text(*backing_->load("keyring.copy")), text_of(next));
  // A copy that is damaged or missing is no interrupted update.
  backing_->erase("keyring.copy");
  EXPECT_FALSE(find_keyring(*backing_)->is_torn);
}

TEST_F(KeyringKeeperTest, overwrites_what_the_replaced_files_held) {
  const tests::TemporaryDirectory place;
  const std::string path = place.path();
  const auto directory = open_posix_directory(path).value();
  ASSERT_TRUE(save_keyring(*directory, made_.keyring, *made_.keys));
  // The test holds the old files open. Through them it sees what is on the disk.
  const auto first = directory->open("keyring", OpenMode::read).value();
  const auto second = directory->open("keyring.copy", OpenMode::read).value();
  keeper_ = keeper_of(directory);
  ASSERT_TRUE(replace_text(text_of(without_one())));
  for (const auto& file : {first.get(), second.get()}) {
    Bytes content(file->size().value());
    ASSERT_EQ(file->read(0, content).value(), content.size());
    EXPECT_EQ(content, Bytes(content.size()));
  }
  EXPECT_TRUE(find_keyring(*directory)->warnings.empty());
}

// With them go the wraps of the volume key that a rotation leaves behind.
TEST_F(KeyringKeeperTest, overwrites_the_keyring_before_a_rotation) {
  const tests::TemporaryDirectory place;
  const auto directory = open_posix_directory(place.path()).value();
  ASSERT_TRUE(save_keyring(*directory, made_.keyring, *made_.keys));
  const auto first = directory->open("keyring", OpenMode::read).value();
  const auto second = directory->open("keyring.copy", OpenMode::read).value();
  keeper_ = keeper_of(directory);
  ASSERT_TRUE(keeper_->rotate(
      [&](const Keyring& current) {
        return begin_keyring_rotation(current, *made_.keys, engine::Sha256Digest{},
                                      engine::CipherSuite::aes_256_gcm, EpochFormat::one, {});
      },
      [](const KeyringRotation&) {}, nullptr));
  for (const auto& file : {first.get(), second.get()}) {
    Bytes content(file->size().value());
    ASSERT_EQ(file->read(0, content).value(), content.size());
    EXPECT_EQ(content, Bytes(content.size()));
  }
  EXPECT_TRUE(find_keyring(*directory)->warnings.empty());
}

// A backup may be made of hard links: it keeps its keyring.
TEST_F(KeyringKeeperTest, leaves_a_replaced_file_with_another_name_alone) {
  const tests::TemporaryDirectory place;
  const std::filesystem::path path = place.path();
  const auto directory = open_posix_directory(path.string()).value();
  ASSERT_TRUE(save_keyring(*directory, made_.keyring, *made_.keys));
  std::filesystem::create_hard_link(path / "keyring", path / "kept");
  keeper_ = keeper_of(directory);
  ASSERT_TRUE(replace_text(text_of(without_one())));
  EXPECT_EQ(as_text(read_file(*directory, "kept").value()), text_of(made_.keyring));
}

}  // namespace
}  // namespace nacre::metadata
