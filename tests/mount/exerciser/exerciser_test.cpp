// SPDX-License-Identifier: Apache-2.0
// The exerciser itself, on files of the machine: it notices what is wrong, and makes it small.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "tests/mount/exerciser/exercised_files.h"
#include "tests/mount/exerciser/history_maker.h"
#include "tests/mount/exerciser/shrink.h"
#include "tests/support/temporary_directory.h"

namespace nacre::tests {

namespace {

History random_history(std::uint64_t seed, std::size_t count) {
  RandomHistory random({.seed = seed,
                        .file_count = 3,
                        .channels = {Channel::plain, Channel::direct_aio, Channel::io_uring},
                        .syncs_first = true,
                        .one_reopen_in = 20,
                        .one_check_in = 20,
                        .one_upkeep_in = 20});
  History history;
  while (history.size() < count)
    history.push_back(random.next([](std::size_t) { return 300'000; }));
  return history;
}

TEST(ExerciserHistory, comes_back_from_its_text) {
  for (const Operation& operation : random_history(1, 2000)) {
    EXPECT_EQ(operation_from(to_string(operation)), operation) << to_string(operation);
  }
  EXPECT_FALSE(operation_from("rename file=0"));
  EXPECT_FALSE(operation_from("write file=0 at=x size=1"));
  EXPECT_FALSE(operation_from("write file=0 via=carrier_pigeon"));
}

TEST(ExerciserHistory, is_the_same_for_the_same_seed) {
  EXPECT_EQ(random_history(7, 500), random_history(7, 500));
  EXPECT_NE(random_history(7, 500), random_history(8, 500));
  EXPECT_EQ(state_history({.seed = 7, .file_count = 3}, 500),
            state_history({.seed = 7, .file_count = 3}, 500));
}

TEST(ExerciserHistory, tells_runs_of_alike_operations_once) {
  History history;
  for (std::uint64_t i = 0; i < 64; ++i) {
    history.push_back({.kind = Kind::write, .size = 4096, .stamp = i});
    history.push_back({.kind = Kind::fsync});
  }
  history.push_back({.kind = Kind::upkeep});
  EXPECT_EQ(to_summary(history),
            "64 times:\n"
            "  write file=0 at=0 size=4096 via=plain fill=text stamp=0\n"
            "  fsync file=0\n"
            "upkeep\n");
}

// A history fails if it has a truncation, a copy some time after it, and a read at the end.
bool fails(const History& history) {
  bool is_cut = false, is_copied = false;
  for (const Operation& operation : history) {
    if (operation.kind == Kind::truncate) is_cut = true;
    if (operation.kind == Kind::copy && is_cut) is_copied = true;
    if (operation.kind == Kind::read && is_copied) return true;
  }
  return false;
}

TEST(ExerciserShrink, leaves_what_the_failure_needs) {
  const Shrunk shrunk = shrink(random_history(1, 3000), fails, {});
  ASSERT_TRUE(shrunk.fails);
  ASSERT_EQ(shrunk.history.size(), 3u) << to_summary(shrunk.history);
  EXPECT_EQ(shrunk.history[0].kind, Kind::truncate);
  EXPECT_EQ(shrunk.history[1].kind, Kind::copy);
  EXPECT_EQ(shrunk.history[2].kind, Kind::read);
  EXPECT_EQ(shrunk.history[2].channel, Channel::plain);
  EXPECT_LE(shrunk.history[2].size, 4096u);
  EXPECT_LE(shrunk.replay_count, ShrinkBounds{}.replay_count_max);
}

TEST(ExerciserShrink, says_what_does_not_fail_again_and_keeps_to_its_bounds) {
  const History history = random_history(1, 3000);
  std::uint64_t replay_count = 0;
  const auto never = [&](const History&) {
    ++replay_count;
    return false;
  };
  const Shrunk unshrunk = shrink(history, never, {});
  EXPECT_FALSE(unshrunk.fails);
  EXPECT_EQ(unshrunk.history, history);
  EXPECT_EQ(unshrunk.replay_count, replay_count);
  const Shrunk barely = shrink(history, fails, {.replay_count_max = 5});
  EXPECT_LE(barely.replay_count, 5u);
}

class ExerciserFiles : public testing::Test {
 protected:
  std::string path() const { return folder_.path("file"); }
  // Changes a byte without the exerciser's knowledge.
  void spoil(std::uint64_t offset) const {
    const int file = ::open((path() + ".0").c_str(), O_WRONLY | O_CLOEXEC);
    ASSERT_EQ(::pwrite(file, "x", 1, static_cast<off_t>(offset)), 1);
    ::close(file);
  }

  TemporaryDirectory folder_;
  KernelCalls calls_;
};

TEST_F(ExerciserFiles, are_right_on_a_file_system_that_is) {
  ExercisedFiles files(path(), 3, {}, calls_);
  RandomHistory random({.seed = 1,
                        .file_count = 3,
                        .file_size_max = 100'000,
                        .operation_size_max = 20'000,
                        .one_reopen_in = 20,
                        .one_check_in = 20});
  for (int i = 0; i < 1000; ++i) {
    const Operation operation = random.next([&](std::size_t file) { return files.size_of(file); });
    const auto wrong = files.run(operation);
    if (wrong && wrong->find("not supported") != std::string::npos) {
      GTEST_SKIP() << "the folder for temporary files cannot do " << to_string(operation);
    }
    ASSERT_EQ(wrong, std::nullopt) << i << ' ' << to_string(operation);
  }
}

TEST_F(ExerciserFiles, notice_one_byte) {
  const Operation write{.kind = Kind::write, .size = 100'000, .filling = Filling::random};
  for (const Kind kind : {Kind::read, Kind::mapped_read, Kind::check}) {
    ExercisedFiles files(path(), 1, {}, calls_);
    const Operation look{.kind = kind, .size = 100'000};
    ASSERT_EQ(files.run(write), std::nullopt);
    ASSERT_EQ(files.run(look), std::nullopt);
    spoil(77'777);
    const auto wrong = files.run(look);
    ASSERT_TRUE(wrong) << to_string(look);
    EXPECT_NE(wrong->find("1 bytes from 77777 to 77778"), std::string::npos) << *wrong;
  }
}

TEST_F(ExerciserFiles, notice_another_size_and_bytes_behind_the_end) {
  ExercisedFiles files(path(), 1, {}, calls_);
  ASSERT_EQ(files.run({.kind = Kind::write, .size = 5000}), std::nullopt);
  spoil(5000);
  EXPECT_TRUE(files.run({.kind = Kind::fsync}));
  EXPECT_TRUE(files.run({.kind = Kind::check}));
}

TEST_F(ExerciserFiles, notice_a_call_that_fails_and_leave_nothing_behind) {
  {
    ExercisedFiles files(folder_.path("absent/file"), 1, {}, calls_);
    EXPECT_TRUE(files.run({.kind = Kind::write, .size = 1}));
    ExercisedFiles with_upkeep(path(), 1, {.upkeep = "false"}, calls_);
    ASSERT_EQ(with_upkeep.run({.kind = Kind::write, .size = 1}), std::nullopt);
    EXPECT_TRUE(with_upkeep.run({.kind = Kind::upkeep}));
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

}  // namespace

}  // namespace nacre::tests
