// SPDX-License-Identifier: Apache-2.0
// Power is lost, or the process killed, at each change that a rotation of a small volume makes:
// what is left opens with the same secret, holds every file, and the rotation comes to its end.
#include "tests/crash/sample.h"
#include "tests/fs/rotation_fixture.h"

namespace nacre::tests {
namespace {

class RotationPowerLoss : public RotationTest {
 protected:
  void rotate() {
    if (rotation_->begin(
            {.suite = engine::CipherSuite::aes_256_ctr, .to_format_2 = to_format_2_})) {
      static_cast<void>(rotation_->run({}));
    }
  }
  // Expects the volume to open, to hold every file, and to finish the rotation.
  void expect_recovery(const std::shared_ptr<MemoryBacking>& left) {
    NACRE_ASSERT_OK(try_open(left));
    EXPECT_TRUE(holds_everything());
    if (!keys_.keys->is_rotating() && keys_.keys->current_epoch_number() == 1) {
      NACRE_ASSERT_OK(rotation_->begin({.to_format_2 = to_format_2_}));
    }
    write("after", 9, 3);
    NACRE_ASSERT_OK(rotation_->run({}));
    EXPECT_TRUE(holds_everything());
    close();
    contents_.erase("after");
    expect_rotated(2);
    if (to_format_2_) expect_format_2();
  }
  void expect_format_2() {
    const auto keys = unlock(*backing_);
    NACRE_ASSERT_OK(keys);
    EXPECT_TRUE(keys->superblock.has_format_2);
    EXPECT_EQ(keys->keyring.epochs.back().format, metadata::EpochFormat::two);
  }
  void lose_power_everywhere();

  bool to_format_2_ = false;
  Sample sample_;
};

TEST_F(RotationPowerLoss, anywhere_leaves_a_volume_that_opens_and_ends_its_rotation) {
  lose_power_everywhere();
}

TEST_F(RotationPowerLoss, anywhere_in_a_move_to_format_2_leaves_a_volume_that_opens_and_ends_it) {
  make_volume(engine::CipherSuite::aes_256_gcm, metadata::EpochFormat::one);
  to_format_2_ = true;
  lose_power_everywhere();
}

// So known_volumes knows whatever key a crash leaves.
TEST_F(RotationPowerLoss, behind_the_new_keyring_leaves_a_key_that_was_told_before) {
  open();
  fill(3);
  const auto older = keys_.keys->fingerprint();
  std::optional<engine::Sha256Digest> told;
  std::shared_ptr<MemoryBacking> before, behind;
  rotation_->before_new_key([&](const metadata::KeyTree& next) {
    EXPECT_FALSE(told);
    told = next.fingerprint();
    before = backing_->process_kill();
  });
  rotation_->on_new_key([&] { behind = backing_->power_loss(0); });
  NACRE_ASSERT_OK(rotation_->begin({}));
  ASSERT_TRUE(told && before && behind);
  EXPECT_NE(*told, older);
  const auto found_before = unlock(*before);
  NACRE_ASSERT_OK(found_before);
  EXPECT_EQ(found_before->keys->fingerprint(), older);
  const auto found_behind = unlock(*behind);
  NACRE_ASSERT_OK(found_behind);
  EXPECT_EQ(found_behind->keys->fingerprint(), *told);
  NACRE_ASSERT_OK(rotation_->run({}));
  EXPECT_EQ(keys_.keys->fingerprint(), *told);
}

void RotationPowerLoss::lose_power_everywhere() {
  open();
  fill(9);
  close();
  const auto before = backing_;
  NACRE_ASSERT_OK(try_open(before->process_kill()));
  rotate();
  ASSERT_FALSE(keys_.keys->is_rotating());
  const std::uint64_t count = backing_->change_count();
  abandon();
  ASSERT_GT(count, 60u);
  const std::uint64_t stride = sample_.stride(count, 10);
  std::uint64_t states = 0;
  for (std::uint64_t change = sample_.next() % stride; change < count; change += stride) {
    for (const std::uint64_t survival : {std::uint64_t{0}, std::uint64_t{1}, sample_.next()}) {
      SCOPED_TRACE(testing::Message() << "seed " << sample_.seed() << ", change " << change
                                      << " of " << count << ", survival " << survival);
      ++states;
      const auto wreck = before->process_kill();
      wreck->fail_at(change);
      if (try_open(wreck)) rotate();
      const auto left = wreck->power_loss(survival);
      abandon();
      expect_recovery(left);
      if (HasFailure()) return;
    }
  }
  sample_.print(states, count, "changes");
}

}  // namespace
}  // namespace nacre::tests
