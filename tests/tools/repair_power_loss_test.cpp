// SPDX-License-Identifier: Apache-2.0
// Power that is lost at any change of a repair, or of taking one back: the next repair makes a
// sound volume, and nothing that was good is lost.
#include "tests/crash/sample.h"
#include "tests/metadata/watched_backing.h"
#include "tests/tools/checker_fixture.h"
#include "tests/tools/repair_fixture.h"

namespace nacre::tests {
namespace {

using metadata::Table;

class RepairPowerLoss : public CheckerTest {
 protected:
  void SetUp() override {
    CheckerTest::SetUp();
    store_superblock_and_keyring(*backing_, chunk_size);
    flip(record_of(large_, 2), 100);
    flip(record_of(sparse_, 10), 30);
    edit_inode(small_, [](metadata::InodeRow& row) { row.link_count = 9; });
    edit([&](metadata::Database& database) {
      database.erase(Table::dentries, name_key(database, "inner"));
      database.erase(Table::inodes, metadata::inode_key(sparse_));
    });
    edit_file("superblock.copy", [](Bytes& bytes) { bytes.at(30) ^= 1; });
    edit_file(path_of(record_of(large_, 0).location.segment),
              [](Bytes& bytes) { bytes.at(40) ^= 1; });
  }
  // What power loss leaves before each change that work makes.
  std::vector<std::shared_ptr<MemoryBacking>> wrecks_of(
      const std::function<Result<>(const std::shared_ptr<metadata::BackingDirectory>&)>& work,
      const Sample& sample) {
    std::vector<std::shared_ptr<MemoryBacking>> wrecks;
    std::mutex mutex;
    std::uint64_t seed = sample.seed() % 1000;
    const auto sound = backing_;
    const auto watched = std::make_shared<WatchedBacking>(sound, [&] {
      const std::lock_guard lock(mutex);
      wrecks.push_back(sound->power_loss(seed++));
    });
    NACRE_EXPECT_OK(work(watched));
    return wrecks;
  }
  void expect_finished() {
    Repairer repairer(backing_, opened_keys(chunk_size, 1));
    const auto done = repairer.repair();
    NACRE_ASSERT_OK(done);
    EXPECT_EQ(done->draft.left.error_count(), 0u) << text_of(done->draft.left);
    const auto report = repairer.check();
    EXPECT_EQ(report.findings.error_count(), 0u) << list(report);
    EXPECT_EQ(report.structure->lost_bytes, 2 * chunk_size);
    const auto again = repairer.plan();
    NACRE_ASSERT_OK(again);
    EXPECT_TRUE(again->plan.steps.empty()) << text_of(again->plan);
    mount();
    EXPECT_EQ(read(small_), "a few bytes");
    Bytes out(2 * chunk_size + 100);
    const auto count = volume().read(large_, 3 * chunk_size, out);
    NACRE_EXPECT_OK(count);
    EXPECT_EQ(as_text(out), noise(5 * chunk_size + 100, 1).substr(3 * chunk_size));
    unmount();
  }
  void sweep(const std::vector<std::shared_ptr<MemoryBacking>>& wrecks, const Sample& sample,
             std::string_view what) {
    const auto stride = sample.stride(wrecks.size(), 30);
    std::uint64_t tried = 0;
    for (std::size_t i = sample.seed() % stride; i < wrecks.size(); i += stride, ++tried) {
      SCOPED_TRACE(::testing::Message() << what << ", change " << i << " of " << wrecks.size()
                                        << ", seed " << sample.seed());
      backing_ = wrecks[i];
      expect_finished();
      if (HasFailure()) return;
    }
    sample.print(tried, wrecks.size(), what);
  }
};

TEST_F(RepairPowerLoss, at_any_change_of_a_repair_is_made_good_by_the_next) {
  const Sample sample;
  const auto volume_keys = opened_keys(chunk_size, 1);
  const auto draft = Repairer(backing_, volume_keys).plan();
  NACRE_ASSERT_OK(draft);
  const auto wrecks = wrecks_of(
      [&](const auto& directory) -> Result<> {
        NACRE_TRY(fs::save_plan(*directory, *test_keys(), draft->plan));
        return fs::apply_plan(directory, volume_keys, draft->plan);
      },
      sample);
  sweep(wrecks, sample, "changes of a repair");
}

TEST_F(RepairPowerLoss, at_any_change_of_an_undo_is_made_good_by_the_next) {
  const Sample sample;
  const auto volume_keys = opened_keys(chunk_size, 1);
  const auto done = Repairer(backing_, volume_keys).repair();
  NACRE_ASSERT_OK(done);
  const auto wrecks = wrecks_of(
      [&](const auto& directory) -> Result<> {
        const auto undone = fs::undo_plan(directory, volume_keys, done->draft.plan);
        if (!undone) return tl::unexpected(undone.error());
        return {};
      },
      sample);
  sweep(wrecks, sample, "changes of an undo");
}

// A plan that was only written, or made in part, can be taken back; but for bytes of a file that
// power loss tore, which are neither old nor new: then undo refuses, and changes nothing.
TEST_F(RepairPowerLoss, at_any_change_leaves_a_plan_that_can_be_taken_back) {
  const Sample sample;
  const auto volume_keys = opened_keys(chunk_size, 1);
  const auto before = state_of(backing_);
  const auto draft = Repairer(backing_, volume_keys).plan();
  NACRE_ASSERT_OK(draft);
  NACRE_ASSERT_OK(fs::save_plan(*backing_, *test_keys(), draft->plan));
  const auto wrecks = wrecks_of(
      [&](const auto& directory) { return fs::apply_plan(directory, volume_keys, draft->plan); },
      sample);
  const auto stride = sample.stride(wrecks.size(), 30);
  std::uint64_t undone_count = 0, refused_count = 0;
  for (std::size_t i = sample.seed() % stride; i < wrecks.size(); i += stride) {
    SCOPED_TRACE(::testing::Message() << "change " << i << ", seed " << sample.seed());
    const auto wreck = wrecks[i];
    const auto found = state_of(wreck);
    const auto undone = fs::undo_plan(wreck, volume_keys, draft->plan);
    if (undone) {
      ++undone_count;
      EXPECT_EQ(difference(before, state_of(wreck)), "");
    } else {
      ++refused_count;
      EXPECT_EQ(undone.error().code, ErrorCode::not_permitted) << undone.error().message;
      EXPECT_EQ(difference(found, state_of(wreck)), "");
    }
  }
  sample.print(undone_count, wrecks.size(), "taken back, changes");
  EXPECT_GT(undone_count, refused_count);
}

}  // namespace
}  // namespace nacre::tests
