// SPDX-License-Identifier: Apache-2.0
// The key tree gives the keys that its description says (computed apart, from RFC 5869's
// definition), the same ones each time, and different ones for everything that differs.
#include "metadata/keys/keys.h"

#include <gtest/gtest.h>

#include <csignal>
#include <set>
#include <thread>

#include "metadata/text/text_bytes.h"

namespace nacre::metadata {
namespace {

Bytes counting(Byte first, std::size_t size) {
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i)
    bytes[i] = static_cast<Byte>(first + i);
  return bytes;
}

engine::SessionSalt salt_of(std::uint64_t number) {
  engine::SessionSalt salt = {};
  store_le(salt.data(), number);
  return salt;
}

class Keys : public ::testing::Test {
 protected:
  Keys() {
    engine::VolumeId volume_id;
    const Bytes id = counting(0xa0, 16);
    std::copy(id.begin(), id.end(), volume_id.begin());
    std::vector<EpochKey> epochs;
    epochs.push_back({.number = 5, .key = SecretBytes(counting(0x70, 32))});
    epochs.push_back({.number = 2, .key = SecretBytes(counting(0x20, 32))});
    keys = std::make_unique<KeyTree>(volume_id, SecretBytes(counting(0, 32)), std::move(epochs));
  }
  std::unique_ptr<KeyTree> keys;
};

TEST_F(Keys, are_derived_as_described) {
  engine::SessionSalt salt;
  const Bytes salt_bytes = counting(0x50, 16);
  std::copy(salt_bytes.begin(), salt_bytes.end(), salt.begin());
  EXPECT_EQ(to_hex((*keys->session_key(2, salt))->key.view()),
            "80ede21e1265075212329bd05efc67ad7f027f23c64953ea640da9b3cfad9f5d");
  EXPECT_EQ((*keys->session_key(2, salt))->suite, engine::CipherSuite::aes_256_gcm);
  EXPECT_EQ(to_hex(keys->database_file_key(2, salt_bytes, "CURRENT")->view()),
            "c7d9e93650b964152481ff8ded584abef1c6254d1f1767346876dcc1fdb12527");
  EXPECT_EQ(to_hex(keys->volume_subkey("keyring mac").view()),
            "6d718a1d2da381c60fd6211c789887d5ae6aad8300cccbc7ca83ab0c33cd7ac4");
  EXPECT_EQ(to_hex(keys->fingerprint()),
            "6160cbc7ed405ac3bcb7015a62347c2c90fe6cbaa036e54029b540299a47b813");
}

TEST_F(Keys, current_epoch_is_the_highest) {
  EXPECT_EQ(keys->current_epoch().number, 5u);
  EXPECT_EQ(keys->current_epoch().key.view()[0], 0x70);
}

TEST_F(Keys, differ_with_epoch_salt_and_purpose) {
  std::set<std::string> seen;
  const auto add = [&](ByteView key) { EXPECT_TRUE(seen.insert(to_hex(key)).second); };
  for (const std::uint32_t epoch : {2u, 5u}) {
    for (const std::uint64_t number : {0u, 1u}) {
      add((*keys->session_key(epoch, salt_of(number)))->key.view());
      add(keys->database_file_key(epoch, salt_of(number), "CURRENT")->view());
    }
  }
  for (const char* purpose : {"superblock mac", "keyring mac", "epoch wrap", "fingerprint"}) {
    add(keys->volume_subkey(purpose).view());
  }
}

TEST_F(Keys, of_an_unknown_epoch_are_refused) {
  EXPECT_EQ(keys->session_key(3, salt_of(0)).error().code, ErrorCode::corrupt);
  EXPECT_EQ(keys->database_file_key(6, salt_of(0), "CURRENT").error().code, ErrorCode::corrupt);
}

TEST_F(Keys, of_sessions_are_kept_and_right_beyond_what_is_kept) {
  const auto first = keys->session_key(2, salt_of(0)).value();
  EXPECT_EQ(keys->session_key(2, salt_of(0)).value(), first);
  const std::string expected = to_hex(first->key.view());
  for (std::uint64_t i = 1; i < 3000; ++i)
    ASSERT_TRUE(keys->session_key(2, salt_of(i)));
  EXPECT_EQ(to_hex((*keys->session_key(2, salt_of(0)))->key.view()), expected);
  EXPECT_EQ(to_hex(first->key.view()), expected);
}

TEST_F(Keys, may_be_asked_for_by_many_threads) {
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (std::uint64_t i = 0; i < 2000; ++i) {
        EXPECT_TRUE(keys->session_key(i % 2 == 0 ? 2 : 5, salt_of(i % 1500)));
      }
    });
  }
}

TEST_F(Keys, of_an_epoch_that_is_no_later_one_end_the_process) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(keys->begin_rotation(SecretBytes(counting(1, 32)),
                                   {.number = 5, .key = SecretBytes(counting(3, 32))}, {}),
              testing::KilledBySignal(SIGABRT),
              "an internal check failed.*epoch 5 follows epoch 5");
}

}  // namespace
}  // namespace nacre::metadata
