// SPDX-License-Identifier: Apache-2.0
// Power that is lost while a volume is being mounted leaves files in db/ that nothing depends on.
// The checker finds no damage then, and the next mount clears them away.
#include "tests/metadata/watched_backing.h"
#include "tests/tools/checker_fixture.h"

namespace nacre::tests {
namespace {

class CheckerAfterPowerLoss : public CheckerTest {
 protected:
  // The media that a power loss leaves, one for each change that a mount makes.
  std::vector<std::shared_ptr<MemoryBacking>> wrecks_of_mount(std::uint64_t survival) {
    std::vector<std::shared_ptr<MemoryBacking>> wrecks;
    std::mutex mutex;
    const auto sound = backing_;
    const auto watched = std::make_shared<WatchedBacking>(sound, [&] {
      const std::lock_guard lock(mutex);
      wrecks.push_back(sound->power_loss(survival));
    });
    auto engine = engine::Engine::create({.thread_count = 1});
    auto volume = fs::Mounted::open(watched, test_keys(), 1, std::move(*engine), options_);
    NACRE_EXPECT_OK(volume);
    return wrecks;
  }
  void expect_sound(std::size_t change) {
    const auto report = check({.deep = true});
    EXPECT_EQ(report.findings.error_count(), 0u) << "change " << change << "\n" << list(report);
  }
};

TEST_F(CheckerAfterPowerLoss, a_mount_cut_short_is_no_damage) {
  for (const std::uint64_t survival : {1u, 2u, 3u}) {
    const auto wrecks = wrecks_of_mount(survival);
    for (std::size_t i = 0; i < wrecks.size(); ++i) {
      backing_ = wrecks[i];
      expect_sound(i);  // MANIFEST-n that CURRENT does not name, LOG, OPTIONS-n.dbtmp
    }
  }
}

TEST_F(CheckerAfterPowerLoss, a_mount_cut_short_leaves_nothing_after_the_next) {
  for (const std::uint64_t survival : {1u, 2u, 3u}) {
    const auto wrecks = wrecks_of_mount(survival);
    for (std::size_t i = 0; i < wrecks.size(); ++i) {
      backing_ = wrecks[i];
      mount();
      unmount();
      expect_sound(i);
      // RocksDB itself never removes those.
      for (const auto& path : backing_->files())
        EXPECT_FALSE(path.ends_with(".dbtmp")) << "change " << i << ": " << path;
    }
  }
}

}  // namespace
}  // namespace nacre::tests
