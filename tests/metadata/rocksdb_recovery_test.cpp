// SPDX-License-Identifier: Apache-2.0
// The fact about RocksDB that the sealed logs answer: after a damaged record in the middle of a log
// RocksDB opens without a word and drops all that followed, though it was synced.
#include <gtest/gtest.h>
#include <rocksdb/db.h>
#include <rocksdb/env.h>

#include <memory>

#include "metadata/sealed_fs/frame_layout.h"
#include "tests/metadata/database_fixture.h"

namespace nacre::tests {
namespace {

using metadata::Database;
using metadata::Table;

constexpr int row_count = 20;

TEST(RocksdbRecovery, plain_rocksdb_silently_drops_what_follows_a_damaged_record) {
  std::unique_ptr<rocksdb::Env> env(rocksdb::NewMemEnv(rocksdb::Env::Default()));
  rocksdb::Options options;
  options.env = env.get();
  options.create_if_missing = true;
  const auto open = [&] {
    rocksdb::DB* db = nullptr;
    EXPECT_TRUE(rocksdb::DB::Open(options, "/db", &db).ok());
    return std::unique_ptr<rocksdb::DB>(db);
  };
  auto db = open();
  ASSERT_NE(db, nullptr);
  rocksdb::WriteOptions synced;
  synced.sync = true;
  for (int i = 0; i < row_count; i++) {
    ASSERT_TRUE(db->Put(synced, "row" + std::to_string(i), std::string(100, 'v')).ok());
  }
  db = nullptr;
  std::vector<std::string> names;
  ASSERT_TRUE(env->GetChildren("/db", &names).ok());
  for (const auto& name : names) {
    if (!name.ends_with(".log")) continue;
    std::string log;
    ASSERT_TRUE(rocksdb::ReadFileToString(env.get(), "/db/" + name, &log).ok());
    log[log.size() / 2] ^= 1;
    ASSERT_TRUE(rocksdb::WriteStringToFile(env.get(), log, "/db/" + name).ok());
  }
  db = open();
  ASSERT_NE(db, nullptr) << "it opens, which is the point";
  std::string value;
  EXPECT_TRUE(db->Get({}, "row0", &value).ok());
  EXPECT_TRUE(db->Get({}, "row" + std::to_string(row_count - 1), &value).IsNotFound());
}

TEST(RocksdbRecovery, ours_says_that_the_log_is_damaged) {
  auto backing = MemoryBacking::create();
  auto database = create_database(backing);
  ASSERT_NE(database, nullptr);
  for (int i = 0; i < row_count; i++) {
    database->put(Table::inodes, "row" + std::to_string(i), std::string(100, 'v'));
    ASSERT_TRUE(commit(*database));
  }
  auto killed = backing->process_kill();
  const auto path = files_ending(*killed, ".log").back();
  Bytes log = *killed->load(path);
  std::size_t frame = metadata::find_frame_magic(log, 0);
  for (int i = 0; i < row_count / 2; i++)
    frame = metadata::find_frame_magic(log, frame + 1);
  log[frame + 50] ^= 1;
  killed->store(path, log);
  for (const bool read_only : {true, false}) {
    auto options = small_options();
    options.read_only = read_only;
    auto opened = Database::open(killed, make_keys(), options);
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, ErrorCode::corrupt) << opened.error().message;
  }
}

// One bit that flips on the way from the disk makes the last frame look torn. The log is read more
// than once, so another reading shows that the frame is whole.
TEST(RocksdbRecovery, a_last_group_that_is_read_badly_once_is_not_taken_for_torn) {
  auto backing = MemoryBacking::create();
  auto database = create_database(backing);
  ASSERT_NE(database, nullptr);
  for (const char* row : {"first", "last"}) {
    database->put(Table::inodes, row, "1");
    ASSERT_TRUE(commit(*database));
  }
  const auto killed = backing->process_kill();
  int refused_count = 0;
  for (std::uint64_t skip = 0; skip < 5; skip++) {
    for (const bool is_short : {false, true}) {
      const auto copy = killed->process_kill();
      copy->inject({.operations = operation_read,
                    .path_part = ".log",
                    .skip = skip,
                    .count = 1,
                    .partial = is_short,
                    .flip = !is_short});
      {
        const auto opened = Database::open(copy, make_keys(), small_options());
        if (!opened) refused_count++;
        if (opened) {
          EXPECT_TRUE(*(*opened)->get(Table::inodes, "last")) << "read " << skip;
        }
      }
      copy->clear_failures();
      const auto reopened = open_database(copy, small_options());
      ASSERT_NE(reopened, nullptr);
      EXPECT_TRUE(*reopened->get(Table::inodes, "last")) << "after a bad read " << skip;
    }
  }
  EXPECT_GE(refused_count, 2);
}

// A group may span many frames; torn in the middle it counts as a tail, and goes as a whole.
TEST(RocksdbRecovery, a_group_torn_within_its_frames_is_a_torn_tail) {
  auto backing = MemoryBacking::create();
  auto database = create_database(backing);
  ASSERT_NE(database, nullptr);
  database->put(Table::inodes, "small", "1");
  ASSERT_TRUE(commit(*database));
  for (int i = 0; i < 600; i++) {
    database->put(Table::inodes, "big" + std::to_string(i), std::string(1000, 'v'));
  }
  ASSERT_TRUE(commit(*database));
  auto killed = backing->process_kill();
  const auto path = files_ending(*killed, ".log").back();
  const Bytes log = *killed->load(path);
  std::vector<std::size_t> frames;
  for (std::size_t at = metadata::find_frame_magic(log, 0); at < log.size();
       at = metadata::find_frame_magic(log, at + 1)) {
    frames.push_back(at);
  }
  ASSERT_GE(frames.size(), 10u);
  for (std::size_t cut = 3; cut < frames.size(); cut++) {
    auto torn = killed->process_kill();
    torn->store(path, ByteView(log).first(frames[cut] + 20));
    auto reopened = open_database(torn, small_options());
    ASSERT_NE(reopened, nullptr);
    EXPECT_EQ(reopened->get(Table::inodes, "small").value(), "1");
    EXPECT_EQ(reopened->get(Table::inodes, "big0").value(), std::nullopt) << "frame " << cut;
  }
}

}  // namespace
}  // namespace nacre::tests
