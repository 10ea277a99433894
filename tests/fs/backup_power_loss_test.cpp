// SPDX-License-Identifier: Apache-2.0
// The target loses power, or the command is killed, at each change that a backup makes to it: then
// the target holds the earlier state or the new one, whole, and running the backup again ends it.
#include "tests/crash/sample.h"
#include "tests/fs/backup_fixture.h"

namespace nacre::tests {
namespace {

class BackupPowerLoss : public BackupTest {
 protected:
  // before: the tree in the target before the run; none if the target is empty.
  void sweep(const std::shared_ptr<MemoryBacking>& old_target, const fs::BackupSource& what,
             const std::vector<Tree>& before, std::uint64_t tried) {
    const Tree after = then_;
    const auto whole = old_target->process_kill();
    NACRE_ASSERT_OK(copy(what, *whole));
    const std::uint64_t count = whole->change_count();
    ASSERT_GT(count, 20u);
    const std::uint64_t stride = sample_.stride(count, tried);
    std::uint64_t states = 0;
    std::uint64_t old_count = 0;
    std::uint64_t new_count = 0;
    for (std::uint64_t change = sample_.next() % stride; change < count; change += stride) {
      for (const std::uint64_t survival : {std::uint64_t{0}, std::uint64_t{1}, sample_.next()}) {
        SCOPED_TRACE(testing::Message() << "seed " << sample_.seed() << ", change " << change
                                        << " of " << count << ", survival " << survival);
        ++states;
        const auto target = old_target->process_kill();
        target->fail_at(change);
        EXPECT_FALSE(copy(what, *target));
        const auto wreck = target->power_loss(survival);
        if (before.empty() && !is_volume(*wreck)) {
          ++old_count;
        } else {
          std::vector<Tree> either = before;
          either.push_back(after);
          EXPECT_TRUE(holds(wreck, either));
          ++(holds(wreck, {after}) ? new_count : old_count);
        }
        NACRE_EXPECT_OK(copy(what, *wreck));
        EXPECT_TRUE(holds(wreck, {after}));
        if (HasFailure()) return;
      }
    }
    sample_.print(states, count, "changes");
    EXPECT_GT(old_count, 0u);
    EXPECT_GT(new_count, 0u);
  }

  Sample sample_;
  Tree then_;
};

TEST_F(BackupPowerLoss, leaves_no_half_of_a_first_backup) {
  work(30);
  then_ = tree_;
  sweep(target_, begin(), {}, 12);
}

TEST_F(BackupPowerLoss, leaves_the_earlier_backup_or_the_new_one) {
  work(30);
  back_up();
  const Tree before = tree_;
  work(30);
  compact();
  then_ = tree_;
  sweep(target_, begin(), {before}, 12);
}

// The new segments are of a write session that the earlier state does not know, the manifest is
// another one, and most of what the earlier state names is gone.
TEST_F(BackupPowerLoss, leaves_one_of_both_when_the_source_was_mounted_anew) {
  work(30);
  back_up();
  const Tree before = tree_;
  unmount();
  mount();
  work(60);
  compact();
  then_ = tree_;
  sweep(target_, begin(), {before}, 12);
}

// The repeated run brings a later state than the interrupted one.
TEST_F(BackupPowerLoss, of_a_run_over_an_interrupted_one_leaves_a_state_that_was) {
  work(30);
  back_up();
  std::vector<Tree> states = {tree_};
  unmount();
  mount();
  work(30);
  auto second = begin();
  const Tree second_tree = tree_;
  const auto counted = target_->process_kill();
  NACRE_ASSERT_OK(copy(second, *counted));
  const std::uint64_t count = counted->change_count();
  std::vector<std::shared_ptr<MemoryBacking>> wrecks;
  for (std::uint64_t i = 1; i <= 3; ++i) {
    const auto target = target_->process_kill();
    target->fail_at(count * (i + 4) / 8);
    EXPECT_FALSE(copy(second, *target));
    wrecks.push_back(target->power_loss(sample_.next()));
  }
  second.snapshot.hold.reset();
  states.push_back(second_tree);
  unmount();
  mount();
  work(30);
  compact();
  then_ = tree_;
  const auto third = begin();
  for (const auto& wreck : wrecks)
    sweep(wreck, third, states, 6);
}

}  // namespace
}  // namespace nacre::tests
