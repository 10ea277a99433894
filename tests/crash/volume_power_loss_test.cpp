// SPDX-License-Identifier: Apache-2.0
// Power is lost at every change that a script makes to the volume directory: before it, so that all
// changes so far are what may survive, be lost, or be torn. The volume must then be clean, and show
// what history.h allows.
#include <algorithm>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include "tests/crash/recovery.h"
#include "tests/crash/sample.h"
#include "tests/crash/scripts.h"
#include "tests/crash/worked_volume.h"
#include "tests/metadata/watched_backing.h"

namespace nacre::tests {
namespace {

using Script = std::function<void(WorkedVolume&)>;

constexpr std::uint64_t small_disk_size_bytes = 128u << 20;

class VolumePowerLoss : public ::testing::Test {
 protected:
  void SetUp() override {
    spdlog::set_level(spdlog::level::off);  // each state has its warnings
    formatted_ = MemoryBacking::create();
    formatted_->set_capacity(small_disk_size_bytes);
    WorkedVolume::format(formatted_);
  }

  // Cuts power at the changes of the script. Without NACRE_LONG about `tried` states are tried.
  void sweep(const Script& script, std::uint64_t tried) {
    const std::uint64_t count = count_changes(script);
    ASSERT_GT(count, 50u);
    const auto wrecks = wrecks_of(script, sample_.stride(count, tried));
    sample_.print(wrecks.size(), count, "changes");
    // Each change gives at least two states. Two runs of a script may differ a little in their
    // number of changes.
    ASSERT_GE(wrecks.size(), std::min(count, tried) * 3 / 2);
    std::uint64_t number = 0;
    for (const Wreck& wreck : wrecks) {
      SCOPED_TRACE(testing::Message() << "seed " << sample_.seed() << ", change " << wreck.change
                                      << " of " << count << ", survival " << wreck.survival);
      expect_recovery(wreck.backing, options_, volume_->history(), wreck.promises,
                      number++ % 3 == 0);
      if (HasFailure()) return;
    }
  }

  // The disk fails at a change and for ever after. The volume goes on as far as it can, and must
  // confirm nothing that is not durable.
  void sweep_dying_disk(const Script& script, std::uint64_t tried) {
    const std::uint64_t count = count_changes(script);
    const std::uint64_t stride = sample_.stride(count, tried);
    std::uint64_t states = 0;
    for (std::uint64_t change = sample_.next() % stride; change < count; change += stride) {
      const std::uint64_t survival = survivals(states)[states % 2];
      ++states;
      SCOPED_TRACE(testing::Message() << "seed " << sample_.seed() << ", change " << change
                                      << " of " << count << ", survival " << survival);
      const auto backing = formatted_->process_kill();
      backing->fail_at(change);
      WorkedVolume volume(backing, options_, {ErrorCode::io, ErrorCode::read_only});
      volume.open();
      if (volume.is_open()) script(volume);
      if (volume.is_open()) volume.close();
      expect_recovery(backing->power_loss(survival), options_, volume.history(), volume.promises());
      if (HasFailure()) return;
    }
    sample_.print(states, count, "changes");
    EXPECT_GE(states, std::min(count, tried));
  }

  fs::VolumeOptions options_ = worked_volume_options();
  Sample sample_;

 private:
  struct Wreck {
    std::uint64_t change = 0;
    std::uint64_t survival = 0;  // as for MemoryBacking::power_loss()
    Promises promises;
    std::shared_ptr<MemoryBacking> backing;
  };

  std::uint64_t count_changes(const Script& script) {
    const auto backing = formatted_->process_kill();
    WorkedVolume volume(backing, options_, {});
    volume.open();
    script(volume);
    volume.expect_up_to_date();
    volume.close();
    return backing->change_count();
  }

  // The seeds of power loss: 0 keeps no unsynced change, 1 keeps all of them, and the others keep
  // parts.
  std::vector<std::uint64_t> survivals(std::uint64_t number) {
    const std::uint64_t some = 2 + sample_.next() % 1'000'000;
    if (sample_.is_long()) return {0, 1, some, some + 1, some + 2, some + 3, some + 4};
    return {some, number % 3};
  }

  std::vector<Wreck> wrecks_of(const Script& script, std::uint64_t stride) {
    std::vector<Wreck> wrecks;
    std::mutex mutex;
    std::uint64_t change = 0;
    std::uint64_t next = sample_.next() % stride;
    const auto backing = formatted_->process_kill();
    const auto watched = std::make_shared<WatchedBacking>(backing, [&] {
      const std::lock_guard lock(mutex);
      if (change++ != next) return;
      next += stride;
      for (const std::uint64_t survival : survivals(change)) {
        Wreck wreck{.change = change - 1, .survival = survival, .promises = volume_->promises()};
        wreck.backing = backing->power_loss(survival);
        wreck.promises.begun = volume_->promises().begun;
        wrecks.push_back(std::move(wreck));
      }
    });
    volume_ = std::make_unique<WorkedVolume>(watched, options_, std::set<ErrorCode>());
    volume_->open();
    script(*volume_);
    volume_->close();
    return wrecks;
  }

  std::shared_ptr<MemoryBacking> formatted_;
  std::unique_ptr<WorkedVolume> volume_;
};

TEST_F(VolumePowerLoss, names_are_those_of_one_moment) {
  sweep(change_names, 50);
}

TEST_F(VolumePowerLoss, contents_are_old_or_new) {
  sweep(change_contents, 50);
}

TEST_F(VolumePowerLoss, contents_are_old_or_new_where_small_writes_are_not_inlined) {
  options_.inline_commit_bytes_max = 0;
  sweep(change_contents, 30);
}

TEST_F(VolumePowerLoss, a_volume_that_is_opened_and_closed_loses_nothing) {
  sweep(reopen_often, 55);
}

TEST_F(VolumePowerLoss, a_checkpoint_cut_short_leaves_the_volume_and_the_one_before) {
  sweep(write_checkpoints, 55);
}

TEST_F(VolumePowerLoss, space_that_is_set_aside_or_zeroed_is_old_or_new) {
  sweep(allocate_and_zero, 50);
}

TEST_F(VolumePowerLoss, compaction_leaves_the_old_place_of_a_record_or_the_new) {
  options_.store.segment_size_bytes = 32u << 10;
  options_.background_compaction = false;  // the script says when
  sweep(compact_often, 60);
}

TEST_F(VolumePowerLoss, a_commit_of_many_flushes_is_one_commit) {
  options_.flush_size_bytes_max = 8u << 20;
  options_.store.chunk_size_bytes = 64u << 10;
  options_.store.segment_size_bytes = 4u << 20;
  sweep(write_much, 15);
}

TEST_F(VolumePowerLoss, random_work_is_found_as_it_was_at_some_moment) {
  const std::uint64_t seed = sample_.next();
  sweep([&](WorkedVolume& volume) { work_at_random(volume, seed); }, 55);
}

TEST_F(VolumePowerLoss, a_disk_that_dies_takes_no_names_that_were_confirmed) {
  sweep_dying_disk(change_names, 12);
}

TEST_F(VolumePowerLoss, a_disk_that_dies_takes_no_contents_that_were_confirmed) {
  sweep_dying_disk(change_contents, 12);
}

TEST_F(VolumePowerLoss, a_disk_that_dies_under_random_work_takes_nothing_that_was_confirmed) {
  const std::uint64_t seed = sample_.next();
  sweep_dying_disk([&](WorkedVolume& volume) { work_at_random(volume, seed); }, 12);
}

}  // namespace
}  // namespace nacre::tests
