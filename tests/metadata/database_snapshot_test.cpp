// SPDX-License-Identifier: Apache-2.0
// Snapshots: copied while the database is written, flushed and compacted, they open with exactly
// the rows of the commit they were taken at, and nothing of theirs is removed before its time.
#include <atomic>
#include <map>
#include <random>
#include <thread>

#include <fmt/format.h>

#include "tests/metadata/database_fixture.h"

namespace nacre::tests {
namespace {

using metadata::Database;
using metadata::DatabaseSnapshot;
using metadata::Table;

using SnapshotRows = std::map<std::string, std::string, std::less<>>;

std::string value_of(std::uint64_t round, std::uint64_t row, std::mt19937_64& random) {
  std::string value = fmt::format("{} {} ", round, row);
  for (int i = 0; i < 25; i++)
    value += std::to_string(random());
  return value;
}

// A round changes many rows of two tables, so that a few rounds make tables and compact them.
void write_round(Database& database, std::uint64_t round, std::mt19937_64& random,
                 SnapshotRows& rows) {
  for (std::uint64_t i = 0; i < 60; i++) {
    const std::string key = fmt::format("{:04}", random() % 400);
    if (random() % 5 == 0) {
      database.erase(Table::inodes, key);
      rows.erase(key);
    } else {
      rows[key] = value_of(round, i, random);
      database.put(Table::inodes, key, rows[key]);
    }
  }
  rows["round"] = std::to_string(round);
  database.put(Table::system, "round", rows["round"]);
}

std::shared_ptr<MemoryBacking> copy_of(const MemoryBacking& from,
                                       const DatabaseSnapshot& snapshot) {
  auto to = MemoryBacking::create();
  to->store("db/CURRENT", snapshot.current);
  for (const auto& file : snapshot.files) {
    const auto content = from.load("db/" + file.name);
    EXPECT_TRUE(content) << file.name << " is gone";
    if (!content) continue;
    EXPECT_GE(content->size(), file.size) << file.name;
    to->store("db/" + file.name, ByteView(*content).first(file.size));
  }
  return to;
}

SnapshotRows rows_of(std::shared_ptr<MemoryBacking> backing, bool read_only) {
  SnapshotRows rows;
  const auto database = open_database(std::move(backing), {.read_only = read_only});
  if (database == nullptr) return rows;
  for (const Table table : {Table::inodes, Table::system}) {
    const auto scanned =
        database->scan(table, "", "", [&](std::string_view key, std::string_view value) {
          rows.emplace(key, value);
          return true;
        });
    EXPECT_TRUE(scanned) << scanned.error().message;
  }
  return rows;
}

TEST(DatabaseSnapshotFiles, are_the_commit_they_were_taken_at_whatever_goes_on_since) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  const auto backing = MemoryBacking::create();
  const auto database = create_database(backing);
  ASSERT_NE(database, nullptr);
  SnapshotRows rows;
  std::uint64_t round = 0;
  for (int snapshots = 0; snapshots < 6; snapshots++) {
    for (int i = 0; i < 15; i++) {
      write_round(*database, ++round, random, rows);
      ASSERT_TRUE(commit(*database));
    }
    const SnapshotRows then = rows;
    auto snapshot = database->snapshot();
    ASSERT_TRUE(snapshot) << snapshot.error().message;
    // Before the snapshot is copied, flushes and a compaction make files of it obsolete.
    for (int i = 0; i < 20 || (database->stats().held_bytes == 0 && i < 2000); i++) {
      write_round(*database, ++round, random, rows);
      ASSERT_TRUE(commit(*database));
      if (i % 4 == 0) {
        ASSERT_TRUE(database->snapshot());
      }
    }
    auto copy = copy_of(*backing, *snapshot);
    EXPECT_EQ(rows_of(copy, true), then);
    EXPECT_EQ(rows_of(copy, false), then);
    EXPECT_GT(database->stats().held_bytes, 0u)
        << "nothing became obsolete: the test tests nothing";
    snapshot->hold.reset();
    EXPECT_EQ(database->stats().held_bytes, 0u);
  }
}

TEST(DatabaseSnapshotFiles, hold_no_rows_in_their_one_log) {
  const auto backing = MemoryBacking::create();
  const auto database = create_database(backing);
  ASSERT_NE(database, nullptr);
  std::mt19937_64 random(1);
  SnapshotRows rows;
  write_round(*database, 1, random, rows);
  ASSERT_TRUE(commit(*database));
  const auto snapshot = database->snapshot();
  ASSERT_TRUE(snapshot) << snapshot.error().message;
  std::size_t log_count = 0;
  for (const auto& file : snapshot->files) {
    if (!file.name.ends_with(".log")) continue;
    log_count++;
    EXPECT_LT(file.size, 1000u) << file.name;
  }
  EXPECT_EQ(log_count, 1u);
}

TEST(DatabaseSnapshotFiles, stay_for_each_of_several_snapshots_until_that_one_goes) {
  const auto backing = MemoryBacking::create();
  const auto database = create_database(backing);
  ASSERT_NE(database, nullptr);
  std::mt19937_64 random(2);
  SnapshotRows rows;
  write_round(*database, 1, random, rows);
  ASSERT_TRUE(commit(*database));
  auto first = database->snapshot();
  auto second = database->snapshot();
  ASSERT_TRUE(first && second);
  const SnapshotRows then = rows;
  for (std::uint64_t round = 2; round < 80; round++) {
    write_round(*database, round, random, rows);
    ASSERT_TRUE(commit(*database));
  }
  first->hold.reset();
  EXPECT_EQ(rows_of(copy_of(*backing, *second), true), then);
  second->hold.reset();
  EXPECT_EQ(database->stats().held_bytes, 0u);
}

TEST(DatabaseSnapshotFiles, are_consistent_at_any_moment_of_a_background_compaction) {
  const auto backing = MemoryBacking::create();
  const auto database = create_database(backing);
  ASSERT_NE(database, nullptr);
  std::mt19937_64 random(3);
  SnapshotRows rows;
  for (std::uint64_t round = 1; round <= 120; round++) {
    write_round(*database, round, random, rows);
    ASSERT_TRUE(commit(*database));
    // The snapshot comes right after a commit that may have begun a flush or a compaction.
    auto snapshot = database->snapshot();
    ASSERT_TRUE(snapshot) << snapshot.error().message;
    if (round % 4 == 0) {
      ASSERT_EQ(rows_of(copy_of(*backing, *snapshot), true), rows);
    }
  }
}

TEST(DatabaseSnapshotFiles, are_refused_while_the_disk_is_full_and_given_once_there_is_room) {
  const auto backing = MemoryBacking::create();
  const auto database = create_database(backing);
  ASSERT_NE(database, nullptr);
  std::mt19937_64 random(4);
  SnapshotRows rows;
  write_round(*database, 1, random, rows);
  ASSERT_TRUE(commit(*database));
  backing->inject({.operations = change_write, .path_part = ".sst", .code = ErrorCode::no_space});
  const auto refused = database->snapshot();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::no_space) << refused.error().message;
  backing->clear_failures();
  write_round(*database, 2, random, rows);
  ASSERT_TRUE(commit(*database));
  const auto given = database->snapshot();
  ASSERT_TRUE(given) << given.error().message;
  EXPECT_EQ(rows_of(copy_of(*backing, *given), true), rows);
}

TEST(DatabaseSnapshotFiles, of_a_database_open_for_reading_are_refused) {
  const auto backing = MemoryBacking::create();
  { ASSERT_NE(create_database(backing), nullptr); }
  const auto database = open_database(backing, {.read_only = true});
  ASSERT_NE(database, nullptr);
  const auto refused = database->snapshot();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::read_only);
}

}  // namespace
}  // namespace nacre::tests
