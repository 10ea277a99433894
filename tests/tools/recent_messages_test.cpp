// SPDX-License-Identifier: Apache-2.0
// The messages that a daemon keeps: bounded, numbered, and the same as in its log.
#include "fs/control/recent_messages.h"

#include <fstream>
#include <sstream>

#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include "tests/support/temporary_directory.h"
#include "tools/mount/logging.h"

namespace nacre::tools {
namespace {

TEST(RecentMessages, keeps_the_newest_and_their_numbers) {
  fs::RecentMessages messages;
  const auto count_max = fs::RecentMessages::message_count_max;
  for (std::size_t i = 1; i <= count_max + 3; ++i)
    messages.add(static_cast<std::int64_t>(i), "info", std::to_string(i));
  const auto all = messages.after(0);
  ASSERT_EQ(all.size(), count_max);
  EXPECT_EQ(all.front().number, 4u);
  EXPECT_EQ(all.front().text, "4");
  EXPECT_EQ(all.back().number, count_max + 3);
  EXPECT_EQ(messages.after(count_max + 2).size(), 1u);
  EXPECT_TRUE(messages.after(count_max + 3).empty());
}

TEST(RecentMessages, cuts_a_long_text_between_two_characters) {
  for (std::size_t shift = 0; shift < 4; ++shift) {
    std::string text(shift, 'a');
    while (text.size() <= fs::RecentMessages::text_size_bytes_max)
      text += "ü";
    fs::RecentMessages messages;
    messages.add(0, "info", text);
    const std::string kept = messages.after(0).front().text;
    EXPECT_LE(kept.size(), fs::RecentMessages::text_size_bytes_max);
    ASSERT_TRUE(kept.ends_with("…"));
    const std::string before = kept.substr(0, kept.size() - std::string("…").size());
    EXPECT_EQ((before.size() - shift) % 2, 0u) << before;
    EXPECT_EQ(text.substr(0, before.size()), before);
  }
}

// spdlog's default logger is the process's, so this puts the old one back.
TEST(RecentMessages, are_what_the_log_has) {
  const auto former = spdlog::default_logger();
  const tests::TemporaryDirectory folder;
  const std::string log = folder.path("log");
  ASSERT_TRUE(start_logging({.file = log, .volume = "/volume"}));
  const auto before = recent_messages().after(0);
  const std::uint64_t last = before.empty() ? 0 : before.back().number;
  spdlog::info("a name with \x1b[31m and <b>");
  spdlog::debug("not in the log");
  spdlog::error("the end");
  spdlog::set_default_logger(former);
  const auto kept = recent_messages().after(last);
  ASSERT_EQ(kept.size(), 2u);
  EXPECT_EQ(kept[0].level, "info");
  EXPECT_EQ(kept[0].text, "a name with \\x1b[31m and <b>");
  EXPECT_EQ(kept[1].level, "error");
  std::ostringstream text;
  text << std::ifstream(log).rdbuf();
  for (const auto& message : kept)
    EXPECT_NE(text.str().find(": " + message.text + "\n"), std::string::npos) << text.str();
  EXPECT_EQ(text.str().find("not in the log"), std::string::npos);
}

}  // namespace
}  // namespace nacre::tools
