// SPDX-License-Identifier: Apache-2.0
// Files' data against plain arrays: writes, holes, sizes, copies within a file and between two,
// fsync, flushes, commits, merging, compaction, eviction and remounts in every mix; for chunks of
// 4 KiB to 1 MiB, on a volume and on file data alone, quiet and with a background at work all the
// while. A history that fails is shrunk, and its calls are printed.
//
// NACRE_MODEL_SEED=n begins with that seed, NACRE_MODEL_STEPS=n says how many calls there are in
// all. 50,000 calls by default, a million with NACRE_LONG=1.
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

struct NamedProfile {
  std::string name;
  FileCallsProfile profile;
};
void PrintTo(const NamedProfile& named, std::ostream* out) {
  *out << named.name;
}

// Each level, size of chunks and background; and what those do not show.
std::vector<NamedProfile> all_profiles() {
  std::vector<NamedProfile> all;
  for (const TestedLevel level : {TestedLevel::data, TestedLevel::volume}) {
    for (const std::uint32_t chunk_kib : {4u, 64u, 1024u}) {
      for (const bool is_tended : {false, true}) {
        FileCallsProfile profile{.level = level, .is_tended = is_tended};
        profile.options.chunk_size_bytes = chunk_kib << 10;
        profile.options.background_compaction = is_tended;
        if (is_tended) {
          profile.options.engine_thread_count = 4;
          profile.options.dirty_budget_bytes = 512u << 10;
        }
        all.push_back({(level == TestedLevel::data ? "data_" : "volume_") +
                           std::to_string(chunk_kib) + "k" + (is_tended ? "_tended" : ""),
                       profile});
      }
    }
  }
  FileCallsProfile nothing_inlined;
  nothing_inlined.options.chunk_size_bytes = 16u << 10;
  nothing_inlined.options.cache_budget_bytes = 1u << 20;
  nothing_inlined.options.inline_commit_bytes_max = 0;
  all.push_back({"volume_16k_nothing_inlined", nothing_inlined});
  FileCallsProfile small_cache;
  small_cache.options.cache_budget_bytes = 1u << 20;
  small_cache.options.inline_commit_bytes_max = 8u << 10;
  all.push_back({"volume_64k_small_cache", small_cache});
  return all;
}

class FileCalls : public ::testing::TestWithParam<NamedProfile> {
 protected:
  // The profile's share of all calls, in rounds of new files each.
  static void expect_arrays(std::vector<FileCallsProfile> profiles, std::size_t calls_in_round) {
    const std::uint64_t all =
        number_from("NACRE_MODEL_STEPS", std::getenv("NACRE_LONG") != nullptr ? 1'000'000 : 50'000);
    const std::uint64_t share = all / test_count / all_profiles().size();
    const std::uint64_t rounds = (share + calls_in_round - 1) / calls_in_round;
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
      FAIL() << "seed " << seed << ", call " << difference->call << ": " << difference->what
             << "\nAs few calls:\n"
             << lines_of(few);
    }
  }

  static constexpr std::uint64_t test_count = 2;  // of this suite
};

TEST_P(FileCalls, equal_arrays_whatever_is_called_in_which_order) {
  expect_arrays({GetParam().profile}, 1000);
}

// Found by fsx: {one patch of version v} and {a base of version v + 63} had one name in the cache.
TEST_P(FileCalls, never_show_an_older_state_of_a_file_that_is_rewritten_in_place) {
  std::vector<FileCallsProfile> profiles;
  for (const std::uint64_t state_size : {64u, 1000u, 4096u}) {
    FileCallsProfile profile = GetParam().profile;
    profile.state_size_bytes = state_size;
    profile.file_size_max = state_size;
    profile.write_size_max = state_size;
    profiles.push_back(profile);
  }
  expect_arrays(std::move(profiles), 1200);
}

INSTANTIATE_TEST_SUITE_P(On, FileCalls, ::testing::ValuesIn(all_profiles()),
                         [](const auto& named) { return named.param.name; });

}  // namespace
}  // namespace nacre::tests
