// SPDX-License-Identifier: Apache-2.0
// The message of a failed check reaches the log of a mount, of whatever kind the log is, and
// standard error once.
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "gpu_engine/base/check.h"
#include "tests/support/temporary_directory.h"
#include "tools/mount/logging.h"

namespace nacre::tools {
namespace {

// Fails a check as a usable mount would, in the foreground or not.
void fail_while_logging(const LogOptions& options) {
  if (!start_logging(options)) std::exit(1);
  leave_standard_error(options);
  NACRE_CHECK(options.file.empty(), "the words of {}", 42);
}

std::string read_log(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// A process of its own each time; the file outlives it.
class FailedCheckDeathTest : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "fast"); }
  void fail_with(LogTarget target, bool foreground) {
    const LogOptions options{
        .target = target, .file = log_, .volume = "/volume", .foreground = foreground};
    EXPECT_EXIT(fail_while_logging(options), testing::KilledBySignal(SIGABRT),
                "^[^\n]*an internal check failed at tests/tools/[^\n]*the words of 42[^\n]*\n$");
  }

  const tests::TemporaryDirectory folder_;
  const std::string log_ = folder_.path("log");
};

TEST_F(FailedCheckDeathTest, is_in_the_log_file) {
  for (const bool foreground : {false, true}) {
    fail_with(LogTarget::automatic, foreground);
    const std::string log = read_log(log_);
    EXPECT_NE(log.find(" critical: an internal check failed at tests/tools/"), std::string::npos)
        << log;
    EXPECT_NE(log.find("the words of 42"), std::string::npos) << log;
  }
}

TEST_F(FailedCheckDeathTest, is_a_line_of_json) {
  fail_with(LogTarget::json, false);
  const auto line = nlohmann::json::parse(read_log(log_));
  EXPECT_EQ(line["level"], "critical");
  EXPECT_EQ(line["volume"], "/volume");
  EXPECT_NE(line["message"].get<std::string>().find("the words of 42"), std::string::npos);
}

}  // namespace
}  // namespace nacre::tools
