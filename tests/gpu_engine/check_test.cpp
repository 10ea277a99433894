// SPDX-License-Identifier: Apache-2.0
// A check that fails ends the process with its words, whatever becomes of the sink.
#include "gpu_engine/base/check.h"

#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <string>
#include <thread>

#include <gtest/gtest.h>

namespace nacre {
namespace {

int evaluations = 0;
int count_evaluation() {
  return ++evaluations;
}

void compare(std::uint64_t size, std::uint64_t staged) {
  NACRE_CHECK(size >= staged, "segment {} shrank from {} to {} bytes", 7, staged, size);
}

void write_to_sink(std::string_view message) noexcept {
  const std::string text = "[sink: " + std::string(message) + "]\n";
  static_cast<void>(!::write(STDERR_FILENO, text.data(), text.size()));
}

TEST(Check, that_holds_costs_no_argument) {
  evaluations = 0;
  NACRE_CHECK(true, "{}", count_evaluation());
  NACRE_CHECK(1 + 1 == 2, "words alone");
  EXPECT_EQ(evaluations, 0);
}

TEST(Check, stands_where_a_statement_does) {
  if (evaluations < 0)
    NACRE_CHECK(false, "not reached");
  else
    evaluations = 0;
  EXPECT_EQ(evaluations, 0);
}

class CheckDeathTest : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(CheckDeathTest, ends_the_process_with_place_condition_words_and_advice) {
  EXPECT_EXIT(compare(99, 100), testing::KilledBySignal(SIGABRT),
              "^[a-z_.]+: an internal check failed at tests/gpu_engine/check_test.cpp:[0-9]+: "
              "segment 7 shrank from 100 to 99 bytes \\(size >= staged\\)\\. Nacre stops rather "
              "than write wrong data; nothing that was synced is lost\\. .*fsck.nacre --deep.*"
              "nacre version[^\n]*\n$");
}

TEST_F(CheckDeathTest, tells_standard_error_first_and_then_the_sink) {
  EXPECT_EXIT(
      {
        set_check_sink(write_to_sink);
        compare(1, 2);
      },
      testing::KilledBySignal(SIGABRT),
      "^[a-z_.]+: an internal check failed at .*\n"
      "\\[sink: an internal check failed at tests/.*segment 7 shrank from 2 to 1 bytes.*\\]\n$");
}

TEST_F(CheckDeathTest, within_the_sink_ends_the_process_at_once) {
  const CheckSink failing = [](std::string_view) noexcept { compare(1, 2); };
  EXPECT_EXIT(
      {
        set_check_sink(failing);
        compare(99, 100);
      },
      testing::KilledBySignal(SIGABRT), "shrank from 100 to 99 bytes[^\n]*\n$");
}

// The log is on a disk that does not answer. Meanwhile a check fails on another thread, too. Only
// the first failure is reported.
TEST_F(CheckDeathTest, ends_the_process_also_where_the_sink_never_returns) {
  const CheckSink waiting = [](std::string_view) noexcept {
    std::thread another([] { compare(1, 2); });
    another.join();
  };
  EXPECT_EXIT(
      {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_BLOCK, &all, nullptr);
        std::signal(SIGALRM, SIG_IGN);
        set_check_sink(waiting);
        compare(99, 100);
      },
      testing::KilledBySignal(SIGALRM), "^[^\n]*shrank from 100 to 99 bytes[^\n]*\n$");
}

}  // namespace
}  // namespace nacre
