// SPDX-License-Identifier: Apache-2.0
// The figures that the live page shows for one second, made from two of the daemon's replies.
#include <gtest/gtest.h>

#include "tools/web/live_history.h"

namespace nacre::tools::web {
namespace {

using nlohmann::json;

json device(int number, std::uint64_t busy_ns, std::uint64_t input_bytes) {
  return {{"name", "GPU"},
          {"number", number},
          {"is_lost", false},
          {"busy_ns", busy_ns},
          {"input_bytes", input_bytes}};
}
json stats_with(json devices) {
  return {{"engine", {{"devices", std::move(devices)}}}};
}

TEST(LiveSample, has_the_share_of_the_time_in_which_each_device_was_busy) {
  const json before = stats_with({device(0, 1'000'000'000, 500), device(1, 0, 0)});
  const json now = stats_with({device(0, 1'500'000'000, 2500), device(1, 2'000'000'000, 0)});
  const json sample = make_sample(before, now, 2.0, std::nullopt);
  ASSERT_EQ(sample["devices"].size(), 2u);
  EXPECT_EQ(sample["devices"][0]["name"], "GPU");
  EXPECT_DOUBLE_EQ(sample["devices"][0]["busy_share"], 0.25);
  EXPECT_DOUBLE_EQ(sample["devices"][0]["input_rate"], 1000);
  EXPECT_EQ(sample["devices"][1]["number"], 1);
  EXPECT_DOUBLE_EQ(sample["devices"][1]["busy_share"], 1.0);
}

TEST(LiveSample, knows_no_share_without_an_earlier_reply_or_of_another_daemon) {
  const json now = stats_with({device(0, 5, 5)});
  EXPECT_TRUE(make_sample({}, now, 1.0, std::nullopt)["devices"][0]["busy_share"].is_null());
  const json larger = stats_with({device(0, 9, 9)});
  const json sample = make_sample(larger, now, 1.0, std::nullopt);
  EXPECT_TRUE(sample["devices"][0]["busy_share"].is_null());
  EXPECT_TRUE(sample["devices"][0]["input_rate"].is_null());
}

TEST(LiveSample, has_no_devices_where_the_daemon_has_none) {
  EXPECT_EQ(make_sample({}, stats_with(json::array()), 1.0, std::nullopt)["devices"],
            json::array());
  EXPECT_EQ(make_sample({}, json::object(), 1.0, std::nullopt)["devices"], json::array());
}

}  // namespace
}  // namespace nacre::tools::web
