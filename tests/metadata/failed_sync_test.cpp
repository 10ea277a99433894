// SPDX-License-Identifier: Apache-2.0
// A sync that fails may have lost for ever what it should have saved. A later sync that succeeds
// does not show that, because the system has dropped what it could not write. The next opening of
// the database still finds the lost frames, since they are in the system's cache, and lets new
// files depend on them.
#include <gtest/gtest.h>

#include <string_view>
#include <vector>

#include "tests/metadata/database_fixture.h"

namespace nacre::tests {
namespace {

using metadata::Table;

constexpr std::uint64_t failure_count_max = 400;

// One group that is in tables, and one that is in the log alone.
std::shared_ptr<MemoryBacking> made_database(bool is_closed) {
  auto backing = MemoryBacking::create();
  auto database = create_database(backing);
  database->put(Table::system, "first", "1");
  EXPECT_TRUE(commit(*database));
  EXPECT_TRUE(database->close());
  database = open_database(backing, small_options());
  database->put(Table::system, "second", "2");
  EXPECT_TRUE(commit(*database));
  if (!is_closed) return backing->process_kill();
  EXPECT_TRUE(database->close());
  return backing->power_loss(0);
}

// Expects that everything confirmed survives a power loss at this moment.
void expect_whole(const MemoryBacking& backing, const std::vector<std::string_view>& keys,
                  std::string_view when) {
  for (const std::uint64_t survival : {0u, 5u}) {
    SCOPED_TRACE(testing::Message() << when << ", survival " << survival);
    const auto database = open_database(backing.power_loss(survival), small_options());
    if (!database) return;
    for (const std::string_view key : keys) {
      const auto value = database->get(Table::system, key);
      EXPECT_TRUE(value && *value) << key;
    }
  }
}

enum class End : std::uint8_t { close, drop };

// Opens, commits, and closes or not. One failure may end that anywhere. Returns whether the commit
// was confirmed.
bool work_and_meet_errors(const std::shared_ptr<MemoryBacking>& backing, End end) {
  const auto database = metadata::Database::open(backing, make_keys(), small_options());
  if (!database) return false;
  (*database)->put(Table::system, "third", "3");
  const bool is_committed = (*database)->freeze() && (*database)->commit_frozen(true);
  if (is_committed && end == End::close) static_cast<void>((*database)->close());
  return is_committed;
}

// Each change that matches fails in turn; returns how many there were.
std::uint64_t sweep(const MemoryBacking& made, std::uint32_t operations, bool partial, End end) {
  for (std::uint64_t skip = 0; skip < failure_count_max; ++skip) {
    SCOPED_TRACE(testing::Message() << "failure at change " << skip);
    const auto backing = made.process_kill();
    backing->inject({.operations = operations, .skip = skip, .count = 1, .partial = partial});
    std::vector<std::string_view> keys = {"first", "second"};
    if (work_and_meet_errors(backing, end)) keys.push_back("third");
    const bool is_past_the_end = backing->operation_count(operations) <= skip;
    backing->clear_failures();
    auto database = open_database(backing, small_options());
    if (!database) return skip;
    expect_whole(*backing, keys, "opened again");
    EXPECT_TRUE(database->close());
    expect_whole(*backing, keys, "closed");
    if (is_past_the_end || testing::Test::HasFailure()) return skip;
  }
  return failure_count_max;
}

TEST(FailedSync, costs_nothing_that_an_opening_after_it_finds) {
  for (const bool is_closed : {true, false}) {
    const auto made = made_database(is_closed);
    for (const End end : {End::close, End::drop}) {
      SCOPED_TRACE(testing::Message() << (is_closed ? "closed, " : "killed, ")
                                      << (end == End::close ? "then closed" : "then dropped"));
      const std::uint64_t count = sweep(*made, change_sync, false, end);
      EXPECT_GE(count, 6u);
      EXPECT_LT(count, failure_count_max);
      if (testing::Test::HasFailure()) return;
    }
  }
}

TEST(FailedSync, as_any_change_that_fails_costs_nothing_that_was_confirmed) {
  const std::uint64_t count = sweep(*made_database(false), change_any, true, End::close);
  EXPECT_GE(count, 20u);
  EXPECT_LT(count, failure_count_max);
}

}  // namespace
}  // namespace nacre::tests
