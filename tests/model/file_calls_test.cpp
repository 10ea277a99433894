// SPDX-License-Identifier: Apache-2.0
// One file's data against a plain array: writes, holes, sizes, copies, fsync, commits, merging,
// compaction, eviction and remounts in every mix, for chunks of 4 KiB to 1 MiB. A history that
// fails is shrunk, and its calls are printed.
//
// NACRE_MODEL_SEED=n begins with that seed, NACRE_MODEL_STEPS=n says how many calls there are in
// all. 100,000 calls by default, a million with NACRE_LONG=1.
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/model/file_calls.h"

namespace nacre::tests {
namespace {

std::uint64_t number_from(const char* name, std::uint64_t otherwise) {
  const char* given = std::getenv(name);
  return given == nullptr ? otherwise : std::strtoull(given, nullptr, 10);
}

std::string lines_of(const std::vector<Call>& calls) {
  std::string lines;
  for (const Call& call : calls)
    lines += "  " + to_string(call) + "\n";
  return lines;
}

// A share of all calls, in rounds of a new volume each.
void expect_array(std::vector<FileCallsProfile> profiles, std::size_t calls_in_round,
                  std::size_t share_divisor) {
  const std::uint64_t all =
      number_from("NACRE_MODEL_STEPS", std::getenv("NACRE_LONG") != nullptr ? 1'000'000 : 100'000);
  const std::uint64_t rounds =
      std::max<std::uint64_t>(profiles.size(), all / share_divisor / calls_in_round);
  const auto first_seed = static_cast<std::uint32_t>(
      number_from("NACRE_MODEL_SEED", std::random_device{}() % 1'000'000'000));
  std::cout << "seed " << first_seed << ", " << rounds << " rounds of " << calls_in_round
            << " calls\n";
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const auto seed = static_cast<std::uint32_t>(first_seed + round);
    const FileCallsProfile& profile = profiles[seed % profiles.size()];
    std::vector<Call> calls = draw_calls(profile, seed, calls_in_round);
    const auto difference = run_calls(profile, calls);
    if (!difference) continue;
    calls.resize(std::min(calls.size(), difference->call + 1));
    const auto few = shrink_calls(profile, std::move(calls));
    FAIL() << "seed " << seed << ", chunks of " << profile.chunk_size_bytes << " bytes, call "
           << difference->call << ": " << difference->what << "\nAs few calls:\n"
           << lines_of(few);
  }
}

FileCallsProfile profile_of(std::uint32_t chunk_size, std::uint64_t cache_budget,
                            std::uint32_t inline_bytes_max) {
  return {.chunk_size_bytes = chunk_size,
          .cache_budget_bytes = cache_budget,
          .inline_commit_bytes_max = inline_bytes_max};
}

TEST(FileCalls, equals_an_array_whatever_is_called_in_which_order) {
  expect_array(
      {profile_of(4u << 10, 64u << 20, 128u << 10), profile_of(16u << 10, 1u << 20, 0),
       profile_of(64u << 10, 64u << 20, 128u << 10), profile_of(64u << 10, 1u << 20, 8u << 10),
       profile_of(256u << 10, 64u << 20, 128u << 10), profile_of(1u << 20, 64u << 20, 128u << 10)},
      1000, 2);
}

// Found by fsx: {one patch of version v} and {a base of version v + 63} had one name in the cache.
TEST(FileCalls, a_small_state_that_is_rewritten_in_place_is_never_an_older_one) {
  std::vector<FileCallsProfile> profiles;
  for (const std::uint32_t chunk_size : {4u << 10, 64u << 10, 1u << 20}) {
    for (const std::uint64_t state_size : {64u, 1000u, 4096u}) {
      FileCallsProfile profile = profile_of(chunk_size, 64u << 20, 128u << 10);
      profile.state_size_bytes = state_size;
      profile.file_size_max = state_size;
      profile.write_size_max = state_size;
      profiles.push_back(profile);
    }
  }
  expect_array(std::move(profiles), 2000, 2);
}

}  // namespace
}  // namespace nacre::tests
