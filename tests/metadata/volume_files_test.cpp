// SPDX-License-Identifier: Apache-2.0
// A volume directory as a whole: made at every moment that power may be lost, recognised, opened
// with one copy damaged, and refused with the right verdict.
#include "metadata/volume_files.h"

#include <gtest/gtest.h>

#include "tests/metadata/forge.h"
#include "tests/metadata/test_keys.h"
#include "tests/support/memory_backing.h"

namespace nacre::metadata {
namespace {

using tests::identity;
using tests::MemoryBacking;
using tests::passphrase;
using tests::public_key;
using tests::recipients;
using tests::secret;

VolumeParameters some_parameters() {
  return {.label = "photos",
          .chunk_size_bytes = 128u << 10,
          .padding = engine::Padding::padme,
          .codec = engine::Codec::zstd,
          .level = 3};
}

Result<NewVolume> make(MemoryBacking& backing, const std::vector<NewRecipient>& wanted) {
  NACRE_ASSIGN(NewVolume volume, create_volume_files(backing, some_parameters(), wanted));
  NACRE_TRY(complete_volume_files(backing, volume));
  return volume;
}

ErrorCode open_error(MemoryBacking& backing, const VolumeSecret& with) {
  const auto opened = open_volume_keys(backing, with);
  return opened ? ErrorCode::exists : opened.error().code;
}

TEST(VolumeFiles, are_made_and_opened) {
  const auto backing = MemoryBacking::create();
  const auto made = make(*backing, recipients(passphrase("one"), public_key(0)));
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(*backing->list(""),
            (std::vector<std::string>{"db", "keyring", "keyring.copy", "segments", "superblock",
                                      "superblock.copy"}));
  for (const VolumeSecret& with : {VolumeSecret(secret("one")), VolumeSecret(identity(0))}) {
    const auto opened = open_volume_keys(*backing, with);
    ASSERT_TRUE(opened) << opened.error().message;
    EXPECT_TRUE(opened->warnings.empty());
    EXPECT_EQ(opened->keys->fingerprint(), made->keys->fingerprint());
    EXPECT_EQ(opened->superblock.volume_id, made->superblock.volume_id);
    EXPECT_EQ(opened->superblock.label, "photos");
    EXPECT_EQ(opened->superblock.chunk_size_bytes, 128u << 10);
    EXPECT_EQ(opened->superblock.padding, engine::Padding::padme);
    EXPECT_EQ(opened->superblock.codec, engine::Codec::zstd);
    EXPECT_EQ(opened->superblock.level, 3);
    EXPECT_EQ(opened->keyring.recipients.size(), 2u);
    EXPECT_EQ(opened->keyring.generation, 1u);
  }
  EXPECT_EQ(open_error(*backing, secret("two")), ErrorCode::wrong_key);
}

TEST(VolumeFiles, of_two_volumes_share_nothing) {
  const auto first = make(*MemoryBacking::create(), recipients(public_key(0)));
  const auto second = make(*MemoryBacking::create(), recipients(public_key(0)));
  EXPECT_NE(first->superblock.volume_id, second->superblock.volume_id);
  EXPECT_NE(first->keys->fingerprint(), second->keys->fingerprint());
}

TEST(VolumeFiles, are_not_made_with_bad_parameters) {
  const std::function<void(VolumeParameters&)> changes[] = {
      [](VolumeParameters& p) { p.chunk_size_bytes = 65537; },
      [](VolumeParameters& p) { p.chunk_size_bytes = 2048; },
      [](VolumeParameters& p) { p.chunk_size_bytes = 2u << 20; },
      [](VolumeParameters& p) { p.level = 10; },
      [](VolumeParameters& p) { p.level = -1; },
      [](VolumeParameters& p) { p.label = "a\x1b[2Jb"; },
      [](VolumeParameters& p) { p.label = std::string(256, 'x'); },
      [](VolumeParameters& p) { p.label = "\xc3"; },
  };
  for (const auto& change : changes) {
    const auto backing = MemoryBacking::create();
    VolumeParameters parameters = some_parameters();
    change(parameters);
    EXPECT_EQ(create_volume_files(*backing, parameters, recipients(public_key(0))).error().code,
              ErrorCode::invalid_argument);
    EXPECT_TRUE(backing->files().empty());
  }
}

TEST(VolumeFiles, are_made_in_no_directory_that_holds_something) {
  const auto state_with = [](const char* file) {
    const auto backing = MemoryBacking::create();
    backing->store(file, as_bytes("x"));
    const auto state = inspect_directory(*backing).value();
    const auto made = create_volume_files(*backing, {}, recipients(public_key(0)));
    const bool refused = !made;
    EXPECT_EQ(refused, state != DirectoryState::empty && state != DirectoryState::unfinished);
    EXPECT_TRUE(!refused || backing->files() == std::vector<std::string>{file});
    return state;
  };
  EXPECT_EQ(state_with("lock"), DirectoryState::empty);
  EXPECT_EQ(state_with("lost+found/x"), DirectoryState::empty);
  EXPECT_EQ(state_with("mkfs-unfinished.new"), DirectoryState::empty);
  EXPECT_EQ(state_with("mkfs-unfinished"), DirectoryState::unfinished);
  EXPECT_EQ(state_with("superblock"), DirectoryState::volume);
  EXPECT_EQ(state_with("superblock.copy"), DirectoryState::volume);
  EXPECT_EQ(state_with("keyring"), DirectoryState::damaged);
  EXPECT_EQ(state_with("segments/000000000001.seg"), DirectoryState::damaged);
  EXPECT_EQ(state_with("db/CURRENT"), DirectoryState::damaged);
  EXPECT_EQ(state_with("letter.txt"), DirectoryState::foreign);
}

// The superblocks of a volume were moved away, and there is the marker of an interrupted mkfs.
TEST(VolumeFiles, are_not_made_over_segments_whatever_a_marker_says) {
  const auto backing = MemoryBacking::create();
  backing->store("mkfs-unfinished", as_bytes("x"));
  backing->store("segments/000000000001.seg", as_bytes("x"));
  const auto before = backing->files();
  EXPECT_EQ(inspect_directory(*backing).value(), DirectoryState::unfinished);
  const auto made = create_volume_files(*backing, {}, recipients(public_key(0)));
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, ErrorCode::not_empty) << made.error().message;
  EXPECT_EQ(backing->files(), before);
}

TEST(VolumeFiles, made_with_power_lost_at_every_change_are_a_volume_or_can_be_made_again) {
  for (std::uint64_t at = 0;; ++at) {
    const auto backing = MemoryBacking::create();
    backing->fail_at(at);
    const auto made = make(*backing, recipients(public_key(0)));
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
      SCOPED_TRACE(::testing::Message() << "change " << at << ", seed " << seed);
      const auto after = backing->power_loss(seed);
      const DirectoryState state = inspect_directory(*after).value();
      const auto opened = open_volume_keys(*after, identity(0));
      if (state == DirectoryState::volume) {
        ASSERT_TRUE(opened) << opened.error().message;
        EXPECT_TRUE(!made || opened->keys->fingerprint() == made->keys->fingerprint());
        EXPECT_TRUE(!made || opened->warnings.empty());
      } else {
        ASSERT_FALSE(made);
        EXPECT_TRUE(state == DirectoryState::empty || state == DirectoryState::unfinished);
        EXPECT_EQ(opened.error().code, ErrorCode::not_found);
        // Leftovers of the database, which the caller makes in between.
        if (state == DirectoryState::unfinished) after->store("db/CURRENT", as_bytes("x"));
        const auto again = make(*after, recipients(public_key(0)));
        ASSERT_TRUE(again) << again.error().message;
        EXPECT_FALSE(*after->exists("db/CURRENT"));
        EXPECT_TRUE(open_volume_keys(*after->power_loss(0), identity(0)));
      }
    }
    if (made) break;
    ASSERT_LT(at, 100u);
  }
}

TEST(VolumeFiles, tell_a_user_what_he_pointed_at) {
  const auto backing = MemoryBacking::create();
  auto opened = open_volume_keys(*backing, secret("x"));
  EXPECT_EQ(opened.error().code, ErrorCode::not_found);
  EXPECT_NE(opened.error().message.find("not a Nacre volume"), std::string::npos);
  ASSERT_TRUE(create_volume_files(*backing, {}, recipients(public_key(0))));
  opened = open_volume_keys(*backing, identity(0));
  EXPECT_EQ(opened.error().code, ErrorCode::not_found);
  EXPECT_NE(opened.error().message.find("mkfs.nacre"), std::string::npos);
}

TEST(VolumeFiles, with_parts_missing_say_which) {
  const auto whole = MemoryBacking::create();
  ASSERT_TRUE(make(*whole, recipients(public_key(0))));
  for (const char* name : {"superblock", "keyring"}) {
    const auto backing = whole->process_kill();
    backing->erase(name);
    auto opened = open_volume_keys(*backing, identity(0));
    ASSERT_TRUE(opened);
    ASSERT_EQ(opened->warnings.size(), 1u);
    EXPECT_EQ(opened->warnings[0].code, ErrorCode::missing);
    EXPECT_NE(opened->warnings[0].message.find(name), std::string::npos);
    backing->erase(std::string(name) + ".copy");
    opened = open_volume_keys(*backing, identity(0));
    EXPECT_EQ(opened.error().code, ErrorCode::missing);
    EXPECT_NE(opened.error().message.find(name), std::string::npos);
  }
}

TEST(VolumeFiles, open_with_a_warning_when_one_byte_of_one_copy_is_changed) {
  const auto whole = MemoryBacking::create();
  const auto made = make(*whole, recipients(public_key(0)));
  for (const std::string name : {"superblock", "superblock.copy", "keyring", "keyring.copy"}) {
    const Bytes content = whole->load(name).value();
    for (std::size_t at = 0; at < content.size(); at += 7) {
      const auto backing = whole->process_kill();
      Bytes changed = content;
      changed[at] = static_cast<Byte>(changed[at] ^ (1u << at % 8));
      backing->store(name, changed);
      const auto opened = open_volume_keys(*backing, identity(0));
      ASSERT_TRUE(opened) << name << " " << at << ": " << opened.error().message;
      EXPECT_EQ(opened->keys->fingerprint(), made->keys->fingerprint());
      ASSERT_EQ(opened->warnings.size(), 1u);
      EXPECT_EQ(opened->warnings[0].code, ErrorCode::corrupt);
      EXPECT_NE(opened->warnings[0].message.find("/" + name + ":"), std::string::npos)
          << opened->warnings[0].message;
    }
  }
}

TEST(VolumeFiles, damaged_in_both_copies_are_corrupt) {
  const auto whole = MemoryBacking::create();
  ASSERT_TRUE(make(*whole, recipients(public_key(0))));
  for (const std::string name : {"superblock", "keyring"}) {
    const auto backing = whole->process_kill();
    for (const std::string& path : {name, name + ".copy"}) {
      Bytes content = backing->load(path).value();
      content[content.size() / 2] ^= 1;
      backing->store(path, content);
    }
    EXPECT_EQ(open_error(*backing, identity(0)), ErrorCode::corrupt);
  }
}

TEST(VolumeFiles, forged_in_both_copies_are_tampered_with) {
  const auto whole = MemoryBacking::create();
  ASSERT_TRUE(make(*whole, recipients(public_key(0))));
  for (const std::string name : {"superblock", "keyring"}) {
    const auto backing = whole->process_kill();
    const std::string forged =
        tests::forge(as_text(*backing->load(name)), [](auto& fields) { fields["generation"] = 2; });
    backing->store(name, as_bytes(forged));
    EXPECT_EQ(open_error(*backing, identity(0)), ErrorCode::tampered);
    backing->store(name + ".copy", as_bytes(forged));
    EXPECT_EQ(open_error(*backing, identity(0)), ErrorCode::tampered);
  }
}

TEST(VolumeFiles, of_another_volume_put_in_place_are_tampered_with) {
  const auto first = MemoryBacking::create();
  const auto second = MemoryBacking::create();
  ASSERT_TRUE(make(*first, recipients(public_key(0))));
  ASSERT_TRUE(make(*second, recipients(public_key(0))));
  for (const std::string name : {"superblock", "keyring"}) {
    const auto backing = first->process_kill();
    for (const std::string& path : {name, name + ".copy"}) {
      backing->store(path, second->load(path).value());
    }
    EXPECT_EQ(open_error(*backing, identity(0)), ErrorCode::tampered);
  }
}

// After an interrupted update of the keyring, the newer one counts.
TEST(VolumeFiles, updated_with_power_lost_at_every_change_open_old_or_new) {
  const auto whole = MemoryBacking::create();
  const auto made = make(*whole, recipients(public_key(0)));
  Keyring updated = made->keyring;
  updated.generation = 2;
  updated.recipients[0].label = "renamed";
  for (std::uint64_t at = 0;; ++at) {
    const auto backing = whole->process_kill();
    backing->fail_at(at);
    const auto saved = save_keyring(*backing, updated, *made->keys);
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
      const auto opened = open_volume_keys(*backing->power_loss(seed), identity(0));
      ASSERT_TRUE(opened) << at << " " << seed << opened.error().message;
      EXPECT_TRUE(opened->keyring.generation == 2 || !saved);
      EXPECT_EQ(opened->keyring.recipients[0].label == "renamed", opened->keyring.generation == 2);
    }
    if (saved) break;
    ASSERT_LT(at, 30u);
  }
}

}  // namespace
}  // namespace nacre::metadata
