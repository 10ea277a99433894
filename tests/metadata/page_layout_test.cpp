// SPDX-License-Identifier: Apache-2.0
// Page arithmetic around every boundary.
#include "metadata/sealed_fs/page_layout.h"

#include <gtest/gtest.h>

#include <random>

#include "metadata/sealed_fs/file_header.h"

namespace nacre::metadata {
namespace {

TEST(PageLayout, begins_behind_the_file_header) {
  EXPECT_EQ(first_page_offset, file_header_size_bytes);
}

// Every size up to several pages: sizes grow strictly, the inverse finds each, and nothing between.
TEST(PageLayout, stored_and_plain_sizes_are_inverse) {
  std::uint64_t stored = 0;
  for (std::uint64_t plain = 0; plain <= 5 * page_plain_bytes + 3; plain++) {
    const std::uint64_t next = stored_size_of(plain);
    for (std::uint64_t between = stored + 1; plain > 0 && between < next; between++) {
      ASSERT_EQ(plain_size_of(between), std::nullopt) << between;
    }
    stored = next;
    ASSERT_EQ(plain_size_of(stored), plain);
  }
}

TEST(PageLayout, sizes_that_hold_no_page_are_refused) {
  for (std::uint64_t stored = 0; stored < first_page_offset + page_overhead_bytes; stored++) {
    ASSERT_EQ(plain_size_of(stored), std::nullopt) << stored;
  }
  EXPECT_EQ(plain_size_of(first_page_offset + page_overhead_bytes), 0u);
  // A last page without content stands only in an empty file.
  EXPECT_EQ(plain_size_of(page_offset(1) + page_overhead_bytes), std::nullopt);
}

// The pages of a file cover it exactly, in order, without a gap.
TEST(PageLayout, pages_tile_the_content_and_the_file) {
  constexpr std::uint64_t p = page_plain_bytes;
  for (std::uint64_t plain : {std::uint64_t{0}, std::uint64_t{1}, p - 1, p, p + 1, 2 * p - 1, 2 * p,
                              2 * p + 1, 64 * p, 64 * p + 1, std::uint64_t{1} << 33}) {
    SCOPED_TRACE(plain);
    const std::uint64_t count = page_count(plain);
    ASSERT_GE(count, 1u);
    for (std::uint64_t page : {std::uint64_t{0}, count / 2, count - 1}) {
      const bool is_last = page + 1 == count;
      const std::uint32_t size = plain_bytes_of_page(page, plain);
      if (!is_last) {
        EXPECT_EQ(size, page_plain_bytes);
      }
      EXPECT_EQ(page_begin(page) + size, is_last ? plain : page_begin(page + 1));
      EXPECT_EQ(page_offset(page) + size + page_overhead_bytes,
                is_last ? stored_size_of(plain) : page_offset(page + 1));
      if (size > 0) {
        EXPECT_EQ(page_of(page_begin(page)), page);
        EXPECT_EQ(page_of(page_begin(page) + size - 1), page);
      }
    }
  }
}

TEST(PageLayout, large_random_sizes_are_inverse_too) {
  std::mt19937_64 random(20);
  for (int i = 0; i < 100000; i++) {
    const std::uint64_t plain = random() >> (12 + random() % 40);
    ASSERT_EQ(plain_size_of(stored_size_of(plain)), plain);
  }
}

}  // namespace
}  // namespace nacre::metadata
