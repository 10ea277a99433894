// SPDX-License-Identifier: Apache-2.0
// A move to format 2 that power loss cut off when the new keyring was durable: some files of db/
// have the names of those of the older epoch, others wait for theirs.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <random>

#include <fmt/format.h>

#include "fs/backup/closed_volume.h"
#include "fs/repair/repair.h"
#include "tests/fs/store_fixture.h"
#include "tests/hostile/mutation.h"
#include "tests/hostile/specimen.h"

namespace nacre::tests {
namespace {

// Only opening for writing settles which files count, so nothing else is asked.
TEST(CutOffMove, whose_files_somebody_changes_gives_a_verdict_or_what_was_there) {
  const Specimen& specimen = specimens().switching;
  ASSERT_TRUE(specimen.backing);
  const auto keys = open_specimen_keys(*specimen.backing);
  NACRE_ASSERT_OK(keys);
  const char* const wanted = std::getenv("NACRE_SEED");
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const std::uint64_t seed =
      wanted != nullptr
          ? std::strtoull(wanted, nullptr, 10)
          : static_cast<std::uint64_t>(std::chrono::floor<std::chrono::days>(now).count());
  const std::uint64_t count = std::getenv("NACRE_LONG") != nullptr ? 7200 : 100;
  const MutationSources sources{*specimens().early, *specimens().other};
  std::vector<std::string> paths;
  for (const auto& path : specimen.backing->files()) {
    if (path.starts_with("db/")) paths.push_back(path);
  }
  std::uint64_t made = 0, opened_count = 0;
  for (std::uint64_t number = 0; made < count && number < 50 * count; ++number) {
    std::mt19937_64 random(seed * 1'000'003 + number);
    const auto backing = specimen.backing->process_kill();
    const auto kind = static_cast<MutationKind>(random() % mutation_kind_count);
    const auto mutation = mutate(*backing, paths[random() % paths.size()], kind, sources, random);
    if (!mutation) continue;
    ++made;
    SCOPED_TRACE(
        fmt::format("{}; again with NACRE_SEED={}, number {}", mutation->text, seed, number));
    const auto volume = open_specimen(backing, *keys);
    if (!volume) {
      const fs::Verdict verdict = fs::verdict_of(volume.error().code);
      EXPECT_TRUE(verdict == fs::Verdict::rot || verdict == fs::Verdict::tampered ||
                  verdict == fs::Verdict::missing || verdict == fs::Verdict::rolled_back)
          << volume.error().message;
      continue;
    }
    ++opened_count;
    const auto tree = observe(**volume, specimen_options().store.chunk_size_bytes);
    EXPECT_EQ(wrong_fact(tree, specimen.trees.back()), "");
    static_cast<void>(volume->mounted().close());
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_EQ(made, count);
  fmt::print("{} mutations: {} opened\n", made, opened_count);
}

// Nothing is damaged there, so there is nothing to repair. A backup is refused, since a copy of
// only those files that have their lasting names could not be opened.
TEST(CutOffMove, is_no_damage_and_not_copied) {
  const Specimen& specimen = specimens().switching;
  ASSERT_TRUE(specimen.backing);
  const auto keys = open_specimen_keys(*specimen.backing);
  NACRE_ASSERT_OK(keys);
  const auto engine = engine::Engine::create({.thread_count = 1});
  NACRE_ASSERT_OK(engine);
  const auto copied = fs::list_closed_volume(*specimen.backing->process_kill());
  EXPECT_FALSE(copied);
  if (!copied) {
    EXPECT_NE(copied.error().message.find("mount"), std::string::npos) << copied.error().message;
  }

  fs::RepairOptions options;
  options.scratch = MemoryBacking::create();
  const auto dry = fs::plan_repair(specimen.backing->process_kill(), *keys, **engine, options, {});
  EXPECT_FALSE(dry);
  if (!dry) {
    EXPECT_NE(dry.error().message.find("mount"), std::string::npos) << dry.error().message;
  }

  const auto backing = specimen.backing->process_kill();
  const auto repair = fs::plan_repair(backing, *keys, **engine, {}, {});
  NACRE_ASSERT_OK(repair);
  for (const auto& step : repair->plan.steps)
    ADD_FAILURE() << step.why;
  const auto volume = open_specimen(backing, *keys);
  NACRE_ASSERT_OK(volume);
  const auto tree = observe(**volume, specimen_options().store.chunk_size_bytes);
  EXPECT_EQ(wrong_fact(tree, specimen.trees.back()), "");
  NACRE_EXPECT_OK(volume->mounted().close());
}

}  // namespace
}  // namespace nacre::tests
