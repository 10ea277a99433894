// SPDX-License-Identifier: Apache-2.0
// Tests of what a machine remembers of a volume's age, and of the rule by which an age is older.
#include "tools/cli/witness.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

namespace nacre::tools {
namespace {

Sight sight(std::uint64_t sessions, std::uint64_t changes, Byte salt = 1) {
  Sight made{.time = "2026-01-01T00:00:00Z",
             .age = {.session_count = sessions, .change_count = changes},
             .keyring_generation = 3,
             .superblock_generation = 2};
  made.age.session.fill(salt);
  return made;
}

TEST(WitnessRule, what_is_as_it_was_or_went_on_is_not_older) {
  EXPECT_EQ(what_is_older(sight(5, 100), sight(5, 100), true), "");
  EXPECT_EQ(what_is_older(sight(5, 100), sight(5, 101), true), "");
  // Another machine went on.
  EXPECT_EQ(what_is_older(sight(5, 100), sight(9, 400, 2), true), "");
  Sight later = sight(5, 100);
  later.keyring_generation = 7;
  later.superblock_generation = 4;
  EXPECT_EQ(what_is_older(sight(5, 100), later, true), "");
}

TEST(WitnessRule, says_what_is_older_and_by_how_much) {
  const auto put_back = what_is_older(sight(5, 100), sight(3, 60, 2), false);
  EXPECT_NE(put_back.find("opened for writing 3 times, but 5 times"), std::string::npos);
  EXPECT_NE(put_back.find("40 changes are missing of 100"), std::string::npos);
  const auto cut = what_is_older(sight(5, 100), sight(5, 99), true);
  EXPECT_NE(cut.find("1 changes are missing of 100"), std::string::npos);
  EXPECT_EQ(cut.find("opened"), std::string::npos);
  // A copy of an older state was used elsewhere, and has more changes now than the volume had.
  const auto branch = what_is_older(sight(5, 100), sight(8, 300, 2), false);
  EXPECT_NE(branch.find("does not know the opening for writing"), std::string::npos);
  Sight older = sight(5, 100);
  older.keyring_generation = 2;
  EXPECT_NE(what_is_older(sight(5, 100), older, true)
                .find("keyring is of generation 2, but was of generation 3"),
            std::string::npos);
  older = sight(5, 100);
  older.superblock_generation = 1;
  EXPECT_NE(what_is_older(sight(5, 100), older, true).find("superblock is of generation 1"),
            std::string::npos);
}

class WitnessFile : public testing::Test {
 protected:
  WitnessFile() {
    std::string pattern = testing::TempDir() + "witness.XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    file_ = folder_ / "nacre/seen/id";
  }
  ~WitnessFile() override { std::filesystem::remove_all(folder_); }
  std::string place(const std::string& name) const {
    std::filesystem::create_directory(folder_ / name);
    return folder_ / name;
  }

  std::filesystem::path folder_;
  std::filesystem::path file_;
};

TEST_F(WitnessFile, holds_what_was_seen_last_and_eight_closings) {
  const Witness witness(file_);
  EXPECT_FALSE(witness.find("/srv/v").value());
  const std::string odd = "/srv/\xc3\xa4 \"\n\\v\xff";
  for (std::uint64_t i = 1; i <= 10; ++i)
    ASSERT_TRUE(witness.note(odd, sight(i, i * 10), Witness::Moment::closed));
  ASSERT_TRUE(witness.note(odd, sight(11, 117), Witness::Moment::in_use));
  const auto copies = witness.read();
  ASSERT_TRUE(copies) << copies.error().message;
  ASSERT_EQ(copies->size(), 1u);
  const SeenCopy& copy = copies->front();
  EXPECT_EQ(copy.path, odd);
  EXPECT_EQ(copy.last.age, sight(11, 117).age);
  ASSERT_EQ(copy.closings.size(), closings_max);
  EXPECT_EQ(copy.closings.front().age, sight(10, 100).age);
  EXPECT_EQ(copy.closings.back().age, sight(3, 30).age);
  EXPECT_TRUE(closing_found(copy, sight(4, 40)));
  EXPECT_FALSE(closing_found(copy, sight(4, 41)));
  struct stat status {};
  ASSERT_EQ(::stat(file_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

TEST_F(WitnessFile, counts_for_every_path_but_that_of_an_older_copy) {
  const Witness witness(file_);
  const std::string volume = place("volume"), backup = place("backup");
  ASSERT_TRUE(witness.note(volume, sight(5, 100), Witness::Moment::closed));
  EXPECT_EQ(witness.find("/elsewhere").value()->last.age, sight(5, 100).age);
  ASSERT_TRUE(witness.accept(backup, sight(3, 60)));
  EXPECT_EQ(witness.find(backup).value()->last.age, sight(3, 60).age);
  EXPECT_EQ(witness.find(volume).value()->last.age, sight(5, 100).age);
  EXPECT_EQ(witness.find("/elsewhere").value()->last.age, sight(5, 100).age);
  // The copy goes on, and is no measure for the volume.
  ASSERT_TRUE(witness.note(backup, sight(9, 200, 2), Witness::Moment::closed));
  EXPECT_EQ(witness.find(volume).value()->last.age, sight(5, 100).age);
}

// A backup that is mounted for writing at its own place, with no more than a note.
TEST_F(WitnessFile, a_copy_that_is_used_elsewhere_is_no_measure_for_the_volume) {
  const Witness witness(file_);
  const std::string volume = place("volume"), copy = place("copy");
  ASSERT_TRUE(witness.note(volume, sight(5, 100), Witness::Moment::closed));
  ASSERT_TRUE(witness.note(copy, sight(4, 80, 2), Witness::Moment::opened));
  ASSERT_TRUE(witness.note(copy, sight(9, 300, 2), Witness::Moment::closed));
  EXPECT_EQ(witness.find(volume).value()->last.age, sight(5, 100).age);
  EXPECT_EQ(witness.find("/elsewhere").value()->last.age, sight(5, 100).age);
  EXPECT_EQ(witness.find(copy).value()->last.age, sight(9, 300, 2).age);
  // Another name of the volume's place is no other place.
  const std::string link = volume + ".link";
  std::filesystem::create_directory_symlink(volume, link);
  ASSERT_TRUE(witness.note(link, sight(6, 120), Witness::Moment::closed));
  EXPECT_EQ(witness.find("/elsewhere").value()->last.age, sight(6, 120).age);
  EXPECT_EQ(witness.read()->size(), 2u);
}

TEST_F(WitnessFile, begins_anew_where_the_volume_itself_was_put_back) {
  const Witness witness(file_);
  const std::string volume = place("volume"), other = place("other");
  ASSERT_TRUE(witness.note(volume, sight(5, 100), Witness::Moment::closed));
  ASSERT_TRUE(witness.accept(volume, sight(3, 60)));
  EXPECT_EQ(witness.read()->size(), 1u);
  EXPECT_EQ(witness.find(other).value()->last.age, sight(3, 60).age);
  // The same holds if the volume is no longer at its old place.
  std::filesystem::remove(volume);
  ASSERT_TRUE(witness.accept(other, sight(2, 50)));
  EXPECT_EQ(witness.read()->size(), 1u);
  EXPECT_EQ(witness.find("/elsewhere").value()->last.age, sight(2, 50).age);
}

TEST_F(WitnessFile, that_cannot_be_read_is_an_error_and_accepting_begins_it_anew) {
  const Witness witness(file_);
  std::filesystem::create_directories(file_.parent_path());
  std::ofstream(file_) << "{\"copies\": 7}";
  const auto found = witness.find("/srv/v");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, ErrorCode::corrupt);
  EXPECT_FALSE(witness.note("/srv/v", sight(1, 1), Witness::Moment::opened));
  ASSERT_TRUE(witness.accept("/srv/v", sight(1, 1)));
  EXPECT_TRUE(witness.find("/srv/v").value());
}

}  // namespace
}  // namespace nacre::tools
