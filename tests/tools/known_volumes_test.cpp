// SPDX-License-Identifier: Apache-2.0
// Tests of known volumes.
#include "tools/cli/known_volumes.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

namespace nacre::tools {
namespace {

class KnownVolumesTest : public testing::Test {
 protected:
  KnownVolumesTest() {
    std::string pattern = testing::TempDir() + "known_volumes.XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    file_ = folder_ / "config/nacre/known_volumes";
  }
  ~KnownVolumesTest() override { std::filesystem::remove_all(folder_); }

  std::string content() const {
    std::ifstream file(file_);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }

  std::filesystem::path folder_;
  std::filesystem::path file_;
  const KnownVolume a_{"/srv/a", "id-a", "print-a"};
};

TEST_F(KnownVolumesTest, an_unknown_volume_is_not_known_and_no_error) {
  const KnownVolumes volumes(file_);
  const auto known = volumes.check(a_);
  ASSERT_TRUE(known) << known.error().message;
  EXPECT_FALSE(known->is_known);
}

TEST_F(KnownVolumesTest, a_pinned_volume_is_known_and_others_are_not_touched) {
  const KnownVolumes volumes(file_);
  ASSERT_TRUE(volumes.pin(a_));
  ASSERT_TRUE(volumes.pin({"/srv/b", "id-b", "print-b"}));
  EXPECT_TRUE(volumes.check(a_).value().is_known);
  EXPECT_TRUE(volumes.check({"/srv/b", "id-b", "print-b"}).value().is_known);
  // Before there is a key, the id alone decides.
  EXPECT_TRUE(volumes.check({"/srv/a", "id-a", ""}).value().is_known);
  EXPECT_EQ(content(), "/srv/a id-a print-a\n/srv/b id-b print-b\n");
  struct stat status {};
  ASSERT_EQ(::stat(file_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

TEST_F(KnownVolumesTest, remembers_in_its_line_that_a_volume_is_of_format_2) {
  const KnownVolumes volumes(file_);
  KnownVolume volume = a_;
  ASSERT_TRUE(volumes.pin(volume));
  ASSERT_TRUE(volumes.pin({"/srv/b", "id-a", "print-newer"}));
  EXPECT_FALSE(volumes.check(volume).value().was_format_2);
  volume.is_format_2 = true;
  ASSERT_TRUE(volumes.note_format_2(volume));
  // The other line of its id is still the newest.
  EXPECT_EQ(content(), "/srv/a id-a print-a format-2\n/srv/b id-a print-newer\n");
  const auto known = volumes.check(a_);
  ASSERT_TRUE(known);
  EXPECT_TRUE(known->is_known);
  EXPECT_TRUE(known->was_format_2);
  EXPECT_FALSE(volumes.check({"/srv/b", "id-a", "print-newer"}).value().was_format_2);
  EXPECT_EQ(KnownVolumes::from_line(KnownVolumes::to_line(volume))->fingerprint, "print-a");
}

TEST_F(KnownVolumesTest, another_fingerprint_is_refused_with_the_line_to_remove) {
  const KnownVolumes volumes(file_);
  ASSERT_TRUE(volumes.pin({"/srv/z", "id-z", "print-z"}));
  ASSERT_TRUE(volumes.pin(a_));
  const auto known = volumes.check({"/srv/a", "id-a", "print-other"});
  ASSERT_FALSE(known);
  EXPECT_EQ(known.error().code, ErrorCode::not_permitted);
  EXPECT_NE(known.error().message.find("line 2 of " + file_.string()), std::string::npos);
  EXPECT_NE(known.error().message.find(": /srv/a id-a print-a"), std::string::npos);
}

TEST_F(KnownVolumesTest, another_id_is_refused_before_there_is_a_key) {
  const KnownVolumes volumes(file_);
  ASSERT_TRUE(volumes.pin(a_));
  const auto known = volumes.check({"/srv/a", "id-other", ""});
  ASSERT_FALSE(known);
  EXPECT_NE(known.error().message.find("id-other"), std::string::npos);
}

TEST_F(KnownVolumesTest, a_volume_is_known_at_another_path_by_id_and_fingerprint) {
  const KnownVolumes volumes(file_);
  ASSERT_TRUE(volumes.pin(a_));
  const KnownVolume elsewhere{"/media/a", "id-a", "print-a"};
  EXPECT_FALSE(volumes.check({"/media/a", "id-a", ""}).value().is_known);
  auto known = volumes.check(elsewhere);
  ASSERT_TRUE(known) << known.error().message;
  EXPECT_TRUE(known->is_known);
  EXPECT_EQ(known->other_path, "/srv/a");
  ASSERT_TRUE(volumes.pin(elsewhere));
  known = volumes.check(elsewhere);
  EXPECT_TRUE(known.value().is_known);
  EXPECT_EQ(known->other_path, "");
  EXPECT_EQ(content(), "/srv/a id-a print-a\n/media/a id-a print-a\n");
}

TEST_F(KnownVolumesTest, a_known_id_with_another_fingerprint_is_refused_at_any_path) {
  const KnownVolumes volumes(file_);
  ASSERT_TRUE(volumes.pin({"/srv/z", "id-z", "print-z"}));
  ASSERT_TRUE(volumes.pin(a_));
  const auto known = volumes.check({"/media/a", "id-a", "print-other"});
  ASSERT_FALSE(known);
  EXPECT_EQ(known.error().code, ErrorCode::not_permitted);
  for (const std::string words : {"known as /srv/a", "print-other", "line 2 of"})
    EXPECT_NE(known.error().message.find(words), std::string::npos) << known.error().message;
}

// The volume has two paths to one place (a link, a mount), and its keys are rotated through one of
// them.
TEST_F(KnownVolumesTest, a_key_that_was_replaced_at_one_path_is_known_at_the_others) {
  const KnownVolumes volumes(file_);
  const KnownVolume one{"/srv/a", "id-a", "print-new"}, other{"/media/a", "id-a", "print-new"};
  ASSERT_TRUE(volumes.pin({"/media/a", "id-a", "print-a"}));
  ASSERT_TRUE(volumes.pin(a_));
  ASSERT_TRUE(volumes.pin(one));
  EXPECT_EQ(volumes.check(other).value().other_path, "/srv/a");
  // A copy that was known before stays known, but its key does not count for the newer volume.
  EXPECT_TRUE(volumes.check({"/media/a", "id-a", "print-a"}).value().is_known);
  EXPECT_FALSE(volumes.check({"/srv/a", "id-a", "print-a"}));
  EXPECT_FALSE(volumes.check({"/mnt/a", "id-a", "print-a"}));
}

// A rotation is about to write its keyring, and a crash may come before or after that.
TEST_F(KnownVolumesTest, accepts_the_next_key_and_the_one_before_until_it_is_certain_which_it_is) {
  const KnownVolumes volumes(file_);
  KnownVolume next = a_;
  next.is_format_2 = true;
  next.next_fingerprint = "print-next";
  ASSERT_TRUE(volumes.pin(a_));
  ASSERT_TRUE(volumes.pin({"/srv/b", "id-b", "print-b"}));
  ASSERT_TRUE(volumes.note_next(next));
  EXPECT_EQ(content(), "/srv/a id-a print-a format-2 next=print-next\n/srv/b id-b print-b\n");
  for (const std::string print : {"print-a", "print-next"}) {
    EXPECT_TRUE(volumes.check({"/srv/a", "id-a", print}).value().is_known) << print;
    EXPECT_TRUE(volumes.check({"/srv/a", "id-a", print}).value().was_format_2) << print;
    EXPECT_EQ(volumes.check({"/media/a", "id-a", print}).value().other_path, "/srv/a") << print;
  }
  EXPECT_FALSE(volumes.check({"/srv/a", "id-a", "print-other"}));
  EXPECT_FALSE(volumes.check({"/srv/a", "id-a", "next=print-next"}));
  EXPECT_EQ(content(), "/srv/a id-a print-a format-2 next=print-next\n/srv/b id-b print-b\n");
}

TEST_F(KnownVolumesTest, the_next_key_counts_alone_once_the_volume_has_it) {
  const KnownVolumes volumes(file_);
  KnownVolume next = a_;
  next.next_fingerprint = "print-next";
  ASSERT_TRUE(volumes.note_next(next));
  EXPECT_EQ(content(), "/srv/a id-a print-a next=print-next\n");
  ASSERT_TRUE(volumes.settle_next({"/srv/a", "id-a", "print-next", true}));
  EXPECT_EQ(content(), "/srv/a id-a print-next format-2\n");
  EXPECT_FALSE(volumes.check(a_));
}

TEST_F(KnownVolumesTest, the_next_key_goes_once_the_volume_has_the_one_before) {
  const KnownVolumes volumes(file_);
  KnownVolume next = a_;
  next.next_fingerprint = "print-next";
  ASSERT_TRUE(volumes.note_next(next));
  ASSERT_TRUE(volumes.settle_next({"/srv/a", "id-other", "print-next"}));
  ASSERT_TRUE(volumes.settle_next({"/srv/a", "id-a", "print-other"}));
  ASSERT_TRUE(volumes.settle_next({"/srv/b", "id-a", "print-next"}));
  EXPECT_EQ(content(), "/srv/a id-a print-a next=print-next\n");
  ASSERT_TRUE(volumes.settle_next(a_));
  EXPECT_EQ(content(), "/srv/a id-a print-a\n");
  EXPECT_FALSE(volumes.check({"/srv/a", "id-a", "print-next"}));
}

TEST_F(KnownVolumesTest, a_copy_with_an_older_key_that_somebody_names_is_no_newer_one) {
  const KnownVolumes volumes(file_);
  const KnownVolume copy{"/backup/a", "id-a", "print-older"};
  ASSERT_TRUE(volumes.pin(a_));
  const auto named = volumes.check(copy, true);
  ASSERT_TRUE(named) << named.error().message;
  EXPECT_FALSE(named->is_known);
  EXPECT_TRUE(named->has_another_key);
  ASSERT_TRUE(volumes.pin_copy(copy));
  EXPECT_EQ(content(), "/backup/a id-a print-older\n/srv/a id-a print-a\n");
  EXPECT_TRUE(volumes.check(copy).value().is_known);
  EXPECT_FALSE(volumes.check({"/srv/a", "id-a", "print-older"}));
  // Whatever fingerprint the user names, the one that the path is known with counts.
  EXPECT_FALSE(volumes.check({"/srv/a", "id-a", "print-older"}, true));
}

TEST_F(KnownVolumesTest, pinning_again_replaces_the_line_and_keeps_comments) {
  std::filesystem::create_directories(file_.parent_path());
  std::ofstream(file_) << "# mine\n/srv/a old old\nnot a line\n";
  const KnownVolumes volumes(file_);
  ASSERT_TRUE(volumes.pin(a_));
  EXPECT_EQ(content(), "# mine\nnot a line\n/srv/a id-a print-a\n");
}

TEST_F(KnownVolumesTest, any_path_survives_the_file) {
  const KnownVolumes volumes(file_);
  const KnownVolume odd{"/srv/a b\\040\n#\tc", "id", "print"};
  ASSERT_TRUE(volumes.pin(odd));
  EXPECT_TRUE(volumes.check(odd).value().is_known);
  EXPECT_EQ(KnownVolumes::from_line(KnownVolumes::to_line(odd))->path, odd.path);
}

TEST_F(KnownVolumesTest, a_folder_that_cannot_be_made_is_an_error_with_its_name) {
  std::ofstream(folder_ / "config") << "a file is in the way";
  const KnownVolumes volumes(file_);
  EXPECT_FALSE(volumes.check(a_).value().is_known);
  const auto pinned = volumes.pin(a_);
  ASSERT_FALSE(pinned);
  EXPECT_NE(pinned.error().message.find("config"), std::string::npos);
}

}  // namespace
}  // namespace nacre::tools
