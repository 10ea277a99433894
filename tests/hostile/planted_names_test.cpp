// SPDX-License-Identifier: Apache-2.0
// An attacker puts files into a volume's folder, under names that Nacre might take for its own.
#include <array>
#include <string>

#include <fmt/format.h>

#include "tests/fs/volume_fixture.h"
#include "tests/support/error_of.h"

namespace nacre::tests {
namespace {

constexpr std::array<std::uint64_t, 4> planted_numbers = {1ull << 32, 1ull << 63, ~0ull - 1, ~0ull};

class PlantedNames : public VolumeTest {
 protected:
  void SetUp() override {
    VolumeTest::SetUp();
    write(make_file(root, "file"), 0, content_);
    NACRE_EXPECT_OK(volume().sync_all());
    unmount();
  }
  void plant(const std::string& path) {
    ASSERT_TRUE(backing_->open(path, metadata::OpenMode::create_new)) << path;
  }
  // Expects that an empty file of that name is refused with its name, and removes the file.
  void expect_refused_by_name(const std::string& path) {
    plant(path);
    const auto opened = open();
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, ErrorCode::tampered) << opened.error().message;
    EXPECT_NE(opened.error().message.find(path), std::string::npos) << opened.error().message;
    NACRE_EXPECT_OK(backing_->remove(path));
  }
  // Expects that the volume can be mounted, and that the file is unchanged, now and after more has
  // been written.
  void expect_sound() {
    mount();
    EXPECT_EQ(read(find(root, "file")), content_);
    for (int i = 0; i < 3; ++i) {
      write(make_file(root, fmt::format("later{}", i)), 0, std::string(1u << 20, 'y'));
      NACRE_EXPECT_OK(volume().sync_all());
      remount();
      EXPECT_EQ(read(find(root, "file")), content_);
    }
    for (int i = 0; i < 3; ++i)
      EXPECT_EQ(read(find(root, fmt::format("later{}", i))), std::string(1u << 20, 'y'));
  }

  const std::string content_ = std::string(300'000, 'x');
};

TEST_F(PlantedNames, a_segment_of_a_number_far_beyond_the_next_is_refused_by_name) {
  for (const std::uint64_t number : planted_numbers) {
    const std::string path = fmt::format("segments/{:012}.seg", number);
    SCOPED_TRACE(path);
    plant(path);
    const auto opened = open();
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, ErrorCode::tampered);
    EXPECT_NE(opened.error().message.find(path), std::string::npos) << opened.error().message;
    NACRE_EXPECT_OK(backing_->remove(path));
  }
  expect_sound();
}

TEST_F(PlantedNames, a_name_that_no_segment_has_is_left_alone) {
  for (const char* path : {"segments/1.seg", "segments/-1.seg", "segments/00000000000x.seg",
                           "segments/.seg", "segments/0000000000001.seg"}) {
    plant(path);
  }
  expect_sound();
}

TEST_F(PlantedNames, an_empty_segment_of_the_next_number_costs_nothing) {
  std::uint64_t last = 0;
  const auto names = backing_->list("segments");
  NACRE_ASSERT_OK(names);
  for (const std::string& name : *names)
    last = std::max<std::uint64_t>(last, std::strtoull(name.c_str(), nullptr, 10));
  plant(fmt::format("segments/{:012}.seg", last + 1));
  plant(fmt::format("segments/{:012}.seg", last + 3));
  expect_sound();
}

// RocksDB 7.8.3 ends the process over numbers like these, and later at every opening.
TEST_F(PlantedNames, a_file_of_the_database_of_a_number_far_beyond_is_refused_by_name) {
  for (const std::uint64_t number : planted_numbers) {
    for (const char* form : {"db/{:06}.log", "db/{:06}.sst", "db/MANIFEST-{:06}",
                             "db/OPTIONS-{:06}", "db/{:06}.dbtmp", "db/{:06}.blob"}) {
      const std::string path = fmt::format(fmt::runtime(form), number);
      SCOPED_TRACE(path);
      expect_refused_by_name(path);
    }
  }
  plant("db/99999999999999999999999.log");
  EXPECT_EQ(error_of(open()), ErrorCode::tampered);
  NACRE_EXPECT_OK(backing_->remove("db/99999999999999999999999.log"));
  expect_sound();
}

// A backup brings segments under such names, and a mount renames them over the segments.
TEST_F(PlantedNames, a_header_alone_takes_no_segments_place) {
  const auto names = backing_->list("segments");
  NACRE_ASSERT_OK(names);
  for (const std::string& name : *names) {
    Bytes header(64);
    auto segment = backing_->open("segments/" + name, metadata::OpenMode::read);
    NACRE_ASSERT_OK(segment);
    NACRE_ASSERT_OK((*segment)->read(0, header));
    auto planted = backing_->open("segments/" + name + ".new", metadata::OpenMode::create_new);
    NACRE_ASSERT_OK(planted);
    NACRE_ASSERT_OK((*planted)->write(0, header));
    // The file is as long as the segment, and lacks only the records.
    NACRE_ASSERT_OK((*planted)->write((*segment)->size().value() - 1, Bytes(1)));
  }
  expect_sound();
}

// RocksDB reads "20.log" as the name of log 20, and so did the check of what was synced.
TEST_F(PlantedNames, another_form_of_a_name_of_the_database_is_refused_by_name) {
  for (const char* path :
       {"db/20.log", "db/1.sst", "db/0000020.log", "db/MANIFEST-5", "db/0.log"}) {
    SCOPED_TRACE(path);
    expect_refused_by_name(path);
  }
  expect_sound();
}

TEST_F(PlantedNames, empty_files_of_numbers_near_the_newest_cost_nothing) {
  for (const char* path : {"db/000000.sst", "db/000900.sst", "db/000901.blob", "db/000902.dbtmp",
                           "db/OPTIONS-000903"}) {
    plant(path);
  }
  expect_sound();
}

}  // namespace
}  // namespace nacre::tests
