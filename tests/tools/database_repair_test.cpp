// SPDX-License-Identifier: Apache-2.0
// Repairs of a damaged db/. They make a sound volume with all that can be recovered, and report
// what is older. An undo restores every byte.
#include <algorithm>
#include <functional>
#include <map>
#include <random>
#include <set>

#include <fmt/format.h>

#include "fs/repair/database_rebuild.h"
#include "fs/repair/database_swap.h"
#include "fs/repair/database_view.h"
#include "tests/crash/sample.h"
#include "tests/metadata/watched_backing.h"
#include "tests/tools/checker_fixture.h"
#include "tests/tools/repair_fixture.h"

namespace nacre::tests {
namespace {

constexpr std::uint64_t header_size = 64;
constexpr std::uint64_t page_size = 4096;
constexpr int file_count = 240;

// A rescue whose rows of inodes all lie in RocksDB's last level, which drops their numbers, and may
// be older than some that are lost.
class InodesOfTheLastLevel final : public metadata::DatabaseRescue {
 public:
  explicit InodesOfTheLastLevel(std::unique_ptr<metadata::DatabaseRescue> whole)
      : whole_(std::move(whole)) {}
  const std::vector<Error>& damage() const override { return whole_->damage(); }
  const std::vector<metadata::LostRows>& lost_rows() const override { return lost_; }
  bool may_have_lost_groups() const override { return false; }
  bool has_manifest() const override { return true; }
  Result<> scan(metadata::Table table,
                const std::function<Result<>(const metadata::RescuedRow&)>& visit) const override {
    return whole_->scan(table, [&](metadata::RescuedRow row) {
      if (table == metadata::Table::inodes) row.sequence = 0;
      row.is_doubtful = table == metadata::Table::inodes;
      return visit(row);
    });
  }

 private:
  const std::unique_ptr<metadata::DatabaseRescue> whole_;
  const std::vector<metadata::LostRows> lost_{{.table = metadata::Table::inodes,
                                               .from = {},
                                               .to = {},
                                               .sequence_max = UINT64_MAX,
                                               .file = "db/000007.sst"}};
};

class DatabaseRepair : public CheckerTest {
 protected:
  using CheckerTest::list;
  using VolumeTest::list;

  void SetUp() override {
    CheckerTest::SetUp();
    store_superblock_and_keyring(*backing_, chunk_size);
    mount();
    for (int i = 0; i < file_count; ++i)
      add(i, content_of(i));
    NACRE_EXPECT_OK(volume().sync_all());
    unmount();  // writes a checkpoint
    mount();
    // Changes that the checkpoint does not know: files that are gone, new, or longer than before.
    for (int i = 0; i < 20; ++i)
      NACRE_EXPECT_OK(volume().unlink(root, fmt::format("file {}", i)));
    for (int i = 20; i < 40; ++i)
      write(files_.at(i), content_of(i).size(), "longer");
    for (int i = file_count; i < file_count + 30; ++i)
      add(i, content_of(i));
    NACRE_EXPECT_OK(volume().sync_all());
    killed_ = backing_->process_kill();
    unmount();
    sound_ = backing_;
  }

  void add(int i, const std::string& content) {
    files_[i] = make_file(root, fmt::format("file {}", i));
    write(files_[i], 0, content);
  }
  static std::string content_of(int i) {
    return noise(300 + (i % 7) * 3000, static_cast<unsigned>(i));
  }
  // The content when the volume was closed. None if the file was gone by then.
  static std::optional<std::string> last_content_of(int i) {
    if (i < 20) return std::nullopt;
    return content_of(i) + (i < 40 ? "longer" : "");
  }
  // Damages each frame of the newest log in turn. Returns how many did not pass for a torn end.
  int expect_frames_repaired(const MemoryBacking& killed) {
    std::string path;
    for (const auto& name : killed.files()) {
      if (name.ends_with(".log")) path = std::max(path, name);
    }
    const std::string text(as_text(*killed.load(path)));
    int damaged = 0;
    for (std::size_t at = text.find("NFRM"); at != text.npos; at = text.find("NFRM", at + 1)) {
      SCOPED_TRACE(at);
      backing_ = killed.process_kill();
      flip_byte(path, at + 40);
      const auto probe = repairer().plan({.scratch = MemoryBacking::create()});
      NACRE_EXPECT_OK(probe);
      if (HasFailure() || !probe->database) continue;
      expect_repaired();
      ++damaged;
    }
    return damaged;
  }
  Repairer repairer() { return {backing_, opened_keys(chunk_size, keyring_generation_)}; }

  static std::map<std::string, Bytes> bytes_of(const MemoryBacking& backing) {
    std::map<std::string, Bytes> all;
    for (const auto& path : backing.files()) {
      if (!path.starts_with("repair/") && path != "ballast") all[path] = *backing.load(path);
    }
    return all;
  }
  void flip_byte(const std::string& path, std::uint64_t offset) {
    edit_file(path, [&](Bytes& bytes) { bytes.at(offset) ^= 4; });
  }

  // Every file has the content that it had, or is among those that the report names. Returns how
  // many are not as they were.
  int expect_files(const fs::RepairDraft& draft) {
    std::set<std::string> named;
    const auto name_all = [&](const auto& entries) {
      for (const auto& entry : entries)
        named.insert(entry.paths.begin(), entry.paths.end());
    };
    name_all(draft.database->older);
    name_all(draft.plan.lost);
    name_all(draft.plan.steps);
    bool has_unnamed = draft.database->may_have_lost_groups;
    int changed = 0;
    mount();
    for (const auto& [i, inode] : files_) {
      const std::string name = fmt::format("file {}", i);
      const auto expected = last_content_of(i);
      const auto found = volume().lookup(root, name);
      std::optional<std::string> now;
      if (found) {
        Bytes out(100'000);
        const auto count = volume().read(found->inode, 0, out);
        now = count ? std::string(as_text(ByteView(out).first(*count))) : "an error";
        volume().forget(found->inode, 1);
      }
      if (now == expected) continue;
      ++changed;
      // A file of which nothing is left but its record cannot be named.
      const bool is_gone = !now;
      EXPECT_TRUE(is_gone || has_unnamed || named.contains("/" + name)) << name;
    }
    unmount();
    return changed;
  }

  // Returns how many files are not as they were.
  int expect_repaired(const fs::RepairOptions& options = {}) {
    const auto before = bytes_of(*backing_);
    const auto done = repairer().repair(options);
    NACRE_EXPECT_OK(done);
    if (!done) return 0;
    EXPECT_TRUE(done->draft.database);
    if (!done->draft.database) return 0;
    EXPECT_EQ(done->draft.left.error_count(), 0u) << text_of(done->draft.left);
    const auto report = repairer().check();
    EXPECT_EQ(report.findings.error_count(), 0u) << list(report) << text_of(done->draft.plan);
    const auto again = repairer().plan();
    NACRE_EXPECT_OK(again);
    EXPECT_TRUE(!again || again->plan.steps.empty()) << text_of(again->plan);
    const auto repaired = backing_;
    backing_ = repaired->process_kill();
    const int changed = expect_files(done->draft);
    backing_ = repaired;
    const auto plan = fs::load_plan(*backing_, *test_keys(), done->name);
    NACRE_EXPECT_OK(plan);
    const auto volume_keys = opened_keys(chunk_size, 1);
    const auto undone = fs::undo_plan(backing_, volume_keys, *plan);
    NACRE_EXPECT_OK(undone);
    EXPECT_TRUE(undone && *undone);
    EXPECT_TRUE(before == bytes_of(*backing_)) << "undone";
    const auto twice = fs::undo_plan(backing_, volume_keys, *plan);
    EXPECT_TRUE(twice && !*twice) << "undone twice";
    return changed;
  }

  void damage_second_pages() {
    backing_ = sound_->process_kill();  // all of it durable
    std::string largest;
    std::size_t size_max = header_size + page_size + 10;  // has a second page
    for (const auto& path : sound_->files()) {
      const std::size_t size = sound_->load(path)->size();
      if (!path.ends_with(".sst") || size <= size_max) continue;
      largest = path;
      size_max = size;
    }
    ASSERT_NE(largest, "");
    flip_byte(largest, header_size + page_size + 10);
  }
  // The media that a power loss leaves, one for each change that work makes.
  std::vector<std::shared_ptr<MemoryBacking>> wrecks_of(
      const Sample& sample,
      const std::function<Result<>(const std::shared_ptr<metadata::BackingDirectory>&)>& work) {
    std::vector<std::shared_ptr<MemoryBacking>> wrecks;
    std::mutex mutex;
    std::uint64_t seed = sample.seed() % 1000;
    const auto subject = backing_;
    const auto watched = std::make_shared<WatchedBacking>(subject, [&] {
      const std::lock_guard lock(mutex);
      wrecks.push_back(subject->power_loss(seed++));
    });
    NACRE_EXPECT_OK(work(watched));
    return wrecks;
  }
  // 1: there was a plan to take back.
  static int expect_taken_back(const std::shared_ptr<MemoryBacking>& wreck,
                               const std::map<std::string, Bytes>& before) {
    const auto names = wreck->list(fs::repair_folder);
    if (!names) return 0;
    const auto name = std::find_if(names->begin(), names->end(),
                                   [](const std::string& file) { return file.ends_with(".plan"); });
    if (name == names->end()) return 0;
    const auto plan = fs::load_plan(*wreck, *test_keys(), *name);
    NACRE_EXPECT_OK(plan);
    if (!plan) return 0;
    NACRE_EXPECT_OK(fs::undo_plan(wreck, opened_keys(chunk_size, 1), *plan));
    EXPECT_TRUE(before == bytes_of(*wreck));
    return 1;
  }
  void expect_made_good() {
    const auto done = backing_->list("db") ? repairer().repair_as_shown() : repairer().repair();
    NACRE_ASSERT_OK(done);
    EXPECT_EQ(done->draft.left.error_count(), 0u) << text_of(done->draft.left);
    const auto report = repairer().check();
    EXPECT_EQ(report.findings.error_count(), 0u) << list(report);
  }

  std::shared_ptr<MemoryBacking> sound_, killed_;
  std::map<int, fs::InodeNumber> files_;
};

TEST_F(DatabaseRepair, of_a_sound_database_has_nothing_to_do) {
  const auto draft = repairer().plan();
  NACRE_ASSERT_OK(draft);
  EXPECT_FALSE(draft->database);
  EXPECT_TRUE(draft->plan.steps.empty()) << text_of(draft->plan);
}

TEST_F(DatabaseRepair, of_any_page_costs_at_most_what_lay_in_it) {
  const Sample sample;
  std::vector<std::pair<std::string, std::uint64_t>> places;
  for (const auto& path : sound_->files()) {
    if (!path.ends_with(".sst")) continue;
    for (std::uint64_t at = header_size; at < sound_->load(path)->size(); at += page_size)
      places.emplace_back(path, at);
  }
  ASSERT_GE(places.size(), 8u);
  const auto stride = sample.stride(places.size(), 8);
  std::uint64_t tried = 0;
  int most = 0;
  for (std::size_t i = sample.seed() % stride; i < places.size(); i += stride, ++tried) {
    const auto& [path, offset] = places[i];
    SCOPED_TRACE(fmt::format("{} at {}, seed {}", path, offset, sample.seed()));
    backing_ = sound_->process_kill();
    flip_byte(path, offset + 10);
    most = std::max(most, expect_repaired());
    if (HasFailure()) return;
  }
  sample.print(tried, places.size(), fmt::format("pages, {} files changed at most,", most));
}

TEST_F(DatabaseRepair, of_small_files_loses_nothing) {
  for (const auto& path : sound_->files()) {
    const bool is_small = path.starts_with("db/MANIFEST") || path.starts_with("db/OPTIONS") ||
                          path == "db/CURRENT" || path == "db/IDENTITY" || path.ends_with(".log");
    if (!is_small || !path.starts_with("db/")) continue;
    SCOPED_TRACE(path);
    backing_ = sound_->process_kill();
    flip_byte(path, header_size + 33);
    // The only frame of a log that was closed holds no rows, but nothing vouches for it either.
    const auto probe = repairer().plan({.scratch = MemoryBacking::create()});
    NACRE_ASSERT_OK(probe);
    if (path.ends_with(".log") && !probe->database) continue;
    EXPECT_EQ(expect_repaired(), 0);
    if (HasFailure()) return;
  }
  for (const auto& path : {"db/CURRENT"}) {
    backing_ = sound_->process_kill();
    backing_->erase(path);
    EXPECT_EQ(expect_repaired(), 0);
  }
}

TEST_F(DatabaseRepair, of_a_whole_table_takes_the_checkpoints_rows) {
  for (const auto& path : sound_->files()) {
    if (!path.ends_with(".sst")) continue;
    SCOPED_TRACE(path);
    backing_ = sound_->process_kill();
    backing_->erase(path);
    expect_repaired();
    if (HasFailure()) return;
  }
}

// Nothing shows that such a row is newer or older than the checkpoint. An earlier version took it
// for a row that had been removed, or put the checkpoint's row in its place.
TEST_F(DatabaseRepair, keeps_rows_of_which_the_number_is_gone) {
  backing_ = killed_->process_kill();
  auto whole = metadata::DatabaseRescue::open(backing_, test_keys());
  NACRE_ASSERT_OK(whole);
  const InodesOfTheLastLevel rescue(std::move(*whole));
  const auto view = fs::with_database(backing_, MemoryBacking::create(), "db.new");
  auto engine = engine::Engine::create({.thread_count = 2});
  NACRE_ASSERT_OK(engine);
  const auto report = fs::rebuild_database(
      backing_, view, rescue, opened_keys(chunk_size, keyring_generation_), **engine, {});
  NACRE_ASSERT_OK(report);
  ASSERT_TRUE(report->checkpoint_seconds);
  auto before = metadata::Database::open(backing_, test_keys(), {.read_only = true});
  auto after = metadata::Database::open(view, test_keys(), {.read_only = true});
  NACRE_ASSERT_OK(before);
  NACRE_ASSERT_OK(after);
  for (int i = 20; i < file_count + 30; ++i) {
    const std::string key = metadata::inode_key(files_.at(i));
    const auto was = (*before)->get(metadata::Table::inodes, key);
    const auto is = (*after)->get(metadata::Table::inodes, key);
    NACRE_ASSERT_OK(was);
    NACRE_ASSERT_OK(is);
    ASSERT_TRUE(*was) << i;
    EXPECT_EQ(*was, *is) << i;
  }
}

TEST_F(DatabaseRepair, of_any_frame_of_the_log_keeps_the_groups_behind_it) {
  EXPECT_GE(expect_frames_repaired(*killed_), 3);
}

// One of the frames has the row of the write session. If it was lost, and only inlined content had
// versions of the session, an earlier version refused the repaired volume as one whose db/ had been
// put back.
TEST_F(DatabaseRepair, of_any_frame_of_the_log_keeps_content_in_rows) {
  mount();
  for (int i = 45; i < 48; ++i) {
    write(files_.at(i), 0, "in a row");
    NACRE_EXPECT_OK(sync(files_.at(i)));
  }
  const auto killed = backing_->process_kill();
  unmount();
  EXPECT_GE(expect_frames_repaired(*killed), 4);
}

TEST_F(DatabaseRepair, takes_what_the_disk_does_not_read_for_damage_only_when_told_to) {
  std::uint64_t count = 0;
  for (const auto& path : sound_->files()) {
    if (!path.starts_with("db/") || path == "db/LOG") continue;
    SCOPED_TRACE(path);
    ++count;
    backing_ = sound_->process_kill();
    backing_->set_bad_block(path, 0);
    const auto changes = backing_->change_count();
    const auto refused = repairer().plan();
    EXPECT_CODE(io, refused);
    if (!refused) {
      EXPECT_NE(refused.error().message.find(path), std::string::npos) << refused.error().message;
      EXPECT_NE(refused.error().message.find("--accept-unreadable"), std::string::npos);
    }
    EXPECT_EQ(backing_->change_count(), changes);
    if (!path.ends_with(".sst")) continue;
    const auto done = repairer().repair({.accept_unreadable = true});
    NACRE_ASSERT_OK(done);
    EXPECT_TRUE(done->draft.database);
    expect_files(done->draft);
    if (HasFailure()) return;
  }
  EXPECT_GE(count, 5u);
}

TEST_F(DatabaseRepair, a_dry_run_writes_nothing_to_the_volume) {
  for (const auto& path : sound_->files()) {
    if (path.ends_with(".sst")) flip_byte(path, header_size + 50);
  }
  const auto before = bytes_of(*backing_);
  const auto changes = backing_->change_count();
  const auto draft = repairer().plan({.scratch = MemoryBacking::create()});
  NACRE_ASSERT_OK(draft);
  EXPECT_TRUE(draft->database);
  EXPECT_TRUE(before == bytes_of(*backing_));
  EXPECT_EQ(backing_->change_count(), changes);
}

TEST_F(DatabaseRepair, cannot_be_undone_once_the_volume_went_on) {
  for (const auto& path : sound_->files()) {
    if (path.starts_with("db/MANIFEST")) flip_byte(path, header_size + 50);
  }
  const auto done = repairer().repair();
  NACRE_ASSERT_OK(done);
  mount();
  make_file(root, "newer");
  unmount();
  EXPECT_CODE(not_permitted, fs::undo_plan(backing_, opened_keys(chunk_size, 1), done->draft.plan));
}

TEST_F(DatabaseRepair, is_refused_with_an_older_keyring) {
  edit([](metadata::Database& database) {
    database.put(metadata::Table::system, metadata::system_key_keyring, metadata::encode_u64(5));
  });
  for (const auto& path : sound_->files()) {
    if (path == "db/CURRENT") flip_byte(path, header_size + 35);
  }
  EXPECT_CODE(rolled_back, repairer().plan());
}

// Wherever a repair was cut off, the next one completes it, or a durable plan is taken back.
TEST_F(DatabaseRepair, survives_power_loss_at_any_change) {
  const Sample sample;
  damage_second_pages();
  const auto before = bytes_of(*backing_);
  int taken_back = 0;
  const auto volume_keys = opened_keys(chunk_size, 1);
  const auto engine = engine::Engine::create({.thread_count = 2});
  NACRE_ASSERT_OK(engine);
  const auto wrecks = wrecks_of(sample, [&](const auto& directory) -> Result<> {
    NACRE_ASSIGN(const auto draft, fs::plan_repair(directory, volume_keys, **engine, {}, {}));
    EXPECT_TRUE(draft.database);
    NACRE_TRY(fs::save_plan(*directory, *test_keys(), draft.plan));
    return fs::apply_plan(directory, volume_keys, draft.plan);
  });
  const auto stride = sample.stride(wrecks.size(), 16);
  std::uint64_t tried = 0;
  for (std::size_t i = sample.seed() % stride; i < wrecks.size(); i += stride, ++tried) {
    SCOPED_TRACE(fmt::format("change {} of {}, seed {}", i, wrecks.size(), sample.seed()));
    taken_back += expect_taken_back(wrecks[i]->process_kill(), before);
    backing_ = wrecks[i];
    expect_made_good();
    if (HasFailure()) return;
  }
  sample.print(tried, wrecks.size(),
               fmt::format("changes of a repair of db/, {} taken back from, and all", taken_back));
}

// Taken back half way, it is taken back the next time, to the byte; or repaired once more.
TEST_F(DatabaseRepair, undone_survives_power_loss_at_any_change) {
  const Sample sample;
  damage_second_pages();
  const auto before = bytes_of(*backing_);
  const auto done = repairer().repair();
  NACRE_ASSERT_OK(done);
  ASSERT_TRUE(done->draft.database);
  const auto volume_keys = opened_keys(chunk_size, 1);
  const auto wrecks = wrecks_of(sample, [&](const auto& directory) -> Result<> {
    const auto undone = fs::undo_plan(directory, volume_keys, done->draft.plan);
    if (!undone) return tl::unexpected(undone.error());
    return {};
  });
  ASSERT_GE(wrecks.size(), 3u);
  const auto stride = sample.stride(wrecks.size(), 16);
  std::uint64_t tried = 0;
  for (std::size_t i = sample.seed() % stride; i < wrecks.size(); i += stride, ++tried) {
    SCOPED_TRACE(fmt::format("change {} of {}, seed {}", i, wrecks.size(), sample.seed()));
    backing_ = wrecks[i]->process_kill();
    NACRE_EXPECT_OK(fs::undo_plan(backing_, volume_keys, done->draft.plan));
    EXPECT_TRUE(before == bytes_of(*backing_));
    backing_ = wrecks[i];
    expect_made_good();
    if (HasFailure()) return;
  }
  sample.print(tried, wrecks.size(), "changes of taking it back");
}

// A page that the disk does not give counts as damaged: what lay in it comes from the checkpoint.
// The damaged table stays next to the new database, and an undo puts it back.
TEST_F(DatabaseRepair, of_a_page_that_the_disk_cannot_read_costs_at_most_what_lay_in_it) {
  const Sample sample;
  std::vector<std::pair<std::string, std::uint64_t>> places;
  for (const auto& path : sound_->files()) {
    if (!path.ends_with(".sst")) continue;
    for (std::uint64_t at = header_size; at < sound_->load(path)->size(); at += page_size)
      places.emplace_back(path, at);
  }
  const auto stride = sample.stride(places.size(), 8);
  std::uint64_t tried = 0;
  for (std::size_t i = sample.seed() % stride; i < places.size(); i += stride, ++tried) {
    const auto& [path, offset] = places[i];
    SCOPED_TRACE(fmt::format("{} at {}, seed {}", path, offset, sample.seed()));
    backing_ = sound_->process_kill();
    // Not of the header, which lies in the first block.
    backing_->set_bad_block(path, std::min(offset + 600, backing_->load(path)->size() - 1));
    expect_repaired({.accept_unreadable = true});
    if (HasFailure()) return;
  }
  sample.print(tried, places.size(), "unreadable pages");
}

}  // namespace
}  // namespace nacre::tests
