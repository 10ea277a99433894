// SPDX-License-Identifier: Apache-2.0
// Foreign files in the folder of a volume whose keys are rotated.
#include "tests/fs/rotation_fixture.h"

namespace nacre::tests {
namespace {

// Files with the header of the older epoch, under names that no mount removes or seals anew.
TEST_F(RotationTest, is_not_kept_from_ending_by_a_strangers_files) {
  open();
  write("a", 1, 3);
  NACRE_ASSERT_OK(volume_->sync_all());
  const auto segments = backing_->list("segments");
  NACRE_ASSERT_OK(segments);
  ASSERT_FALSE(segments->empty());
  const auto copy_header = [&](const std::string& from, const std::string& to) {
    Bytes header(64);
    auto source = backing_->open(from, metadata::OpenMode::read);
    NACRE_ASSERT_OK(source);
    NACRE_ASSERT_OK((*source)->read(0, header));
    auto planted = backing_->open(to, metadata::OpenMode::create_new);
    NACRE_ASSERT_OK(planted);
    NACRE_ASSERT_OK((*planted)->write(0, header));
  };
  copy_header("segments/" + segments->front(), "segments/notes");
  copy_header("db/CURRENT", "db/notes");
  copy_header("db/CURRENT", "db/LOG.old.7");
  NACRE_ASSERT_OK(rotation_->begin({}));
  NACRE_ASSERT_OK(rotation_->run({}));  // waits for ever if they count
  EXPECT_FALSE(keys_.keys->is_rotating());
  EXPECT_TRUE(backing_->exists("segments/notes").value());
  EXPECT_TRUE(backing_->exists("db/notes").value());
  close();
  open();
  EXPECT_TRUE(holds_everything());
}

}  // namespace
}  // namespace nacre::tests
