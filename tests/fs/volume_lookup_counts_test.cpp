// SPDX-License-Identifier: Apache-2.0
// The counts of lookups of inodes that the kernel keeps: they are right, and take ten bytes each.
#include <cstdlib>
#include <map>
#include <random>

#include "fs/volume/inode_table.h"
#include "fs/volume/lookup_counts.h"
#include "tests/fs/volume_fixture.h"

namespace nacre::tests {
namespace {

using fs::InodeNumber;
using fs::InodeTable;
using fs::LookupCounts;

// 8 bytes, at most a quarter more right after growing, and a share for the smallest tables.
constexpr double bytes_per_inode_max = 8.0 * 8 / 7 * 5 / 4 + 0.1;

std::size_t inode_count() {
  return std::getenv("NACRE_LONG") != nullptr ? 10'000'000 : 200'000;
}

TEST(LookupCounts, knows_what_a_map_knows) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  LookupCounts counts;
  std::map<std::uint64_t, std::uint64_t> expected;
  for (int step = 0; step < 300'000; ++step) {
    // Few numbers for a while, then many, then few again: it grows and shrinks. Some too large.
    const std::uint64_t range = (step / 50'000) % 2 == 0 ? 300 : 20'000;
    std::uint64_t number = 1 + random() % range;
    if (random() % 50 == 0) number += 1ull << 60;
    const auto known = expected.find(number);
    switch (random() % 4) {
      case 0:
      case 1: {
        if (known != expected.end()) break;
        const std::uint64_t count = random() % 20 == 0 ? 65'530 + random() % 10 : 1 + random() % 3;
        counts.insert(InodeNumber{number}, count);
        expected.emplace(number, count);
        break;
      }
      case 2: {
        const auto taken = counts.take(InodeNumber{number});
        ASSERT_EQ(taken.value_or(0), known == expected.end() ? 0 : known->second);
        if (known != expected.end()) expected.erase(known);
        break;
      }
      default: {
        const std::uint64_t less = random() % 10 == 0 ? 70'000 : 1 + random() % 2;
        counts.subtract(InodeNumber{number}, less);
        if (known == expected.end()) break;
        known->second -= std::min(known->second, less);
        if (known->second == 0) expected.erase(known);
      }
    }
    ASSERT_EQ(counts.size(), expected.size());
  }
  for (const auto& [number, count] : expected)
    ASSERT_EQ(counts.take(InodeNumber{number}).value_or(0), count);
  EXPECT_EQ(counts.size(), 0u);
}

TEST(LookupCounts, take_ten_bytes_each_and_give_them_back) {
  const std::size_t count = inode_count();
  LookupCounts counts;
  double most = 0;
  for (std::size_t i = 1; i <= count; ++i) {
    counts.insert(InodeNumber{i * 16}, 1);
    if (i > 1000) {
      most = std::max(most, static_cast<double>(counts.memory_bytes()) / static_cast<double>(i));
    }
  }
  EXPECT_LE(most, bytes_per_inode_max);
  EXPECT_EQ(counts.size(), count);
  for (std::size_t i = 1; i <= count; ++i)
    counts.subtract(InodeNumber{i * 16}, 1);
  EXPECT_EQ(counts.size(), 0u);
  EXPECT_LE(counts.memory_bytes(), 1024u);
}

// Ten million with NACRE_LONG: 100 MB, where the kernel itself takes ten gigabytes.
TEST(InodeTable, remembers_what_the_kernel_keeps_in_ten_bytes_each) {
  constexpr std::size_t loaded_max = 65'536;
  const std::size_t count = inode_count();
  const auto backing = MemoryBacking::create();
  NACRE_ASSERT_OK(fs::Mounted::format(backing, test_keys(), 1, {}));
  auto database = metadata::Database::open(backing, test_keys(), {});
  NACRE_ASSERT_OK(database);
  InodeTable table(
      **database, [](fs::InodeRef) { ADD_FAILURE() << "an inode was erased"; }, loaded_max);
  for (std::size_t i = 1; i <= count; ++i) {
    fs::InodeState state;
    state.row.mode = S_IFREG | 0644;
    state.row.link_count = 1;
    table.add_lookup(table.create(InodeNumber{i}, std::move(state)));
  }
  const auto full = table.count();
  EXPECT_EQ(full.known, count);
  EXPECT_LE(full.in_memory, loaded_max + 16);
  const auto shrunk = static_cast<double>(full.known - full.in_memory);
  EXPECT_GT(shrunk, 100'000);
  EXPECT_LE(static_cast<double>(full.shrunk_bytes), bytes_per_inode_max * shrunk);
  for (std::size_t i = 1; i <= count; ++i)
    table.forget(InodeNumber{i}, 1);
  EXPECT_EQ(table.count().known, 0u);
  EXPECT_LE(table.count().shrunk_bytes, 16u * 1024);
  NACRE_EXPECT_OK((*database)->close());
}

}  // namespace
}  // namespace nacre::tests
