// SPDX-License-Identifier: Apache-2.0
// Power is lost, or the process killed, at each change that a new keyring makes to a volume: then
// the volume opens with the old secrets or with the new ones, never with neither; and once the
// change was reported done, the old keyring is refused.
#include <spdlog/spdlog.h>

#include "metadata/keys/keyring_keeper.h"
#include "metadata/keys/keyring_recipients.h"
#include "metadata/volume_files.h"
#include "tests/crash/sample.h"
#include "tests/fs/volume_fixture.h"
#include "tests/metadata/test_keys.h"
#include "tests/support/format_under_test.h"

namespace nacre::tests {
namespace {

using metadata::Keyring;
using metadata::VolumeSecret;

class KeyringChange : public ::testing::Test {
 protected:
  // identity(0) makes the changes; the others come and go.
  void SetUp() override {
    spdlog::set_level(spdlog::level::off);
    base_ = MemoryBacking::create();
    const auto made = metadata::create_volume_files(
        *base_,
        {.chunk_size_bytes = options_.store.chunk_size_bytes, .format = format_under_test()},
        recipients(public_key(0, "zero"), public_key(1, "one"), passphrase("old", "words")));
    NACRE_ASSERT_OK(made);
    NACRE_ASSERT_OK(fs::Mounted::format(base_, made->keys, 1, {}));
    NACRE_ASSERT_OK(metadata::complete_volume_files(*base_, *made));
  }

  Result<OpenVolume> open(const std::shared_ptr<MemoryBacking>& backing,
                          const metadata::VolumeKeys& keys) {
    NACRE_ASSIGN(auto engine, engine::Engine::create({.thread_count = 1}));
    return fs::Mounted::open(backing, keys.keys, keys.keyring.generation, std::move(engine),
                             options_);
  }

  // Changes the keyring of an unmounted volume, as `nacre key` does.
  Result<> change(const std::shared_ptr<MemoryBacking>& backing, const Keyring& next) {
    NACRE_ASSIGN(const auto keys, open_volume_keys(*backing, VolumeSecret(identity(0))));
    NACRE_ASSIGN(const auto volume, open(backing, keys));
    metadata::KeyringKeeper keeper(backing, keys.keys, keys.keyring, [&](std::uint64_t generation) {
      return volume.mounted().note_keyring_generation(generation);
    });
    NACRE_TRY(keeper.replace(next));
    return volume.mounted().close();
  }

  // Expects the volume to open, whole, with identity(0) and with exactly one of the two secrets.
  // Returns whether that is the new one.
  bool opens_with_new(const std::shared_ptr<MemoryBacking>& backing, const VolumeSecret& old_secret,
                      const VolumeSecret& new_secret) {
    const auto keys = open_volume_keys(*backing, VolumeSecret(identity(0)));
    NACRE_EXPECT_OK(keys);
    if (!keys) return false;
    const bool with_old = open_volume_keys(*backing, old_secret).has_value();
    const bool with_new = open_volume_keys(*backing, new_secret).has_value();
    EXPECT_NE(with_old, with_new);
    const auto volume = open(backing, *keys);
    NACRE_EXPECT_OK(volume);
    if (volume) NACRE_EXPECT_OK(volume->mounted().close());
    return with_new;
  }

  void sweep(const Keyring& next, const VolumeSecret& old_secret, const VolumeSecret& new_secret) {
    const auto whole = base_->process_kill();
    NACRE_ASSERT_OK(change(whole, next));
    const std::uint64_t count = whole->change_count();
    const std::uint64_t stride = sample_.stride(count, 20);
    std::uint64_t old_count = 0, new_count = 0;
    for (std::uint64_t at = sample_.next() % stride; at < count; at += stride) {
      for (const std::uint64_t survival : {std::uint64_t{0}, std::uint64_t{1}, sample_.next()}) {
        SCOPED_TRACE(testing::Message() << "seed " << sample_.seed() << ", change " << at << " of "
                                        << count << ", survival " << survival);
        const auto backing = base_->process_kill();
        backing->fail_at(at);
        const bool was_reported = change(backing, next).has_value();
        const auto wreck = backing->power_loss(survival);
        const bool is_new = opens_with_new(wreck, old_secret, new_secret);
        EXPECT_TRUE(is_new || !was_reported);
        ++(is_new ? new_count : old_count);
        // The opening above was a mount. The state that it left must survive power loss in the same
        // way.
        EXPECT_EQ(opens_with_new(wreck->power_loss(0), old_secret, new_secret), is_new);
        if (HasFailure()) return;
      }
      // The process is killed at that change. The volume is mounted while bytes are in the page
      // cache only, and then power is lost.
      const auto killed = base_->process_kill();
      killed->fail_at(at);
      static_cast<void>(change(killed, next));
      killed->clear_failures();
      const bool is_new = opens_with_new(killed, old_secret, new_secret);
      EXPECT_EQ(opens_with_new(killed->power_loss(0), old_secret, new_secret), is_new)
          << "seed " << sample_.seed() << ", killed at change " << at << " of " << count;
      if (HasFailure()) return;
    }
    sample_.print(old_count + new_count, count, "changes");
    EXPECT_GT(old_count, 0u);
    EXPECT_GT(new_count, 0u);
  }

  metadata::VolumeKeys base_keys() const {
    return open_volume_keys(*base_, VolumeSecret(identity(0))).value();
  }

  fs::VolumeOptions options_ = test_volume_options();
  std::shared_ptr<MemoryBacking> base_;
  Sample sample_;
};

TEST_F(KeyringChange, of_a_recipient_taken_for_another_survives_power_loss_at_every_change) {
  const auto keys = base_keys();
  auto next = metadata::remove_recipient(keys.keyring, *keys.access, 1).value();
  next = metadata::add_recipient(std::move(next), *keys.access, public_key(2)).value();
  next.generation = keys.keyring.generation + 1;
  sweep(next, identity(1), identity(2));
}

TEST_F(KeyringChange, of_a_passphrase_survives_power_loss_at_every_change) {
  auto keys = open_volume_keys(*base_, VolumeSecret(secret("old"))).value();
  const auto next = metadata::change_passphrase(
      keys.keyring, *keys.access, std::get<metadata::NewPassphrase>(passphrase("new")));
  NACRE_ASSERT_OK(next);
  sweep(*next, secret("old"), secret("new"));
}

TEST_F(KeyringChange, once_reported_refuses_the_old_keyring_put_back) {
  const auto keys = base_keys();
  const auto next = metadata::remove_recipient(keys.keyring, *keys.access, 1).value();
  const auto old_text = base_->load("keyring").value();
  const auto backing = base_->process_kill();
  NACRE_ASSERT_OK(change(backing, next));
  const auto after = backing->power_loss(0);
  // One old copy is put back: the newer one counts.
  after->store("keyring", old_text);
  EXPECT_CODE(wrong_key, open_volume_keys(*after, VolumeSecret(identity(1))));
  const auto torn = open_volume_keys(*after, VolumeSecret(identity(0)));
  NACRE_ASSERT_OK(torn);
  EXPECT_TRUE(torn->keyring_is_torn);
  // Both old copies are put back.
  after->store("keyring.copy", old_text);
  const auto rolled_back = open_volume_keys(*after, VolumeSecret(identity(1)));
  NACRE_ASSERT_OK(rolled_back);
  EXPECT_CODE(rolled_back, open(after, *rolled_back));
}

// While the volume is mounted, too: the row is durable when the change is reported.
TEST_F(KeyringChange, of_a_mounted_volume_is_durable_when_it_is_reported) {
  const auto keys = base_keys();
  const auto next = metadata::remove_recipient(keys.keyring, *keys.access, 1).value();
  const auto old_text = base_->load("keyring").value();
  const auto volume = open(base_, keys);
  NACRE_ASSERT_OK(volume);
  metadata::KeyringKeeper keeper(base_, keys.keys, keys.keyring, [&](std::uint64_t generation) {
    return volume->mounted().note_keyring_generation(generation);
  });
  NACRE_ASSERT_OK(keeper.replace_recipients(as_bytes(encode_keyring(next, *keys.keys))));
  const auto after = base_->power_loss(0);
  after->store("keyring", old_text);
  after->store("keyring.copy", old_text);
  const auto put_back = open_volume_keys(*after, VolumeSecret(identity(1)));
  NACRE_ASSERT_OK(put_back);
  EXPECT_CODE(rolled_back, open(after, *put_back));
  NACRE_EXPECT_OK(volume->mounted().close());
}

TEST_F(KeyringChange, of_a_read_only_volume_is_refused) {
  const auto keys = base_keys();
  options_.read_only = true;
  const auto volume = open(base_, keys);
  NACRE_ASSERT_OK(volume);
  EXPECT_CODE(read_only, volume->mounted().note_keyring_generation(2));
  NACRE_EXPECT_OK(volume->mounted().close());
}

}  // namespace
}  // namespace nacre::tests
