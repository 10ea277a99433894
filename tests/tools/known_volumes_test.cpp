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
  EXPECT_FALSE(*known);
}

TEST_F(KnownVolumesTest, a_pinned_volume_is_known_and_others_are_not_touched) {
  const KnownVolumes volumes(file_);
  ASSERT_TRUE(volumes.pin(a_));
  ASSERT_TRUE(volumes.pin({"/srv/b", "id-b", "print-b"}));
  EXPECT_TRUE(volumes.check(a_).value());
  EXPECT_TRUE(volumes.check({"/srv/b", "id-b", "print-b"}).value());
  // Before there is a key, the id alone decides.
  EXPECT_TRUE(volumes.check({"/srv/a", "id-a", ""}).value());
  EXPECT_EQ(content(), "/srv/a id-a print-a\n/srv/b id-b print-b\n");
  struct stat status {};
  ASSERT_EQ(::stat(file_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
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
  EXPECT_TRUE(volumes.check(odd).value());
  EXPECT_EQ(KnownVolumes::from_line(KnownVolumes::to_line(odd))->path, odd.path);
}

TEST_F(KnownVolumesTest, a_folder_that_cannot_be_made_is_an_error_with_its_name) {
  std::ofstream(folder_ / "config") << "a file is in the way";
  const KnownVolumes volumes(file_);
  EXPECT_FALSE(volumes.check(a_).value());
  const auto pinned = volumes.pin(a_);
  ASSERT_FALSE(pinned);
  EXPECT_NE(pinned.error().message.find("config"), std::string::npos);
}

}  // namespace
}  // namespace nacre::tools
