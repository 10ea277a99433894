// SPDX-License-Identifier: Apache-2.0
// The count of durable changes: what it said is there after a crash, however the database was left.
#include "metadata/tables/volume_age.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/metadata/database_fixture.h"

namespace nacre::tests {
namespace {

using metadata::Database;
using metadata::Table;

void change(Database& database, int group) {
  const std::string key = "row" + std::to_string(group % 3);
  if (group % 4 == 3) {
    database.erase(Table::chunks, key);
  } else {
    database.put(Table::chunks, key, std::string(300, static_cast<char>('a' + group % 26)));
  }
  database.put(Table::inodes, "last", std::to_string(group));
}

std::uint64_t count_found(std::shared_ptr<MemoryBacking> backing, bool read_only) {
  metadata::DatabaseOptions options = small_options();
  options.read_only = read_only;
  const auto database = open_database(std::move(backing), options);
  return database ? database->durable_change_count() : 0;
}

TEST(VolumeAge, a_clean_closing_keeps_the_count_of_changes) {
  const auto backing = MemoryBacking::create();
  auto database = create_database(backing);
  std::uint64_t count = 0;
  for (int group = 0; group < 40; ++group) {
    change(*database, group);
    ASSERT_TRUE(commit(*database));
    EXPECT_GT(database->durable_change_count(), count);
    count = database->durable_change_count();
    if (group % 5 != 4) continue;
    ASSERT_TRUE(database->close());
    EXPECT_EQ(database->durable_change_count(), count);
    database.reset();
    EXPECT_EQ(count_found(backing, true), count);
    database = open_database(backing, small_options());
    ASSERT_NE(database, nullptr);
    EXPECT_EQ(database->durable_change_count(), count);
  }
}

TEST(VolumeAge, what_was_counted_is_found_after_power_loss_and_what_was_not_may_be_gone) {
  for (std::uint64_t seed = 0; seed < 24; ++seed) {
    const auto backing = MemoryBacking::create();
    auto database = create_database(backing);
    std::uint64_t counted = 0;
    for (int group = 0; group < 12; ++group) {
      change(*database, group);
      const bool is_synced = group % 3 != 2;
      ASSERT_TRUE(commit(*database, is_synced));
      if (!is_synced) {
        EXPECT_EQ(database->durable_change_count(), counted);
      }
      counted = database->durable_change_count();
      const std::shared_ptr<MemoryBacking> left = backing->power_loss(seed);
      const std::uint64_t found = count_found(left, false);
      EXPECT_GE(found, counted) << "seed " << seed << ", group " << group;
      // After an opening for writing, all that it found is durable, too.
      EXPECT_GE(count_found(left->power_loss(seed + 1), true), found);
    }
  }
}

}  // namespace
}  // namespace nacre::tests
