// SPDX-License-Identifier: Apache-2.0
// The judge of the crash tests must object to every wrong recovery, and to no right one.
#include "tests/crash/history.h"

#include <gtest/gtest.h>

namespace nacre::tests {
namespace {

using fs::InodeNumber;

constexpr InodeNumber file{2};
constexpr std::uint32_t chunk_size = 64;

class HistoryTest : public ::testing::Test {
 protected:
  // Made in step 1, written in steps 2 and 3, renamed in step 4, written in step 5.
  void SetUp() override {
    history_.end_step("format", "root\n");
    history_.add_file(1, file);
    history_.end_step("make", "a\n");
    for (const StepNumber step : {2, 3}) {
      history_.write(step, file, {{0, bytes(step)}});
      history_.end_step("write", "a\n");
    }
    history_.move(4, file);
    history_.end_step("rename", "b\n");
    history_.write(5, file, {{0, bytes(5)}});
    history_.end_step("write", "b\n");
  }

  static std::string bytes(StepNumber step) { return History::bytes_of(step, 0, 2 * chunk_size); }
  bool objects(std::string names, std::string content, const Promises& promises) const {
    return !history_.objection({std::move(names), {{file, std::move(content)}}}, promises).empty();
  }

  History history_{chunk_size};
};

TEST_F(HistoryTest, takes_every_state_when_nothing_is_promised) {
  const Promises nothing{.begun = 5};
  EXPECT_EQ(history_.objection({"root\n", {}}, nothing), "");
  for (const std::string& content : {std::string(), bytes(2), bytes(3)})
    EXPECT_FALSE(objects("a\n", content, nothing));
  for (const StepNumber step : {3, 5})
    EXPECT_FALSE(objects("b\n", bytes(step), nothing));
}

TEST_F(HistoryTest, objects_to_names_that_are_older_than_confirmed_or_were_never) {
  EXPECT_TRUE(objects("a\n", bytes(3), {.confirmed = 4, .begun = 5}));
  EXPECT_TRUE(objects("b\n", bytes(3), {.confirmed = 2, .begun = 3}));
  EXPECT_TRUE(objects("a\nb\n", bytes(3), {.begun = 5}));
}

TEST_F(HistoryTest, objects_to_content_that_is_older_than_synced) {
  EXPECT_TRUE(objects("a\n", bytes(2), {.begun = 5, .synced = {{file, 3}}}));
  EXPECT_FALSE(objects("a\n", bytes(3), {.begun = 5, .synced = {{file, 3}}}));
  EXPECT_FALSE(objects("b\n", bytes(5), {.begun = 5, .synced = {{file, 3}}}));
}

TEST_F(HistoryTest, objects_to_a_rename_without_the_data) {
  EXPECT_TRUE(objects("b\n", "", {.begun = 5}));
  EXPECT_TRUE(objects("b\n", bytes(2), {.begun = 5}));
}

TEST_F(HistoryTest, objects_to_a_mixture_but_of_chunks_where_that_may_be) {
  const Promises nothing{.begun = 5};
  const std::string of_chunks = bytes(2).substr(0, chunk_size) + bytes(3).substr(chunk_size);
  std::string within_chunk = bytes(2);
  within_chunk.replace(0, 16, bytes(3), 0, 16);
  EXPECT_TRUE(objects("a\n", of_chunks, nothing));
  EXPECT_TRUE(objects("a\n", within_chunk, nothing));
  EXPECT_TRUE(objects("a\n", bytes(2) + "more", nothing));
  history_.by_chunk(file);
  EXPECT_FALSE(objects("a\n", of_chunks, nothing));
  EXPECT_TRUE(objects("a\n", within_chunk, nothing));
  EXPECT_TRUE(objects("a\n", bytes(2) + "more", nothing));
  EXPECT_TRUE(objects("a\n", of_chunks, {.begun = 5, .synced = {{file, 3}}}));
}

TEST_F(HistoryTest, a_cut_may_reach_the_medium_before_the_writes_before_it) {
  history_.truncate(6, file, 10);
  history_.end_step("truncate", "b\n");
  const Promises until_sync{.begun = 6, .synced = {{file, 3}}};
  EXPECT_FALSE(objects("b\n", bytes(3).substr(0, 10), until_sync));
  EXPECT_FALSE(objects("b\n", bytes(5).substr(0, 10), until_sync));
  EXPECT_TRUE(objects("b\n", bytes(2).substr(0, 10), until_sync));
  EXPECT_TRUE(objects("b\n", bytes(3).substr(0, 10), {.begun = 6, .synced = {{file, 6}}}));
  EXPECT_FALSE(objects("b\n", bytes(5).substr(0, 10), {.begun = 6, .synced = {{file, 6}}}));
}

TEST_F(HistoryTest, objects_to_a_file_that_never_was) {
  EXPECT_NE(history_.objection({"a\n", {{InodeNumber{99}, ""}}}, {.begun = 5}), "");
}

}  // namespace
}  // namespace nacre::tests
