// SPDX-License-Identifier: Apache-2.0
// Which pages the kernel must drop after which refusals.
#include "fs/fuse/refused_pages.h"

#include <gtest/gtest.h>

namespace nacre::tests {

namespace {

using fs::RefusedPages;
constexpr metadata::InodeNumber refused_file{7}, untouched_file{8};

using ByteRanges = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

ByteRanges taken_of(RefusedPages& pages, metadata::InodeNumber file) {
  ByteRanges result;
  for (const auto& [begin, end] : pages.take(file))
    result.emplace_back(begin, end);
  return result;
}

TEST(RefusedPages, come_out_joined_where_they_touch) {
  RefusedPages pages;
  EXPECT_TRUE(pages.note(refused_file, {4096, 8192}, ErrorCode::no_space));
  EXPECT_FALSE(pages.note(refused_file, {16384, 20480}, ErrorCode::no_space));
  EXPECT_FALSE(pages.note(refused_file, {8192, 12288}, ErrorCode::no_space));
  EXPECT_FALSE(pages.note(refused_file, {0, 4096}, ErrorCode::no_space));
  EXPECT_FALSE(pages.note(refused_file, {1, 2}, ErrorCode::no_space));
  EXPECT_EQ(taken_of(pages, refused_file), (ByteRanges{{0, 12288}, {16384, 20480}}));
}

TEST(RefusedPages, of_one_range_over_several_are_one) {
  RefusedPages pages;
  for (std::uint64_t i = 0; i < 5; ++i)
    pages.note(refused_file, {i * 10, i * 10 + 5}, ErrorCode::io);
  pages.note(refused_file, {12, 33}, ErrorCode::io);
  EXPECT_EQ(taken_of(pages, refused_file), (ByteRanges{{0, 5}, {10, 35}, {40, 45}}));
}

TEST(RefusedPages, are_over_when_a_drop_found_no_more) {
  RefusedPages pages;
  EXPECT_TRUE(pages.note(refused_file, {0, 1}, ErrorCode::io));
  EXPECT_EQ(taken_of(pages, refused_file), (ByteRanges{{0, 1}}));
  EXPECT_EQ(pages.ask(refused_file)->error, ErrorCode::io);
  EXPECT_FALSE(pages.note(refused_file, {0, 1}, ErrorCode::no_space));
  EXPECT_EQ(pages.ask(refused_file)->error, ErrorCode::no_space);
  EXPECT_FALSE(pages.ask(refused_file)->is_to_be_dropped);
  EXPECT_FALSE(pages.ask(untouched_file));
  EXPECT_EQ(taken_of(pages, refused_file), (ByteRanges{{0, 1}}));
  EXPECT_EQ(taken_of(pages, refused_file), ByteRanges{});
  EXPECT_FALSE(pages.ask(refused_file));
  EXPECT_TRUE(pages.note(refused_file, {0, 1}, ErrorCode::io));
}

TEST(RefusedPages, of_a_file_that_gets_ever_more_are_dropped_again_when_somebody_asks) {
  RefusedPages pages;
  pages.note(refused_file, {0, 4096}, ErrorCode::no_space);
  for (int drop = 0; drop < 3; ++drop) {
    unsigned rounds = 0;
    while (!pages.take(refused_file).empty()) {
      EXPECT_FALSE(pages.note(refused_file, {0, 4096}, ErrorCode::no_space));
      ++rounds;
    }
    EXPECT_EQ(rounds, RefusedPages::round_count_max);
    EXPECT_TRUE(drop == 0 ? pages.note(refused_file, {0, 4096}, ErrorCode::no_space)
                          : pages.ask(refused_file)->is_to_be_dropped);
  }
  EXPECT_EQ(taken_of(pages, refused_file), (ByteRanges{{0, 4096}}));
  EXPECT_EQ(taken_of(pages, refused_file), ByteRanges{});
  EXPECT_FALSE(pages.ask(refused_file));
}

TEST(RefusedPages, of_a_file_that_the_kernel_forgot_are_none_unless_they_are_being_dropped) {
  RefusedPages pages;
  pages.note(refused_file, {0, 4096}, ErrorCode::io);
  pages.forget(refused_file);
  EXPECT_EQ(pages.ask(refused_file)->error, ErrorCode::io);
  pages.give_up(refused_file);
  pages.forget(refused_file);
  EXPECT_FALSE(pages.ask(refused_file));
}

TEST(RefusedPages, are_bounded_for_a_file) {
  RefusedPages pages;
  for (std::uint64_t i = 0; i <= RefusedPages::range_count_max; ++i)
    pages.note(refused_file, {i * 8192, i * 8192 + 4096}, ErrorCode::no_space);
  EXPECT_EQ(taken_of(pages, refused_file),
            (ByteRanges{{0, RefusedPages::range_count_max * 8192 + 4096}}));
}

}  // namespace

}  // namespace nacre::tests
