// SPDX-License-Identifier: Apache-2.0
// Two copies of a small file: which one is used, and what is said about the other.
#include "metadata/backing/two_copies.h"

#include <gtest/gtest.h>

#include "tests/support/memory_backing.h"

namespace nacre::metadata {
namespace {

using tests::MemoryBacking;

// The text is a digit, its generation, and anything; "!" stands for a later version.
Result<std::uint64_t> generation_of(ByteView text) {
  if (!text.empty() && text[0] == '!') return fail(ErrorCode::unsupported, "later");
  if (text.empty() || text[0] < '1' || text[0] > '9') return fail(ErrorCode::corrupt, "rubbish");
  return text[0] - '0';
}

Result<ChosenCopy> read_both(const char* first, const char* second) {
  const auto backing = MemoryBacking::create();
  if (first) backing->store("f", as_bytes(first));
  if (second) backing->store("f.copy", as_bytes(second));
  return read_copies(*backing, "f", 100, generation_of);
}

TEST(TwoCopies, that_agree_need_no_warning) {
  const auto chosen = read_both("1a", "1a");
  ASSERT_TRUE(chosen);
  EXPECT_EQ(as_text(chosen->text), "1a");
  EXPECT_TRUE(chosen->warnings.empty());
}

TEST(TwoCopies, one_stands_in_for_the_other_with_a_warning_that_names_it) {
  const struct {
    const char *first, *second, *named;
    ErrorCode code;
  } cases[] = {{"1a", "rubbish", "/f.copy:", ErrorCode::corrupt},
               {"rubbish", "1a", "/f:", ErrorCode::corrupt},
               {"1a", "", "/f.copy:", ErrorCode::corrupt},
               {"1a", nullptr, "/f.copy:", ErrorCode::missing},
               {nullptr, "1a", "/f:", ErrorCode::missing}};
  for (const auto& c : cases) {
    const auto chosen = read_both(c.first, c.second);
    ASSERT_TRUE(chosen) << c.named;
    EXPECT_EQ(as_text(chosen->text), "1a");
    ASSERT_EQ(chosen->warnings.size(), 1u);
    EXPECT_EQ(chosen->warnings[0].code, c.code);
    EXPECT_NE(chosen->warnings[0].message.find(c.named), std::string::npos)
        << chosen->warnings[0].message;
  }
}

TEST(TwoCopies, the_newer_wins_when_an_update_was_interrupted) {
  for (const auto& [first, second] : {std::pair("2b", "1a"), std::pair("1a", "2b")}) {
    const auto chosen = read_both(first, second);
    ASSERT_TRUE(chosen);
    EXPECT_EQ(as_text(chosen->text), "2b");
    ASSERT_EQ(chosen->warnings.size(), 1u);
    EXPECT_EQ(chosen->warnings[0].code, ErrorCode::rolled_back);
  }
}

TEST(TwoCopies, of_one_generation_that_differ_are_tampered_with) {
  EXPECT_EQ(read_both("1a", "1b").error().code, ErrorCode::tampered);
}

TEST(TwoCopies, say_what_is_wrong_when_neither_is_good) {
  EXPECT_EQ(read_both(nullptr, nullptr).error().code, ErrorCode::not_found);
  EXPECT_EQ(read_both("rubbish", nullptr).error().code, ErrorCode::corrupt);
  EXPECT_EQ(read_both(nullptr, "rubbish").error().code, ErrorCode::corrupt);
  const auto both = read_both("rubbish", "");
  EXPECT_EQ(both.error().code, ErrorCode::corrupt);
  EXPECT_NE(both.error().message.find("/f:"), std::string::npos);
  EXPECT_NE(both.error().message.find("/f.copy:"), std::string::npos);
  EXPECT_EQ(read_both(std::string(101, '1').c_str(), nullptr).error().code, ErrorCode::corrupt);
}

TEST(TwoCopies, a_later_version_is_never_passed_over_for_an_older_one) {
  EXPECT_EQ(read_both("!", "1a").error().code, ErrorCode::unsupported);
  EXPECT_EQ(read_both("1a", "!").error().code, ErrorCode::unsupported);
}

TEST(TwoCopies, an_unreadable_one_does_not_cost_the_other) {
  const auto backing = MemoryBacking::create();
  ASSERT_TRUE(write_copies(*backing, "f", "1a"));
  backing->inject({.operations = tests::operation_read, .path_part = "f", .count = 1});
  const auto chosen = read_copies(*backing, "f", 100, generation_of);
  ASSERT_TRUE(chosen);
  ASSERT_EQ(chosen->warnings.size(), 1u);
  EXPECT_EQ(chosen->warnings[0].code, ErrorCode::io);
}

TEST(TwoCopies, an_update_is_old_or_new_after_power_loss_at_every_change) {
  const auto before = MemoryBacking::create();
  ASSERT_TRUE(write_copies(*before, "f", "1old"));
  for (std::uint64_t at = 0;; ++at) {
    const auto backing = before->process_kill();
    backing->fail_at(at);
    const auto written = write_copies(*backing, "f", "2new");
    for (std::uint64_t seed = 0; seed < 30; ++seed) {
      const auto chosen = read_copies(*backing->power_loss(seed), "f", 100, generation_of);
      ASSERT_TRUE(chosen) << "change " << at << ", seed " << seed;
      const std::string_view text = as_text(chosen->text);
      ASSERT_TRUE(text == "2new" || (!written && text == "1old")) << at << " " << seed;
      for (const Error& warning : chosen->warnings) {
        EXPECT_EQ(warning.code, ErrorCode::rolled_back);
      }
    }
    if (written) break;
    ASSERT_LT(at, 30u);
  }
}

}  // namespace
}  // namespace nacre::metadata
