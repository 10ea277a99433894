// SPDX-License-Identifier: Apache-2.0
// Power that is lost at any change of a repair, or of taking one back: the next repair makes a
// sound volume, and nothing that was good is lost.
#include <algorithm>

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
  // The media that a power loss leaves, one for each change that work makes.
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

// A plan that was only written, or carried out in part, is taken back, also if power loss tore
// bytes of a file, so that some are old and some new.
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
  std::uint64_t tried = 0;
  for (std::size_t i = sample.seed() % stride; i < wrecks.size(); i += stride, ++tried) {
    SCOPED_TRACE(::testing::Message() << "change " << i << ", seed " << sample.seed());
    NACRE_EXPECT_OK(fs::undo_plan(wrecks[i], volume_keys, draft->plan));
    EXPECT_EQ(difference(before, state_of(wrecks[i])), "");
    if (HasFailure()) return;
  }
  sample.print(tried, wrecks.size(), "taken back, changes");
}

// Each sector that a plan writes may have its old or its new bytes. Any other bytes were written by
// another program.
TEST_F(RepairPowerLoss, torn_bytes_are_taken_back_and_other_bytes_are_not) {
  const auto volume_keys = opened_keys(chunk_size, 1);
  const auto before = state_of(backing_);
  const auto done = Repairer(backing_, volume_keys).repair();
  NACRE_ASSERT_OK(done);
  std::uint64_t count = 0;
  for (const auto& step : done->draft.plan.steps) {
    const auto* edit = std::get_if<fs::BytesEdit>(&step.change);
    if (edit == nullptr) continue;
    ++count;
    const auto differ =
        std::mismatch(edit->before.begin(), edit->before.end(), edit->after.begin());
    ASSERT_NE(differ.first, edit->before.end());
    const auto place = static_cast<std::size_t>(differ.first - edit->before.begin());
    const auto with_byte = [&](Byte value) {
      const auto changed = backing_->process_kill();
      Bytes bytes = *changed->load(edit->path);
      bytes.at(edit->offset + place) = value;
      changed->store(edit->path, bytes);
      return changed;
    };
    const auto torn = with_byte(edit->before[place]);
    NACRE_EXPECT_OK(fs::undo_plan(torn, volume_keys, done->draft.plan));
    EXPECT_EQ(difference(before, state_of(torn)), "");
    Byte other = Byte{1};
    while (other == edit->before[place] || other == edit->after[place])
      ++other;
    const auto changed = with_byte(other);
    EXPECT_CODE(not_permitted, fs::undo_plan(changed, volume_keys, done->draft.plan));
  }
  EXPECT_GT(count, 0u);
}

}  // namespace
}  // namespace nacre::tests
