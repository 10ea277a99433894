// SPDX-License-Identifier: Apache-2.0
// The tables against a plain model, and what survives closing, killing and reopening.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <set>

#include "metadata/sealed_fs/frame_file.h"
#include "tests/metadata/database_fixture.h"

namespace nacre::tests {
namespace {

using metadata::Database;
using metadata::Table;
using metadata::table_count;

using Rows = std::map<std::string, std::string>;
using Model = std::array<Rows, table_count>;

std::string get_or(const Database& database, Table table, const std::string& key) {
  auto value = database.get(table, key);
  if (!value) return "error: " + value.error().message;
  return value->value_or("none");
}

Rows scan_all(const Database& database, Table table, std::string_view from = "",
              std::string_view to = "") {
  Rows rows;
  std::string last;
  const auto result =
      database.scan(table, from, to, [&](std::string_view key, std::string_view value) {
        EXPECT_TRUE(rows.empty() || last < key) << "rows out of order";
        last = key;
        rows.emplace(key, value);
        return true;
      });
  EXPECT_TRUE(result) << result.error().message;
  return rows;
}

void expect_equal(const Database& database, const Model& model) {
  for (std::size_t table = 0; table < table_count; table++) {
    ASSERT_EQ(scan_all(database, static_cast<Table>(table)), model[table])
        << to_string(static_cast<Table>(table));
  }
}

std::string random_key(std::mt19937_64& random) {
  return "key" + std::to_string(random() % 300);
}

void expect_many(const Database& database, Table table, const Rows& rows, std::mt19937_64& random) {
  std::set<std::string> asked;
  for (std::uint64_t count = random() % 100; count > 0; count--)
    asked.insert(random_key(random));
  const std::vector<std::string> keys(asked.begin(), asked.end());
  const auto found = database.get_many(table, keys);
  ASSERT_EQ(found.size(), keys.size());
  for (std::size_t i = 0; i < keys.size(); i++) {
    ASSERT_TRUE(found[i]) << found[i].error().message;
    ASSERT_EQ(found[i]->value_or("none"), rows.contains(keys[i]) ? rows.at(keys[i]) : "none");
  }
}

TEST(Database, a_row_is_seen_from_the_moment_it_is_put) {
  auto backing = MemoryBacking::create();
  auto database = create_database(backing);
  ASSERT_NE(database, nullptr);
  EXPECT_EQ(get_or(*database, Table::inodes, "a"), "none");
  database->put(Table::inodes, "a", "1");
  EXPECT_EQ(get_or(*database, Table::inodes, "a"), "1");
  EXPECT_EQ(get_or(*database, Table::dentries, "a"), "none");
  EXPECT_TRUE(database->freeze());
  EXPECT_EQ(get_or(*database, Table::inodes, "a"), "1");
  database->put(Table::inodes, "a", "2");
  EXPECT_EQ(get_or(*database, Table::inodes, "a"), "2");
  ASSERT_TRUE(database->commit_frozen(true));
  EXPECT_EQ(get_or(*database, Table::inodes, "a"), "2");
  database->erase(Table::inodes, "a");
  EXPECT_EQ(get_or(*database, Table::inodes, "a"), "none");
  EXPECT_TRUE(commit(*database));
  EXPECT_EQ(get_or(*database, Table::inodes, "a"), "none");
  EXPECT_TRUE(database->close());
}

TEST(Database, a_new_row_that_is_erased_again_leaves_nothing_to_commit) {
  auto backing = MemoryBacking::create();
  auto database = create_database(backing);
  ASSERT_NE(database, nullptr);
  database->put_new(Table::inodes, "a", "1");
  database->put(Table::inodes, "a", "2");
  database->erase(Table::inodes, "a");
  EXPECT_EQ(database->stats().open_group_rows, 0u);
  EXPECT_FALSE(database->freeze());
}

TEST(Database, a_new_row_over_an_erased_or_frozen_one_leaves_a_tombstone) {
  auto backing = MemoryBacking::create();
  auto database = create_database(backing);
  ASSERT_NE(database, nullptr);
  database->put(Table::inodes, "a", "1");
  ASSERT_TRUE(commit(*database));
  // Erased in this group, put as new, erased: the row below must go.
  database->erase(Table::inodes, "a");
  database->put_new(Table::inodes, "a", "2");
  database->erase(Table::inodes, "a");
  EXPECT_EQ(database->stats().open_group_rows, 1u);
  ASSERT_TRUE(commit(*database));
  EXPECT_EQ(get_or(*database, Table::inodes, "a"), "none");
  // Erased in the frozen group, put as new and erased in the open one.
  database->put(Table::inodes, "b", "1");
  ASSERT_TRUE(commit(*database));
  database->erase(Table::inodes, "b");
  ASSERT_TRUE(database->freeze());
  database->put_new(Table::inodes, "b", "2");
  database->erase(Table::inodes, "b");
  EXPECT_EQ(get_or(*database, Table::inodes, "b"), "none");
  ASSERT_TRUE(database->commit_frozen(true));
  ASSERT_TRUE(commit(*database));
  EXPECT_EQ(get_or(*database, Table::inodes, "b"), "none");
}

TEST(Database, agrees_with_a_plain_map_under_random_operations) {
  for (std::uint64_t seed = 1; seed <= 6; seed++) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    auto backing = MemoryBacking::create();
    auto database = create_database(backing);
    ASSERT_NE(database, nullptr);
    Model model;
    bool frozen = false;
    for (int step = 0; step < 6000; step++) {
      const auto table = static_cast<Table>(random() % table_count);
      Rows& rows = model[static_cast<std::size_t>(table)];
      const std::string key = random_key(random);
      const std::uint64_t choice = random() % 100;
      if (choice < 35) {
        const std::string value(random() % 400, static_cast<char>('a' + random() % 26));
        if (!rows.contains(key) && random() % 2 == 0) {
          database->put_new(table, key, value);
        } else {
          database->put(table, key, value);
        }
        rows[key] = value;
      } else if (choice < 55) {
        database->erase(table, key);
        rows.erase(key);
      } else if (choice < 70) {
        ASSERT_EQ(get_or(*database, table, key), rows.contains(key) ? rows[key] : "none");
      } else if (choice < 75) {
        ASSERT_NO_FATAL_FAILURE(expect_many(*database, table, rows, random));
      } else if (choice < 88) {
        const std::string from = random() % 3 == 0 ? "" : random_key(random);
        auto last = database->find_last(table, from, key);
        ASSERT_TRUE(last) << last.error().message;
        auto expected = rows.upper_bound(key);
        if (from <= key && expected != rows.begin() && (--expected)->first >= from) {
          ASSERT_TRUE(last->has_value());
          EXPECT_EQ((*last)->key, expected->first);
          EXPECT_EQ((*last)->value, expected->second);
        } else {
          EXPECT_FALSE(last->has_value());
        }
      } else if (choice < 94) {
        const std::string to = random() % 3 == 0 ? "" : random_key(random);
        Rows expected;
        for (auto at = rows.lower_bound(key); at != rows.end() && (to.empty() || at->first < to);
             ++at) {
          expected.insert(*at);
        }
        ASSERT_EQ(scan_all(*database, table, key, to), expected);
      } else if (choice < 97) {
        if (!frozen) frozen = database->freeze();
      } else if (frozen) {
        ASSERT_TRUE(database->commit_frozen(random() % 2 == 0));
        frozen = false;
      } else if (random() % 5 == 0) {
        ASSERT_TRUE(commit(*database));
        ASSERT_TRUE(database->close());
        database = nullptr;
        database = open_database(backing, small_options());
        ASSERT_NE(database, nullptr);
      }
    }
    expect_equal(*database, model);
  }
}

TEST(Database, a_scan_ends_when_it_is_told_to) {
  auto backing = MemoryBacking::create();
  auto database = create_database(backing);
  ASSERT_NE(database, nullptr);
  for (int i = 0; i < 100; i++)
    database->put(Table::xattrs, "k" + std::to_string(100 + i), "v");
  ASSERT_TRUE(commit(*database));
  for (int i = 0; i < 100; i++)
    database->put(Table::xattrs, "k" + std::to_string(200 + i), "v");
  int seen = 0;
  ASSERT_TRUE(database->scan(Table::xattrs, "", "",
                             [&](std::string_view, std::string_view) { return ++seen < 150; }));
  EXPECT_EQ(seen, 150);
}

TEST(Database, a_killed_process_loses_nothing_that_was_committed) {
  auto backing = MemoryBacking::create();
  auto database = create_database(backing);
  ASSERT_NE(database, nullptr);
  for (int group = 0; group < 20; group++) {
    for (int row = 0; row < 30; row++) {
      database->put(Table::inodes, "g" + std::to_string(group) + "r" + std::to_string(row), "v");
    }
    ASSERT_TRUE(commit(*database, group % 2 == 0));
  }
  database->put(Table::inodes, "uncommitted", "v");
  auto after = backing->process_kill();
  backing->stop();
  database = nullptr;
  database = open_database(after, small_options());
  ASSERT_NE(database, nullptr);
  EXPECT_EQ(scan_all(*database, Table::inodes).size(), 600u);
}

TEST(Database, a_clean_close_leaves_an_empty_log) {
  auto backing = MemoryBacking::create();
  auto database = create_database(backing);
  ASSERT_NE(database, nullptr);
  for (int i = 0; i < 1000; i++) {
    database->put(Table::dentries, "name" + std::to_string(i), std::string(100, 'x'));
    if (i % 100 == 0) {
      ASSERT_TRUE(commit(*database));
    }
  }
  ASSERT_TRUE(commit(*database));
  ASSERT_TRUE(database->close());
  database = nullptr;
  const auto logs = files_ending(*backing, ".log");
  ASSERT_EQ(logs.size(), 1u);
  auto content = metadata::read_frames(*backing, logs[0], *make_keys());
  ASSERT_TRUE(content) << content.error().message;
  EXPECT_TRUE(content->plain.empty());
  EXPECT_EQ(backing->load(logs[0])->size(), content->walk.end) << "no space written ahead is left";
}

TEST(Database, a_read_only_open_sees_the_log_and_writes_nothing) {
  auto backing = MemoryBacking::create();
  auto database = create_database(backing);
  ASSERT_NE(database, nullptr);
  database->put(Table::inodes, "flushed", "1");
  ASSERT_TRUE(commit(*database));
  ASSERT_TRUE(database->close());
  database = open_database(backing, small_options());
  database->put(Table::inodes, "logged", "2");
  ASSERT_TRUE(commit(*database));
  auto after = backing->process_kill();
  backing->stop();
  database = nullptr;

  after->set_read_only(true);
  auto options = small_options();
  options.read_only = true;
  database = open_database(after, options);
  ASSERT_NE(database, nullptr);
  EXPECT_EQ(get_or(*database, Table::inodes, "flushed"), "1");
  EXPECT_EQ(get_or(*database, Table::inodes, "logged"), "2");
  EXPECT_EQ(scan_all(*database, Table::inodes).size(), 2u);
  EXPECT_TRUE(database->close());
  database = nullptr;
  EXPECT_EQ(after->change_count(), 0u);
}

TEST(Database, tells_which_files_it_depends_on) {
  auto backing = MemoryBacking::create();
  auto database = create_database(backing);
  ASSERT_NE(database, nullptr);
  database->put(Table::inodes, "flushed", "1");
  ASSERT_TRUE(commit(*database));
  ASSERT_TRUE(database->close());
  database = nullptr;
  for (const bool read_only : {false, true}) {
    SCOPED_TRACE(read_only);
    for (const std::string_view stray : {"db/999998.sst", "db/MANIFEST-999998", "db/LOG"})
      backing->store(stray, Bytes(100, Byte{7}));
    auto options = small_options();
    options.read_only = read_only;
    database = open_database(backing, options);
    ASSERT_NE(database, nullptr);
    const auto needed = database->needed_files();
    ASSERT_TRUE(needed) << needed.error().message;
    std::set<std::string> unneeded;
    for (const auto& path : backing->files()) {
      if (!needed->contains(path.substr(3))) unneeded.insert(path);
    }
    for (const auto& name : *needed)
      EXPECT_TRUE(backing->load("db/" + name)) << name;
    EXPECT_FALSE(needed->contains("999998.sst"));
    EXPECT_FALSE(needed->contains("MANIFEST-999998"));
    EXPECT_FALSE(needed->contains("LOG"));
    // Without all other files the database opens and holds the same.
    auto bare = backing->process_kill();
    for (const auto& path : unneeded)
      bare->erase(path);
    auto opened = open_database(bare, small_options());
    ASSERT_NE(opened, nullptr);
    EXPECT_EQ(get_or(*opened, Table::inodes, "flushed"), "1");
    opened = nullptr;
    for (const std::string name : {"CURRENT", "IDENTITY"})
      EXPECT_TRUE(needed->contains(name)) << name;
    for (const std::string_view suffix : {".sst", ".log"}) {
      EXPECT_TRUE(std::any_of(needed->begin(), needed->end(), [&](const auto& name) {
        return name.ends_with(suffix);
      })) << suffix;
    }
    ASSERT_TRUE(database->close());
    database = nullptr;
  }
}

TEST(Database, an_open_removes_what_was_never_renamed) {
  auto backing = MemoryBacking::create();
  auto database = create_database(backing);
  ASSERT_NE(database, nullptr);
  ASSERT_TRUE(database->close());
  database = nullptr;
  backing->store("db/OPTIONS-000099.dbtmp", Bytes(100, Byte{7}));
  backing->store("db/000099.dbtmp", {});
  auto options = small_options();
  options.read_only = true;
  database = open_database(backing, options);
  database = nullptr;
  EXPECT_EQ(files_ending(*backing, ".dbtmp").size(), 2u);
  database = open_database(backing, small_options());
  ASSERT_NE(database, nullptr);
  EXPECT_TRUE(files_ending(*backing->power_loss(0), ".dbtmp").empty());
  EXPECT_TRUE(database->close());
}

// RocksDB asks a second time for a CURRENT that it could not read, and blames direct I/O when it is
// there then.
TEST(Database, a_read_that_fails_while_opening_is_io_and_names_the_file) {
  auto backing = MemoryBacking::create();
  auto database = create_database(backing);
  ASSERT_NE(database, nullptr);
  database->put(Table::inodes, "row", "1");
  ASSERT_TRUE(commit(*database));
  ASSERT_TRUE(database->close());
  database = nullptr;
  for (const std::string_view file : {"db/CURRENT", "db/MANIFEST", ".sst", ".log"}) {
    for (const bool read_only : {false, true}) {
      auto options = small_options();
      options.read_only = read_only;
      std::uint64_t failed = 0;
      for (std::uint64_t skip = 0;; skip++) {
        SCOPED_TRACE(std::string(file) + " read " + std::to_string(skip));
        auto copy = backing->process_kill();
        copy->inject({.operations = operation_read,
                      .path_part = std::string(file),
                      .skip = skip,
                      .count = 1});
        auto opened = Database::open(copy, make_keys(), options);
        if (opened) break;
        failed++;
        EXPECT_EQ(to_string(opened.error().code), to_string(ErrorCode::io))
            << opened.error().message;
        EXPECT_NE(opened.error().message.find(file), std::string::npos) << opened.error().message;
      }
      EXPECT_GT(failed, 0u) << file;
    }
  }
}

TEST(Database, says_missing_when_there_is_none_and_exists_when_there_is_one) {
  auto backing = MemoryBacking::create();
  auto opened = Database::open(backing, make_keys(), small_options());
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::missing);
  auto database = create_database(backing);
  ASSERT_NE(database, nullptr);
  ASSERT_TRUE(database->close());
  auto options = small_options();
  options.create = true;
  opened = Database::open(backing, make_keys(), options);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::exists);
}

}  // namespace
}  // namespace nacre::tests
