// SPDX-License-Identifier: Apache-2.0
// The row of the scrub: what is encoded comes back; whatever else is given is refused.
#include "metadata/format/scrub_row.h"

#include <gtest/gtest.h>

#include <random>

namespace nacre::metadata {
namespace {

ScrubRow typical() {
  return {
      .state = ScrubState::paused,
      .rate_bytes_per_second = 1u << 30,
      .started_seconds = 1'700'000'000,
      .ended_seconds = -1,
      .last_segment = {300},
      .segment = {200},
      .offset = 1u << 26,
      .total_bytes = 1ull << 40,
      .segment_count = 199,
      .record_count = 12345,
      .segment_bytes = 67890,
      .database_file_count = 3,
      .database_bytes = 4,
      .previous_ended_seconds = 5,
      .previous_damage_count = 6,
      .damage_count = 2,
      .error = "words",
      .places = {{.verdict = 1,
                  .owner = DamageOwner::files,
                  .file = "segments/000000000007.seg",
                  .offset = 64,
                  .size = 100,
                  .what = "the CRC is wrong",
                  .paths = {"/a", std::string("/b\xff", 3)}},
                 {.owner = DamageOwner::nobody, .file = "db/000001.sst", .what = {}, .paths = {}}}};
}

TEST(ScrubRow, comes_back_as_it_was) {
  for (const auto& row : {ScrubRow{}, typical()}) {
    const auto decoded = decode_scrub_row(encode(row));
    ASSERT_TRUE(decoded) << decoded.error().message;
    EXPECT_EQ(*decoded, row);
  }
}

TEST(ScrubRow, cut_off_extended_or_changed_is_refused_or_another_row) {
  const std::string value = encode(typical());
  for (std::size_t size = 0; size < value.size(); ++size)
    EXPECT_FALSE(decode_scrub_row(std::string_view(value).substr(0, size))) << size;
  EXPECT_FALSE(decode_scrub_row(value + '\0'));
  for (std::size_t at = 0; at < value.size(); ++at) {
    for (unsigned byte = 0; byte < 256; ++byte) {
      std::string changed = value;
      changed[at] = static_cast<char>(byte);
      const auto row = decode_scrub_row(changed);
      if (!row) continue;
      EXPECT_EQ(encode(*row), changed);
    }
  }
}

TEST(ScrubRow, past_its_bounds_is_refused) {
  const auto refused = [](const ScrubRow& row) { return !decode_scrub_row(encode(row)); };
  ScrubRow row = typical();
  row.places.resize(scrub_place_count_max);
  EXPECT_FALSE(refused(row));
  row.places.emplace_back();
  EXPECT_TRUE(refused(row));
  row = typical();
  row.places[0].paths.resize(scrub_path_count_max + 1);
  EXPECT_TRUE(refused(row));
  row = typical();
  row.error.resize(scrub_text_size_bytes_max + 1);
  EXPECT_TRUE(refused(row));
  row = typical();
  row.places[0].verdict = 6;
  EXPECT_TRUE(refused(row));
}

}  // namespace
}  // namespace nacre::metadata
