// SPDX-License-Identifier: Apache-2.0
// The figures of nacre stats and of the metrics for rare events: writers that wait for compaction,
// devices that fail.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "fs/control/mount_stats.h"
#include "tools/nacre/stats_text.h"

namespace nacre::tests {
namespace {

using nlohmann::json;

fs::MountStats with_writers(const fs::WritePacerStats& writers) {
  fs::MountStats stats;
  stats.volume.compaction = {.segment_count = 5, .state = "working", .writers = writers};
  return stats;
}

json json_of(const fs::MountStats& stats) {
  return fs::to_json(stats).at("compaction");
}

std::string text_of(const fs::MountStats& stats) {
  testing::internal::CaptureStdout();
  tools::print_mounted_stats({{"stats", fs::to_json(stats)}});
  return testing::internal::GetCapturedStdout();
}

TEST(StatsOfCompaction, say_who_is_held_back) {
  const auto stats = with_writers({.held_count = 7, .waiting_count = 3, .is_engaged = true});
  const json compaction = json_of(stats);
  EXPECT_EQ(compaction.at("holds_writers"), true);
  EXPECT_EQ(compaction.at("held_write_count"), 7);
  EXPECT_EQ(compaction.at("waiting_write_count"), 3);
  const std::string text = text_of(stats);
  EXPECT_NE(text.find("working, 5 segments rewritten"), std::string::npos) << text;
  EXPECT_NE(text.find("writers are held back"), std::string::npos) << text;
  EXPECT_NE(fs::to_prometheus(stats, {}).find("\nnacre_held_writes_total 7\n"), std::string::npos);
}

TEST(StatsOfCompaction, say_nothing_of_writers_that_nobody_holds) {
  const auto stats = with_writers({.held_count = 7});
  EXPECT_EQ(json_of(stats).at("holds_writers"), false);
  EXPECT_EQ(json_of(stats).at("waiting_write_count"), 0);
  const std::string text = text_of(stats);
  EXPECT_NE(text.find("compaction"), std::string::npos) << text;
  EXPECT_EQ(text.find("held back"), std::string::npos) << text;
}

TEST(StatsOfDevices, say_what_a_device_failed) {
  fs::MountStats stats;
  stats.volume.engine = {
      .message_count = 12, .cuda_message_count = 9, .cuda_failed_batch_count = 3};
  EXPECT_EQ(fs::to_json(stats).at("engine").at("cuda_failed_batch_count"), 3);
  EXPECT_NE(text_of(stats).find("; 3 batches that a device failed ran on the cpu"),
            std::string::npos);
  EXPECT_NE(fs::to_prometheus(stats, {}).find("\nnacre_engine_failed_batches_total 3\n"),
            std::string::npos);
  stats.volume.engine.cuda_failed_batch_count = 0;
  EXPECT_EQ(text_of(stats).find("failed ran"), std::string::npos) << "nothing to say";
}

}  // namespace
}  // namespace nacre::tests
