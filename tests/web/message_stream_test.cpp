// SPDX-License-Identifier: Apache-2.0
// Takes messages and progress out of what programs print for a terminal.
#include "tools/web/message_stream.h"

#include <vector>

#include <gtest/gtest.h>

namespace nacre::tools::web {
namespace {

class MessageStreamTest : public ::testing::Test {
 protected:
  std::vector<std::uint64_t> done_;
  MessageStream stream_{[this](const PrintedProgress& shown) { done_.push_back(shown.done); }};
};

TEST_F(MessageStreamTest, takes_a_line_with_colours_that_two_returns_end) {
  stream_.take("\x1b[0;1;31mFailed to connect to bus: No medium found\x1b[0m\r");
  stream_.take("\r\n");
  EXPECT_EQ(stream_.messages(), "Failed to connect to bus: No medium found\n");
}

TEST_F(MessageStreamTest, tells_progress_at_once_and_takes_it_for_no_message) {
  stream_.take("\r\033[Kchecking: 1.0 MiB of 2.0 MiB (50 %), 3.0 MiB/s, 0:00:01 left");
  stream_.take("\r");
  EXPECT_EQ(done_, std::vector<std::uint64_t>{1u << 20});
  stream_.take("\033[Kchecking: 2.0 MiB of 2.0 MiB (100 %), 3.0 MiB/s, 0:00:00 left\r");
  EXPECT_EQ(done_.size(), 2u);
  stream_.take("\033[Ka warning\n");
  EXPECT_EQ(stream_.messages(), "a warning\n");
  EXPECT_EQ(done_.size(), 2u);
}

TEST_F(MessageStreamTest, drops_what_the_next_text_overwrites) {
  stream_.take("please wait\rdone\nthe end\r");
  EXPECT_EQ(stream_.messages(), "done\n");
}

TEST_F(MessageStreamTest, leaves_other_escapes_as_they_are) {
  stream_.take("a\x1b[1Ab\x1b[\n");
  EXPECT_EQ(stream_.messages(), "a\x1b[1Ab\x1b[\n");
}

}  // namespace
}  // namespace nacre::tools::web
