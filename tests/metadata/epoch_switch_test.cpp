// SPDX-License-Identifier: Apache-2.0
// A rotation of keys to an epoch of format 2, as the database sees it: from the beginning of the
// rotation on no file of an older epoch counts, whatever an attacker with the older keys makes
// (AUDIT F1).
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "metadata/rescue/database_rescue.h"
#include "metadata/sealed_fs/reseal_files.h"
#include "tests/metadata/database_fixture.h"

namespace nacre::tests {
namespace {

using namespace metadata;

using SwitchRows = std::map<std::string, std::string>;
constexpr std::string_view marker = "new keyring";

engine::VolumeId switch_volume() {
  engine::VolumeId id;
  id.fill(5);
  return id;
}

EpochKey epoch_of(std::uint32_t number, EpochFormat format) {
  return {
      .number = number, .key = SecretBytes(Bytes(32, static_cast<Byte>(number))), .format = format};
}

std::shared_ptr<KeyTree> keys_before(EpochFormat format) {
  std::vector<EpochKey> epochs;
  epochs.push_back(epoch_of(1, format));
  return std::make_shared<KeyTree>(switch_volume(), SecretBytes(Bytes(32, 1)), std::move(epochs));
}

std::shared_ptr<KeyTree> keys_after(EpochFormat format) {
  std::vector<EpochKey> epochs;
  epochs.push_back(epoch_of(1, format));
  epochs.push_back(epoch_of(2, EpochFormat::two));
  return std::make_shared<KeyTree>(switch_volume(), SecretBytes(Bytes(32, 2)), std::move(epochs),
                                   SecretBytes(Bytes(32, 1)));
}

// The keys of an attempt that began anew.
std::shared_ptr<KeyTree> another_after(EpochFormat format) {
  std::vector<EpochKey> epochs;
  epochs.push_back(epoch_of(1, format));
  epochs.push_back({.number = 2, .key = SecretBytes(Bytes(32, 77)), .format = EpochFormat::two});
  return std::make_shared<KeyTree>(switch_volume(), SecretBytes(Bytes(32, 3)), std::move(epochs),
                                   SecretBytes(Bytes(32, 1)));
}

Result<SwitchRows> read_rows(const Database& database) {
  SwitchRows rows;
  for (const Table table : {Table::inodes, Table::dentries}) {
    NACRE_TRY(database.scan(table, "", "", [&](std::string_view key, std::string_view value) {
      rows[std::string(to_string(table)) + std::string(key)] = value;
      return true;
    }));
  }
  return rows;
}

Result<SwitchRows> rows_on(const std::shared_ptr<MemoryBacking>& disk,
                           const std::shared_ptr<KeyTree>& keys) {
  NACRE_ASSIGN(const auto database, Database::open(disk, keys, small_options()));
  return read_rows(*database);
}

void put_some(Database& database, int group) {
  for (int i = 0; i < 30; i++) {
    const std::string key = "row" + std::to_string(100 * group + i);
    database.put(Table::inodes, key, std::string(300, static_cast<char>('a' + i % 26)));
    database.put(Table::dentries, key, std::to_string(group));
  }
  ASSERT_TRUE(commit(database));
}

// A database with rows in tables and in the live log.
class EpochSwitch : public ::testing::TestWithParam<EpochFormat> {
 protected:
  void SetUp() override {
    auto options = small_options();
    options.create = true;
    auto database = Database::open(disk_, keys_, options);
    ASSERT_TRUE(database) << database.error().message;
    put_some(**database, 0);
    ASSERT_TRUE((*database)->close());
    reopen();
    put_some(*database_, 1);
    ASSERT_TRUE(database_->snapshot());
    put_some(*database_, 2);
    rows_ = read_rows(*database_).value();
  }
  void reopen() {
    auto database = Database::open(disk_, keys_, small_options());
    ASSERT_TRUE(database) << database.error().message;
    database_ = std::move(*database);
  }
  Result<void> begin() {
    const auto next = keys_after(GetParam());
    return database_->switch_epoch(*next, [&]() -> Result<void> {
      NACRE_TRY(replace_file(*disk_, marker, as_bytes("2")));
      keys_->begin_rotation(next->volume_key(), next->current_epoch(), {});
      return {};
    });
  }

  std::shared_ptr<MemoryBacking> disk_ = MemoryBacking::create();
  std::shared_ptr<KeyTree> keys_ = keys_before(GetParam());
  std::unique_ptr<Database> database_;
  SwitchRows rows_;
};

INSTANTIATE_TEST_SUITE_P(From, EpochSwitch, ::testing::Values(EpochFormat::one, EpochFormat::two));

TEST_P(EpochSwitch, leaves_every_row_and_only_files_of_the_new_epoch) {
  ASSERT_TRUE(begin());
  EXPECT_EQ(read_rows(*database_).value(), rows_);
  put_some(*database_, 3);
  rows_ = read_rows(*database_).value();
  const auto killed = disk_->process_kill();
  EXPECT_EQ(rows_on(killed, keys_after(GetParam())).value(), rows_);
  // A table that is being made has no header yet. Files that the database no longer needs are
  // removed one after the other.
  std::vector<std::string> left;
  for (int attempt = 0; attempt < 4000; attempt++) {
    left = database_->reseal([] { return Result<void>(); }).value();
    if (left.empty()) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_TRUE(left.empty()) << left.front();
  ASSERT_TRUE(database_->close());
  database_ = nullptr;
  EXPECT_EQ(rows_on(disk_, keys_after(GetParam())).value(), rows_);
}

// During the switch, while nothing can be written, files that were sealed anew before are not
// sealed again. Files that came since are sealed, and those that went are removed.
TEST_P(EpochSwitch, uses_what_was_prepared_for_it) {
  const auto next = keys_after(GetParam());
  ASSERT_TRUE(database_->snapshot());
  ASSERT_TRUE(database_->prepare_switch(*next, [] { return Result<void>(); }));
  std::map<std::string, Bytes> prepared;
  for (const std::string& path : disk_->files()) {
    if (path.starts_with("db/rekey-")) prepared[path] = disk_->load(path).value();
  }
  ASSERT_FALSE(prepared.empty());
  disk_->store("db/rekey-000999.sst.dbtmp", prepared.begin()->second);
  put_some(*database_, 3);
  rows_ = read_rows(*database_).value();
  ASSERT_TRUE(begin());
  for (const auto& [path, bytes] : prepared) {
    const std::string name = path.substr(std::string("db/rekey-").size());
    const auto now = disk_->load("db/" + name.substr(0, name.size() - 6));
    if (now) {
      EXPECT_EQ(*now, bytes) << path;
    }
    EXPECT_FALSE(disk_->load(path));
  }
  EXPECT_FALSE(disk_->load("db/rekey-000999.sst.dbtmp"));
  EXPECT_FALSE(disk_->load("db/000999.sst"));
  EXPECT_EQ(rows_on(disk_->process_kill(), keys_after(GetParam())).value(), rows_);
}

// A prepared file is removed, or replaced by another one. If it were made again, its content could
// differ, and the same nonces would be used twice.
TEST_P(EpochSwitch, seals_no_salt_twice_under_one_key) {
  const auto next = keys_after(GetParam());
  for (const bool is_removed : {true, false}) {
    ASSERT_TRUE(database_->snapshot());
    ASSERT_TRUE(database_->prepare_switch(*next, [] { return Result<void>(); }));
    bool is_there = false;
    for (const std::string& path : disk_->files()) {
      if (!path.starts_with("db/rekey-")) continue;
      is_there = true;
      if (is_removed) {
        disk_->erase(path);
      } else {
        disk_->store(path, disk_->load("db/CURRENT").value());
      }
    }
    ASSERT_TRUE(is_there);
    const auto refused = begin();
    ASSERT_FALSE(refused);
    EXPECT_EQ(to_string(refused.error().code), to_string(ErrorCode::tampered));
    EXPECT_FALSE(disk_->exists(marker).value());
    ASSERT_TRUE(database_->abandon_switch());
    EXPECT_EQ(read_rows(*database_).value(), rows_);
    ASSERT_TRUE(database_->prepare_switch(*another_after(GetParam()), [] {
      return Result<void>();
    })) << "a new attempt has another key";
    ASSERT_TRUE(database_->abandon_switch());
  }
  ASSERT_TRUE(begin());
  EXPECT_EQ(rows_on(disk_->process_kill(), keys_after(GetParam())).value(), rows_);
}

TEST_P(EpochSwitch, that_does_not_come_leaves_nothing_that_was_prepared) {
  ASSERT_TRUE(database_->prepare_switch(*keys_after(GetParam()), [] { return Result<void>(); }));
  ASSERT_TRUE(database_->abandon_switch());
  for (const std::string& path : disk_->files())
    EXPECT_FALSE(path.starts_with("db/rekey-")) << path;
  EXPECT_EQ(read_rows(*database_).value(), rows_);
}

// The manifest names its tables also where they were sealed anew.
TEST_P(EpochSwitch, leaves_tables_that_a_rescue_knows) {
  ASSERT_TRUE(begin());
  put_some(*database_, 3);
  rows_ = read_rows(*database_).value();
  ASSERT_TRUE(database_->snapshot());
  ASSERT_TRUE(database_->close());
  database_ = nullptr;
  const auto rescue = DatabaseRescue::open(disk_, keys_after(GetParam()));
  ASSERT_TRUE(rescue) << rescue.error().message;
  EXPECT_TRUE((*rescue)->damage().empty()) << (*rescue)->damage().front().message;
  EXPECT_TRUE((*rescue)->lost_rows().empty());
}

// Tables that are open are read from their new files: the old ones may be anything by now.
TEST_P(EpochSwitch, reads_nothing_from_files_of_the_older_epoch) {
  const auto before = disk_->process_kill();
  ASSERT_TRUE(begin());
  for (const std::string& path : before->files()) {
    if (!path.ends_with(".sst")) continue;
    EXPECT_EQ(epoch_of_file(*disk_, path).value(), 2u) << path;
  }
  EXPECT_EQ(read_rows(*database_).value(), rows_);
}

// All old files, which are genuine under the older keys, are put back: one by one, and all
// together.
TEST_P(EpochSwitch, refuses_every_file_of_the_older_epoch_that_is_put_back) {
  const auto before = disk_->process_kill();
  ASSERT_TRUE(begin());
  const auto after = disk_->process_kill();
  for (const std::string& path : before->files()) {
    if (!path.starts_with("db/") || path.ends_with("/LOG") || path.ends_with(".old")) continue;
    const auto changed = after->process_kill();
    changed->store(path, before->load(path).value());
    const auto rows = rows_on(changed, keys_after(GetParam()));
    if (rows) {
      // A file that the database no longer depends on: a log that is done, or a manifest that is
      // not in use.
      EXPECT_EQ(*rows, rows_) << path;
      continue;
    }
    EXPECT_EQ(to_string(rows.error().code), to_string(ErrorCode::tampered)) << path;
  }
  const auto all = after->process_kill();
  for (const std::string& path : after->files()) {
    if (path.starts_with("db/")) all->erase(path);
  }
  for (const std::string& path : before->files()) {
    if (path.starts_with("db/")) all->store(path, before->load(path).value());
  }
  const auto rows = rows_on(all, keys_after(GetParam()));
  ASSERT_FALSE(rows);
  EXPECT_EQ(to_string(rows.error().code), to_string(ErrorCode::tampered)) << rows.error().message;
}

// Genuine files that are not those of the database: an older state of a file, or a file of another
// branch of history, takes the place of an open file. The database itself goes on with the file
// that it opened.
class EpochSwitchOfOtherFiles : public EpochSwitch {
 protected:
  // The path of that ending with the largest number.
  std::string newest(std::string_view part) {
    std::string found;
    for (const std::string& path : disk_->files()) {
      if (path.find(part) != std::string::npos) found = path;
    }
    return found;
  }
  void expect_refused_with(const std::string& path, ByteView content) {
    const Bytes genuine = disk_->load(path).value();
    ASSERT_NE(genuine, Bytes(content.begin(), content.end()));
    disk_->store(path, content);
    const auto switched = begin();
    if (switched && path.ends_with(".sst")) {  // a compaction had taken it, and nothing needs it
      EXPECT_EQ(read_rows(*database_).value(), rows_);
      EXPECT_EQ(rows_on(disk_->process_kill(), keys_after(GetParam())).value(), rows_);
      return;
    }
    ASSERT_FALSE(switched) << path;
    EXPECT_EQ(to_string(switched.error().code), to_string(ErrorCode::tampered))
        << switched.error().message;
    EXPECT_FALSE(disk_->exists(marker).value());
    EXPECT_EQ(read_rows(*database_).value(), rows_);
    disk_->store(path, genuine);
    EXPECT_EQ(rows_on(disk_->process_kill(), keys_before(GetParam())).value(), rows_);
  }
  // The file without its last frame.
  Bytes cut(const std::string& path) {
    const Bytes bytes = disk_->load(path).value();
    const auto header = decode_file_header(ByteView(bytes).first(file_header_size_bytes)).value();
    std::size_t end = file_header_size_bytes;
    for (std::size_t at = end;
         const auto frame = parse_frame(header, ByteView(bytes).subspan(at));) {
      end = at;
      at += frame->stored_size;
    }
    return {bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(end)};
  }
};

INSTANTIATE_TEST_SUITE_P(From, EpochSwitchOfOtherFiles,
                         ::testing::Values(EpochFormat::one, EpochFormat::two));

TEST_P(EpochSwitchOfOtherFiles, takes_no_manifest_that_was_cut) {
  // Otherwise the switch flushes, and the flush appends to the file that was replaced.
  ASSERT_TRUE(database_->snapshot());
  const std::string path = newest("MANIFEST-");
  expect_refused_with(path, cut(path));
}

TEST_P(EpochSwitchOfOtherFiles, takes_no_log_that_was_cut) {
  ASSERT_TRUE(database_->snapshot());
  const std::string path = newest(".log");
  expect_refused_with(path, cut(path));
}

TEST_P(EpochSwitchOfOtherFiles, takes_no_other_manifest_for_current) {
  // The one of the opening before: CURRENT of then.
  const auto older = MemoryBacking::create();
  auto options = small_options();
  options.create = true;
  auto other = Database::open(older, keys_, options);
  ASSERT_TRUE(other) << other.error().message;
  ASSERT_TRUE((*other)->close());
  expect_refused_with("db/CURRENT", older->load("db/CURRENT").value());
}

TEST_P(EpochSwitchOfOtherFiles, takes_no_table_of_another_branch) {
  // The same work on a copy makes a table of the same name and size, with other content.
  const auto work = [](const std::shared_ptr<MemoryBacking>& disk, std::shared_ptr<KeyTree> keys,
                       char letter) {
    auto database = Database::open(disk, keys, small_options());
    EXPECT_TRUE(database) << database.error().message;
    for (int i = 0; i < 30; i++) {
      (*database)->put(Table::inodes, "row" + std::to_string(100 + i), std::string(300, letter));
    }
    EXPECT_TRUE(commit(**database));
    EXPECT_TRUE((*database)->snapshot());
    return std::move(*database);
  };
  unsigned count = 0;
  // Sizes differ now and then, and a compaction may have taken the table.
  for (int attempt = 0; attempt < 50 && count == 0; attempt++) {
    ASSERT_TRUE(database_->close());
    database_ = nullptr;
    const auto branch = disk_->process_kill();
    database_ = work(disk_, keys_, 'v');
    rows_ = read_rows(*database_).value();
    const auto other = work(branch, keys_before(GetParam()), 'w');
    for (const std::string& path : branch->files()) {
      if (!path.ends_with(".sst") || disk_->load(path) == branch->load(path)) continue;
      if (!disk_->load(path) || disk_->load(path)->size() != branch->load(path)->size()) continue;
      ++count;
      expect_refused_with(path, branch->load(path).value());
    }
  }
  EXPECT_GT(count, 0u);
}

// Power is lost at each change in turn. The marker says which keyring counts.
TEST_P(EpochSwitch, keeps_every_row_wherever_power_is_lost) {
  unsigned before = 0;
  unsigned after = 0;
  for (std::uint64_t step = 0;; step++) {
    ASSERT_LT(step, 400u);
    database_ = nullptr;
    disk_ = MemoryBacking::create();
    keys_ = keys_before(GetParam());
    SetUp();
    disk_->fail_at(disk_->change_count() + step);
    const bool done = begin().has_value();
    for (const std::uint64_t seed : {0u, 1u, 7u, 8u}) {
      const auto disk = disk_->power_loss(seed);
      const bool is_new = disk->exists(marker).value();
      ++(is_new ? after : before);
      const auto rows = rows_on(disk, is_new ? keys_after(GetParam()) : keys_before(GetParam()));
      ASSERT_TRUE(rows) << "step " << step << " seed " << seed << ": " << rows.error().message;
      ASSERT_EQ(*rows, rows_) << "step " << step << " seed " << seed;
    }
    if (done) break;
  }
  EXPECT_GT(before, 8u);
  EXPECT_GT(after, 8u);
}

// The new keyring may be on the medium or not. Only the next opening of the volume shows it.
TEST_P(EpochSwitch, stops_all_writing_when_nobody_knows_which_keyring_counts) {
  const auto next = keys_after(GetParam());
  const auto failed = database_->switch_epoch(
      *next, []() -> Result<void> { return fail(ErrorCode::io, "the disk is gone"); });
  ASSERT_FALSE(failed);
  database_->put(Table::inodes, "late", "row");
  EXPECT_FALSE(commit(*database_));
  EXPECT_EQ(rows_on(disk_->process_kill(), keys_before(GetParam())).value(), rows_);
}

TEST_P(EpochSwitch, waits_for_the_end_of_a_backup) {
  auto held = database_->snapshot();
  ASSERT_TRUE(held);
  const auto busy = begin();
  ASSERT_FALSE(busy);
  EXPECT_EQ(to_string(busy.error().code), to_string(ErrorCode::busy));
  put_some(*database_, 4);
  rows_ = read_rows(*database_).value();
  held->hold = nullptr;
  ASSERT_TRUE(begin());
  EXPECT_EQ(rows_on(disk_->process_kill(), keys_after(GetParam())).value(), rows_);
}

}  // namespace
}  // namespace nacre::tests
