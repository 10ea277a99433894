// SPDX-License-Identifier: Apache-2.0
// The control socket's command scrub.
#include "tests/tools/control_fixture.h"

namespace nacre::fs {
namespace {

TEST_F(Control, scrub_takes_an_action_and_a_rate_and_tells_how_it_is) {
  volume_.scrub_row = {.state = metadata::ScrubState::finished,
                       .ended_seconds = 1'700'000'000,
                       .segment_bytes = 5,
                       .database_bytes = 6,
                       .damage_count = 1,
                       .error = {},
                       .places = {{.verdict = static_cast<std::uint8_t>(Verdict::rot),
                                   .owner = metadata::DamageOwner::files,
                                   .file = "segments/000000000001.seg",
                                   .offset = 64,
                                   .size = 9,
                                   .what = "the CRC is wrong",
                                   .paths = {"/a", "/b\xff"}}}};
  auto client = ControlClient::connect(mount_);
  ASSERT_TRUE(client) << client.error().message;
  const auto scrub = client->scrub(ScrubCommand::resume, 7);
  ASSERT_TRUE(scrub) << scrub.error().message;
  EXPECT_EQ(volume_.last_scrub, std::pair(ScrubCommand::resume, std::optional<std::uint64_t>(7)));
  EXPECT_EQ(scrub->at("state"), "finished");
  EXPECT_EQ(scrub->at("ended"), "2023-11-14T22:13:20Z");
  EXPECT_EQ(scrub->at("done_bytes"), 11);
  EXPECT_EQ(scrub->at("places").at(0).at("verdict"), "rot");
  EXPECT_EQ(scrub->at("places").at(0).at("owner"), "files");
  EXPECT_EQ(scrub->at("places").at(0).at("paths").at(0), "/a");
  const auto stats = ask("stats");
  ASSERT_TRUE(stats) << stats.error().message;
  EXPECT_EQ(stats->at("stats").at("scrub").at("damage_count"), 1);

  for (const auto* wrong : {R"({"command":"scrub"})", R"({"command":"scrub","action":"eat"})",
                            R"({"command":"scrub","action":7})",
                            R"({"command":"scrub","action":"begin","rate_bytes_per_second":-1})"}) {
    const auto reply = send_raw(std::string(wrong) + "\n");
    EXPECT_EQ(reply.at("error").at("code"), "invalid argument") << wrong;
  }
  volume_.scrub_result = fail(ErrorCode::not_found, "there is none");
  auto again = ControlClient::connect(mount_);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(error_of(again->scrub(ScrubCommand::pause, {})), ErrorCode::not_found);
}

// The largest row fits into one reply.
TEST_F(Control, the_largest_result_of_a_scrub_fits_a_reply) {
  auto& row = volume_.scrub_row;
  row.state = metadata::ScrubState::finished;
  row.error = std::string(metadata::scrub_words_size_bytes_max, '\x01');
  for (std::size_t i = 0; i < metadata::scrub_place_count_max; ++i) {
    row.places.push_back({.owner = metadata::DamageOwner::files,
                          .file = "segments/000000000001.seg.new",
                          .offset = UINT64_MAX,
                          .size = UINT64_MAX,
                          .what = std::string(metadata::scrub_words_size_bytes_max, 'x'),
                          .paths = {std::string(metadata::scrub_paths_size_bytes_max /
                                                    metadata::scrub_place_count_max,
                                                '\x01'),
                                    "(and at least 18446744073709551615 more)"}});
  }
  row.damage_count = UINT64_MAX;
  auto client = ControlClient::connect(mount_);
  ASSERT_TRUE(client) << client.error().message;
  const auto scrub = client->scrub(ScrubCommand::status, {});
  ASSERT_TRUE(scrub) << scrub.error().message;
  EXPECT_EQ(scrub->at("places").size(), metadata::scrub_place_count_max);
}

}  // namespace
}  // namespace nacre::fs
