// SPDX-License-Identifier: Apache-2.0
// The request "log" of the control socket.
#include "tests/tools/control_fixture.h"

namespace nacre::fs {
namespace {

TEST_F(Control, the_log_has_the_messages_after_a_number) {
  const auto ask_after = [&](const nlohmann::json& number) -> Result<nlohmann::json> {
    NACRE_ASSIGN(auto client, ControlClient::connect(mount_));
    return client.request_with({{"command", "log"}, {"after", number}}, std::nullopt);
  };
  volume_.messages.add(1700000000123, "info", "the first");
  volume_.messages.add(1700000000456, "warning", "a <b>\"second\"</b>");
  const auto all = ask("log");
  ASSERT_TRUE(all) << all.error().message;
  ASSERT_EQ((*all)["log"].size(), 2u);
  EXPECT_EQ((*all)["log"][0]["time_ms"], 1700000000123);
  const auto later = ask_after(1);
  ASSERT_TRUE(later) << later.error().message;
  ASSERT_EQ((*later)["log"].size(), 1u);
  EXPECT_EQ((*later)["log"][0]["number"], 2);
  EXPECT_EQ((*later)["log"][0]["level"], "warning");
  EXPECT_EQ((*later)["log"][0]["text"], "a <b>\"second\"</b>");
  EXPECT_EQ(error_of(ask_after("x")), ErrorCode::invalid_argument);
}

TEST_F(Control, the_longest_log_fits_into_a_reply) {
  for (std::size_t i = 0; i < 2 * RecentMessages::message_count_max; ++i)
    volume_.messages.add(1700000000123, "warning", std::string(5000, '"'));
  const auto all = ask("log");
  ASSERT_TRUE(all) << all.error().message;
  EXPECT_EQ((*all)["log"].size(), RecentMessages::message_count_max);
}

}  // namespace
}  // namespace nacre::fs
