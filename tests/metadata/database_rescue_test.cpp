// SPDX-License-Identifier: Apache-2.0
// What is read out of a damaged database: only rows that it had; the newest of each key, or one
// that is said to be doubtful; and what may be missing is told.
#include "metadata/rescue/database_rescue.h"

#include <map>
#include <random>
#include <set>

#include <fmt/format.h>

#include "metadata/rescue/log_rescue.h"
#include "metadata/rescue/manifest_edits.h"
#include "metadata/sealed_fs/frame_file.h"
#include "metadata/sealed_fs/frame_layout.h"
#include "metadata/sealed_fs/page_layout.h"
#include "tests/crash/sample.h"
#include "tests/metadata/database_fixture.h"

namespace nacre::tests {
namespace {

using namespace metadata;

// "table key" → value.
using Rows = std::map<std::string, std::string>;

std::string name_of(Table table, std::string_view key) {
  return fmt::format("{} {}", to_string(table), key);
}

Rows rows_of(const Database& database) {
  Rows rows;
  for (std::size_t i = 0; i < table_count; ++i) {
    const auto table = static_cast<Table>(i);
    EXPECT_TRUE(database.scan(table, "", "", [&](std::string_view key, std::string_view value) {
      rows[name_of(table, key)] = value;
      return true;
    }));
  }
  return rows;
}

// A database with several tables in each family, in which newer rows replace or erase older ones,
// and a log with more rows. The parameter is the size at which RocksDB begins a new manifest. It is
// either large as on a mount, or so small that the last manifest is mostly newer than the log, so
// that no witness in the log vouches for it.
class DatabaseRescueTest : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  void SetUp() override {
    backing_ = MemoryBacking::create();
    std::mt19937_64 random(7);
    DatabaseOptions options = small_options();
    options.manifest_bytes_max = GetParam();
    options.create = true;
    auto database = open_database(backing_, options);
    options.create = false;
    for (int session = 0; session < 3; ++session) {
      for (int i = 0; i < 900; ++i)
        change(*database, random, session);
      ASSERT_TRUE(commit(*database));
      ASSERT_TRUE(database->close());
      database = open_database(backing_, options);
    }
    for (int group = 0; group < 8; ++group) {
      for (int i = 0; i < 25; ++i)
        change(*database, random, 3);
      ASSERT_TRUE(commit(*database));
    }
    rows_ = rows_of(*database);
    killed_ = backing_->process_kill();
    ASSERT_TRUE(database->close());
    database.reset();
    closed_ = backing_->process_kill();
  }

  static void change(Database& database, std::mt19937_64& random, int session) {
    const auto table = static_cast<Table>(random() % table_count);
    const std::string key = fmt::format("key {:05}", random() % 400);
    if (random() % 4 == 0) return database.erase(table, key);
    std::string value = fmt::format("{} in session {}: ", random() % 1000, session);
    // Some values compress, some do not, and some take pages of their own.
    const std::size_t size = random() % 50 == 0 ? 9000 : 20 + random() % 100;
    while (value.size() < size)
      value += random() % 2 == 0 ? "again and again " : fmt::format("{:x}", random());
    database.put(table, key, value);
  }

  // Expects only true rows, and that losses are reported. Returns the number of rows that are lost.
  std::size_t expect_honest(const std::shared_ptr<MemoryBacking>& damaged) {
    const auto rescue = DatabaseRescue::open(damaged, make_keys());
    EXPECT_TRUE(rescue) << rescue.error().message;
    if (!rescue) return 0;
    std::size_t missing = rows_.size();
    const bool has_gaps = (*rescue)->may_have_lost_groups() || !(*rescue)->has_manifest();
    for (std::size_t i = 0; i < table_count; ++i) {
      const auto table = static_cast<Table>(i);
      Rows seen;
      std::string last;
      EXPECT_TRUE((*rescue)->scan(table, [&](const RescuedRow& row) -> Result<void> {
        EXPECT_LT(last, row.key);
        last = row.key;
        const auto name = name_of(table, row.key);
        const auto known = rows_.find(name);
        const bool is_right =
            row.value ? known != rows_.end() && known->second == *row.value : known == rows_.end();
        EXPECT_TRUE(is_right || row.is_doubtful || has_gaps) << name;
        if (is_right && row.value) --missing;
        seen[name] = is_right ? "" : "other";
        return {};
      }));
      for (const auto& [name, value] : rows_) {
        if (!name.starts_with(to_string(table)) || seen.contains(name)) continue;
        const auto key = std::string_view(name).substr(to_string(table).size() + 1);
        EXPECT_TRUE(has_gaps || (*rescue)->may_have_lost(table, key)) << name;
      }
    }
    EXPECT_TRUE(missing == 0 || !(*rescue)->damage().empty());
    return missing;
  }

  static std::shared_ptr<MemoryBacking> damaged(const std::shared_ptr<MemoryBacking>& whole,
                                                const std::string& path, std::uint64_t offset) {
    auto copy = whole->process_kill();
    Bytes bytes = *copy->load(path);
    bytes.at(offset) ^= 0x10;
    copy->store(path, bytes);
    return copy;
  }
  std::size_t damage_count(const std::shared_ptr<MemoryBacking>& of) {
    const auto rescue = DatabaseRescue::open(of, make_keys());
    EXPECT_TRUE(rescue);
    return rescue ? (*rescue)->damage().size() : 0;
  }

  // The offsets of the frames of a file.
  static std::vector<std::size_t> frames_of(const Bytes& stored) {
    std::vector<std::size_t> frames;
    for (std::size_t at = find_frame_magic(stored, 0); at < stored.size();
         at = find_frame_magic(stored, at + 1)) {
      frames.push_back(at);
    }
    return frames;
  }

  // The same without the entry with which the manifest began. Null unless that entry replaced
  // tables by others, and those that it replaced are gone.
  static std::shared_ptr<MemoryBacking> without_first_entry(MemoryBacking& whole) {
    const auto keys = make_keys();
    const auto current = read_frames(whole, "db/CURRENT", *keys);
    EXPECT_TRUE(current);
    std::string path = fmt::format("db/{}", current ? as_text(current->plain) : "");
    path.pop_back();
    const auto content_of = [&](MemoryBacking& backing) {
      const auto read = rescue_log(backing, path, *keys);
      return read ? read_manifest_edits(read->records) : std::nullopt;
    };
    const auto cut = whole.process_kill();
    const Bytes stored = *whole.load(path);
    std::optional<ManifestContent> begin;
    for (const std::size_t end : frames_of(stored)) {
      cut->store(path, Bytes(stored.begin(), stored.begin() + static_cast<std::ptrdiff_t>(end)));
      begin = content_of(*cut);
      if (begin && has_all_families(*begin, table_count)) break;
    }
    const auto all = content_of(whole);
    if (!begin || !all) return nullptr;
    std::set<std::uint32_t> replaced;  // families
    for (const auto& [number, table] : begin->tables) {
      if (all->tables.contains(number)) continue;
      if (whole.load(fmt::format("db/{:06}.sst", number))) return nullptr;
      replaced.insert(table.family);
    }
    for (const auto& [number, table] : all->tables) {
      if (!begin->tables.contains(number) && !replaced.contains(table.family)) return nullptr;
    }
    return replaced.empty() ? nullptr : cut;
  }

  std::shared_ptr<MemoryBacking> backing_, killed_, closed_;
  Rows rows_;
};

INSTANTIATE_TEST_SUITE_P(Manifests, DatabaseRescueTest,
                         ::testing::Values(4u << 10, DatabaseOptions().manifest_bytes_max),
                         [](const auto& tested) {
                           return tested.param == 4u << 10 ? "small" : "large";
                         });

TEST_P(DatabaseRescueTest, reads_every_row_of_a_sound_database) {
  for (const auto& whole : {killed_, closed_}) {
    EXPECT_EQ(damage_count(whole), 0u);
    EXPECT_EQ(expect_honest(whole), 0u);
    const auto rescue = DatabaseRescue::open(whole, make_keys());
    ASSERT_TRUE(rescue);
    EXPECT_TRUE((*rescue)->lost_rows().empty());
    EXPECT_TRUE((*rescue)->has_manifest());
  }
}

TEST_P(DatabaseRescueTest, loses_only_rows_of_the_page_that_is_damaged) {
  const Sample sample;
  std::uint64_t tried = 0;
  std::size_t most = 0;
  std::vector<std::pair<std::string, std::uint64_t>> places;
  for (const auto& path : files_ending(*closed_, ".sst")) {
    for (std::uint64_t at = first_page_offset; at < closed_->load(path)->size();
         at += page_size_bytes) {
      places.emplace_back(path, at + sample.seed() % 20);
    }
  }
  ASSERT_GT(places.size(), 40u);
  const auto stride = sample.stride(places.size(), 40);
  for (std::size_t i = sample.seed() % stride; i < places.size(); i += stride, ++tried) {
    const auto& [path, offset] = places[i];
    SCOPED_TRACE(fmt::format("{} at {}, seed {}", path, offset, sample.seed()));
    const auto hurt = damaged(closed_, path, offset);
    EXPECT_EQ(damage_count(hurt), 1u);
    most = std::max(most, expect_honest(hurt));
    if (HasFailure()) return;
  }
  // A page holds parts of at most three blocks of 8 KiB.
  EXPECT_LT(most, 500u);
  sample.print(tried, places.size(), "pages");
}

TEST_P(DatabaseRescueTest, follows_the_blocks_where_the_index_is_damaged) {
  for (const auto& path : files_ending(*closed_, ".sst")) {
    SCOPED_TRACE(path);
    const auto size = closed_->load(path)->size();
    const auto hurt = damaged(closed_, path, size - 30);
    EXPECT_EQ(damage_count(hurt), 1u);
    const std::size_t lost = expect_honest(hurt);
    // The last page may hold the end of the rows, too.
    EXPECT_LT(lost, size < 3 * page_size_bytes ? 400u : 150u);
  }
}

TEST_P(DatabaseRescueTest, is_honest_about_many_damaged_pages_and_lost_files) {
  const Sample sample;
  std::mt19937_64 random(sample.seed());
  // The end of a log may pass for torn if no witness vouches for it. So the test uses a log without
  // rows.
  const auto paths = closed_->files();
  for (int round = 0; round < (sample.is_long() ? 400 : 15); ++round) {
    SCOPED_TRACE(fmt::format("seed {}, round {}", sample.seed(), round));
    const auto hurt = closed_->process_kill();
    const std::size_t count = 1 + random() % 6;
    for (std::size_t i = 0; i < count; ++i) {
      const auto& path = paths[random() % paths.size()];
      auto bytes = hurt->load(path);
      if (!bytes || bytes->empty() || random() % 10 == 0) {
        hurt->erase(path);
      } else if (random() % 10 == 0) {
        bytes->resize(random() % bytes->size());
        hurt->store(path, *bytes);
      } else {
        bytes->at(random() % bytes->size()) ^= static_cast<Byte>(1 + random() % 255);
        hurt->store(path, *bytes);
      }
    }
    expect_honest(hurt);
    if (HasFailure()) return;
  }
}

TEST_P(DatabaseRescueTest, loses_nothing_with_the_manifest_or_what_names_it) {
  for (const auto& prefix : {"MANIFEST", "CURRENT", "IDENTITY"}) {
    for (const auto& path : files_beginning(*closed_, prefix)) {
      SCOPED_TRACE(path);
      const auto hurt = damaged(closed_, path, closed_->load(path)->size() - 5);
      // A manifest's last frame may look like a torn tail. The log shows that it was whole.
      EXPECT_GE(damage_count(hurt), 1u);
      EXPECT_EQ(expect_honest(hurt), 0u);
      const auto gone = closed_->process_kill();
      gone->erase(path);
      EXPECT_EQ(expect_honest(gone), 0u);
    }
  }
}

// Frames that were synced together look torn where one is bad, and a log that is older than the
// manifest does not know how many there were.
TEST_P(DatabaseRescueTest, takes_no_manifest_that_lacks_a_frame_before_its_last_one) {
  const std::string path = files_beginning(*closed_, "MANIFEST").back();
  const Bytes stored = *closed_->load(path);
  const std::vector<std::size_t> frames = frames_of(stored);
  ASSERT_GT(frames.size(), table_count);
  for (std::size_t i = 0; i + 1 < frames.size(); ++i) {
    SCOPED_TRACE(fmt::format("{}, frame {} of {}", path, i, frames.size()));
    const auto hurt = damaged(closed_, path, frames[i] + 40);
    EXPECT_GE(damage_count(hurt), 1u);
    const auto rescue = DatabaseRescue::open(hurt, make_keys());
    ASSERT_TRUE(rescue);
    EXPECT_FALSE((*rescue)->has_manifest());
    EXPECT_EQ(expect_honest(hurt), 0u);
    // The same as a cut before it, which loses the frames behind it, too.
    const auto cut = closed_->process_kill();
    cut->store(path,
               Bytes(stored.begin(), stored.begin() + static_cast<std::ptrdiff_t>(frames[i])));
    EXPECT_EQ(expect_honest(cut), 0u);
    if (HasFailure()) return;
  }
}

// If the last entry is lost, by which new tables replaced older ones, nothing names the new tables.
TEST_P(DatabaseRescueTest, tells_of_every_table_that_is_lost_with_the_last_entries) {
  const std::string path = files_beginning(*closed_, "MANIFEST").back();
  const std::vector<std::size_t> frames = frames_of(*closed_->load(path));
  for (std::size_t lost = 1; lost <= 4; ++lost) {
    const auto begin = frames.at(frames.size() - lost);
    Bytes left = *closed_->load(path);
    left.resize(begin);
    for (const auto& table : files_ending(*closed_, ".sst")) {
      SCOPED_TRACE(fmt::format("{} without its last {} frames, and without {}", path, lost, table));
      const auto hurt = closed_->process_kill();
      hurt->store(path, left);
      hurt->erase(table);
      expect_honest(hurt);
      if (HasFailure()) return;
    }
  }
}

// RocksDB begins a manifest only when it has an entry to write, so the tables of that entry have
// lower numbers than the manifest.
TEST_P(DatabaseRescueTest, finds_the_table_of_the_entry_with_which_a_manifest_began) {
  DatabaseOptions options = small_options();
  options.manifest_bytes_max = 1;  // each entry begins another one
  const auto work = closed_->process_kill();
  std::mt19937_64 random(9);
  int found = 0;
  for (int session = 4; session < 100 && found < 2; ++session) {
    const auto database = open_database(work, options);
    for (int i = 0; i < 900; ++i)
      change(*database, random, session);
    ASSERT_TRUE(commit(*database));
    rows_ = rows_of(*database);
    ASSERT_TRUE(database->close());
    const auto cut = without_first_entry(*work);
    if (!cut) continue;
    ++found;
    EXPECT_EQ(expect_honest(cut), 0u) << "session " << session;
    if (HasFailure()) return;
  }
  EXPECT_GT(found, 0);
}

// RocksDB drops the numbers of rows that it moves to the last level. So a row of a table that was
// removed long ago may have a higher number than the row that took its place.
TEST_P(DatabaseRescueTest, takes_no_row_of_a_table_that_was_removed_and_put_back) {
  DatabaseOptions options = small_options();
  options.manifest_bytes_max = GetParam();
  const auto work = closed_->process_kill();
  std::map<std::string, Bytes> removed;
  std::mt19937_64 random(8);
  for (int session = 4; session < 8; ++session) {
    for (const auto& path : files_ending(*work, ".sst"))
      removed.emplace(path, *work->load(path));
    const auto database = open_database(work, options);
    for (int i = 0; i < 900; ++i)
      change(*database, random, session);
    ASSERT_TRUE(commit(*database));
    rows_ = rows_of(*database);
    ASSERT_TRUE(database->close());
  }
  const auto live = files_ending(*work, ".sst");
  for (const auto& path : live)
    removed.erase(path);
  ASSERT_FALSE(removed.empty());
  for (const auto& lost : live) {
    SCOPED_TRACE(lost);
    const auto hurt = work->process_kill();
    for (const auto& [path, bytes] : removed)
      hurt->store(path, bytes);
    hurt->erase(lost);
    expect_honest(hurt);
    if (HasFailure()) return;
  }
}

TEST_P(DatabaseRescueTest, a_damaged_frame_of_the_log_costs_its_group_alone) {
  const auto logs = files_ending(*killed_, ".log");
  ASSERT_FALSE(logs.empty());
  const std::string path = logs.back();
  const Bytes stored = *killed_->load(path);
  const std::vector<std::size_t> frames = frames_of(stored);
  ASSERT_GE(frames.size(), 9u);
  // The last one counts as torn: nothing vouches for it.
  for (std::size_t i = 0; i + 1 < frames.size(); ++i) {
    for (const std::size_t place :
         {std::size_t{0}, std::size_t{5}, std::size_t{24}, std::size_t{40}}) {
      SCOPED_TRACE(fmt::format("frame {}, byte {}", i, place));
      const auto hurt = damaged(killed_, path, frames[i] + place);
      EXPECT_EQ(damage_count(hurt), 1u);
      EXPECT_LE(expect_honest(hurt), 25u);
    }
  }
  // The first frame holds no rows.
  EXPECT_EQ(expect_honest(damaged(killed_, path, frames[0] + 40)), 0u);
}

TEST_P(DatabaseRescueTest, of_a_lost_log_all_other_rows_are_there) {
  const auto hurt = closed_->process_kill();
  for (const auto& path : files_ending(*closed_, ".log"))
    hurt->erase(path);
  EXPECT_GE(damage_count(hurt), 1u);
  EXPECT_EQ(expect_honest(hurt), 0u);
}

TEST_P(DatabaseRescueTest, a_forged_page_counts_as_lost) {
  const std::string path = files_ending(*closed_, ".sst").back();
  Bytes bytes = *closed_->load(path);
  const Bytes other = *closed_->load(files_ending(*closed_, ".sst").front());
  std::copy_n(other.begin() + first_page_offset, std::min(bytes.size(), other.size()) / 2,
              bytes.begin() + first_page_offset);
  const auto hurt = closed_->process_kill();
  hurt->store(path, bytes);
  EXPECT_GE(damage_count(hurt), 1u);
  expect_honest(hurt);
}

}  // namespace
}  // namespace nacre::tests
