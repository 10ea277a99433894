// SPDX-License-Identifier: Apache-2.0
// A rotation to an epoch of format 2 reads all records before the keys change. Meanwhile the volume
// is used, keys and all, and what cannot be read or is only put there ends in a verdict.
#include <algorithm>
#include <chrono>
#include <string>
#include <thread>

#include "fs/store/genuine_records.h"
#include "metadata/format/rows.h"
#include "metadata/keys/keyring_recipients.h"
#include "tests/fs/rotation_forgery_fixture.h"

namespace nacre::tests {
namespace {

// A rate so low that the survey waits after the first segment, until another rate is requested.
constexpr std::uint64_t slowest = 1;

class RotationSurvey : public RotationForgery {
 protected:
  void begin_slowly() {
    rotation_->start();
    const auto begun = rotation_->begin_in_background({.rate_bytes_per_second = slowest});
    NACRE_ASSERT_OK(begun);
    ASSERT_TRUE(*begun);
  }
  template <typename Condition>
  bool wait_for(Condition condition) {
    for (int i = 0; i < 60'000 && !condition(); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return condition();
  }
  // Waits until the survey waits for its rate: it has then read the first segment and no other.
  bool wait_for_first_segment() {
    return wait_for([&] { return rotation_->status().done_bytes > 0; });
  }
  // Lets it read another segment, by asking for another rate.
  bool step() {
    const std::uint64_t done = rotation_->status().done_bytes;
    rate_ = 3 - rate_;
    return rotation_->resume(rate_) &&
           wait_for([&] { return rotation_->status().done_bytes > done; });
  }
  bool wait_for_end() {
    return wait_for([&] { return !rotation_->status().is_under_way; });
  }
  std::vector<std::string> segment_paths() {
    std::vector<std::string> paths;
    for (const std::string& path : backing_->files()) {
      if (path.starts_with("segments/")) paths.push_back(path);
    }
    return paths;
  }
  // Overwrites the file in place, so that the volume's open file has the new bytes, too.
  void overwrite(const std::string& path, const Bytes& bytes) {
    auto file = backing_->open(path, metadata::OpenMode::read_write);
    NACRE_ASSERT_OK(file);
    NACRE_ASSERT_OK((*file)->write(0, bytes));
    NACRE_ASSERT_OK((*file)->sync());
  }
  // The place of a record of a file that rows name.
  Place named_place() {
    const auto places = places_of_records(backing_);
    const auto named = std::find_if(places.begin(), places.end(),
                                    [](const Place& place) { return place.is_named; });
    EXPECT_NE(named, places.end());
    return *named;
  }

 private:
  std::uint64_t rate_ = slowest;
};

TEST_F(RotationSurvey, holds_up_neither_writers_nor_changes_of_keys) {
  open();
  fill(9);
  begin_slowly();
  ASSERT_TRUE(wait_for_first_segment());
  EXPECT_EQ(rotation_->status().stage, "survey");
  EXPECT_LT(rotation_->status().done_bytes, rotation_->status().total_bytes);
  EXPECT_CODE(busy, rotation_->begin({}));

  write("during", 8, 5);
  NACRE_EXPECT_OK(volume_->sync_all());
  metadata::Keyring next = keyring_->current();
  next.generation += 1;
  ASSERT_EQ(next.recipients.size(), 2u);
  next.recipients.pop_back();
  NACRE_EXPECT_OK(keyring_->replace(next));
  EXPECT_TRUE(holds_everything());
  EXPECT_FALSE(keys_.keys->is_rotating());

  NACRE_ASSERT_OK(rotation_->resume(0));
  ASSERT_TRUE(wait_for_end());
  EXPECT_EQ(rotation_->status().state, fs::RotationState::none) << rotation_->status().message;
  EXPECT_TRUE(holds_everything());
  // The recipient that went meanwhile has no new key.
  EXPECT_EQ(keyring_->current().recipients.size(), 1u);
  close();
  expect_rotated(2);
}

// Content that is written during the survey is in none of the segments that it reads.
TEST_F(RotationSurvey, has_what_was_written_and_moved_meanwhile) {
  open();
  fill(9);
  begin_slowly();
  ASSERT_TRUE(wait_for_first_segment());
  for (std::uint32_t i = 0; i < 6; ++i)
    write(fmt::format("f{}", i), 100 + i, 8);  // more than before
  NACRE_EXPECT_OK(volume_->sync_all());
  NACRE_EXPECT_OK(volume_.mounted().compact(fs::CompactionGoal::everything, {}));
  NACRE_ASSERT_OK(rotation_->resume(0));
  // Ended as soon as the keys have changed, so that all counts only by its digest.
  ASSERT_TRUE(wait_for([&] { return keys_.keys->is_rotating(); }));
  rotation_->stop();
  EXPECT_TRUE(holds_everything());
  abandon();
  open();
  EXPECT_TRUE(holds_everything());
  NACRE_EXPECT_OK(rotation_->run({}));
  EXPECT_TRUE(holds_everything());
  close();
  expect_rotated(2);
}

TEST_F(RotationSurvey, ends_with_the_mount_and_begins_anew) {
  open();
  fill(9);
  begin_slowly();
  ASSERT_TRUE(wait_for_first_segment());
  close();  // waits for it
  auto keys = unlock(*backing_);
  NACRE_ASSERT_OK(keys);
  EXPECT_EQ(keys->keyring.epochs.size(), 1u);
  EXPECT_EQ(keys->keyring.epochs.front().number, 1u);
  EXPECT_GT(count_digests(), 0u);

  // The digests of the interrupted survey mean nothing any more, and are removed.
  open();
  EXPECT_TRUE(holds_everything());
  rotation_->start();
  EXPECT_FALSE(rotation_->status().is_under_way);
  EXPECT_TRUE(wait_for([&] { return count_digests_of(volume_.mounted().database()) == 0; }));
  const auto begun = rotation_->begin_in_background({});
  NACRE_ASSERT_OK(begun);
  ASSERT_TRUE(wait_for_end());
  EXPECT_TRUE(holds_everything());
  close();
  expect_rotated(2);
}

TEST_F(RotationSurvey, rests_while_it_is_paused) {
  open();
  fill(9);
  begin_slowly();
  ASSERT_TRUE(wait_for_first_segment());
  NACRE_ASSERT_OK(rotation_->pause());
  EXPECT_EQ(rotation_->status().state, fs::RotationState::paused);
  EXPECT_EQ(rotation_->status().stage, "survey");
  EXPECT_TRUE(rotation_->status().is_under_way);
  write("during", 8, 5);
  NACRE_ASSERT_OK(rotation_->resume(0));
  ASSERT_TRUE(wait_for_end());
  EXPECT_TRUE(holds_everything());
  close();
  expect_rotated(2);
}

// A holder of the current keys changes records that the survey has read already. They no longer
// count, although the new keyring is not there yet, and moving them does not make them genuine.
TEST_F(RotationSurvey, makes_nothing_genuine_that_was_changed_behind_it) {
  open();
  fill(20);
  close();
  const auto old_keys = unlock(*backing_);
  NACRE_ASSERT_OK(old_keys);
  open();
  begin_slowly();
  ASSERT_TRUE(wait_for_first_segment());
  const auto paths = segment_paths();
  ASSERT_GT(paths.size(), 4u);
  ASSERT_TRUE(step() && step());
  const auto forgery = backing_->process_kill();
  ASSERT_GT(forge_records(*forgery, *old_keys->keys, 1), 20u);
  for (std::size_t i = 0; i < 3; ++i)
    overwrite(paths[i], forgery->load(paths[i]).value());
  const Reading reading = read_all();
  EXPECT_EQ(reading.forged, 0u);
  EXPECT_GT(reading.refused, 0u);
  // Moving them would give them digests anew.
  static_cast<void>(volume_.mounted().compact(fs::CompactionGoal::everything, {}));

  NACRE_ASSERT_OK(rotation_->resume(0));
  ASSERT_TRUE(wait_for([&] {
    return rotation_->status().state == fs::RotationState::damaged ||
           !rotation_->status().is_under_way;
  }));
  EXPECT_TRUE(keys_.keys->is_rotating()) << rotation_->status().message;
  close();
  open();
  const Reading after = read_all();
  EXPECT_EQ(after.forged, 0u);
  EXPECT_EQ(after.refused, reading.refused);
  close();
}

TEST_F(RotationSurvey, a_place_that_cannot_be_read_keeps_it_from_beginning) {
  open();
  fill(9);
  NACRE_ASSERT_OK(volume_->sync_all());
  close();
  const Place bad = named_place();
  backing_->set_bad_block(bad.path, bad.offset);
  open();
  const auto begun = rotation_->begin({});
  ASSERT_FALSE(begun);
  EXPECT_EQ(to_string(begun.error().code), to_string(ErrorCode::io));
  EXPECT_NE(begun.error().message.find(fmt::format("{} offset {}", bad.path, bad.offset)),
            std::string::npos)
      << begun.error().message;
  EXPECT_NE(begun.error().message.find("of /f"), std::string::npos) << begun.error().message;
  EXPECT_NE(begun.error().message.find("--accept-unreadable"), std::string::npos);
  EXPECT_FALSE(keys_.keys->is_rotating());
  EXPECT_FALSE(rotation_->status().is_under_way);
  EXPECT_EQ(count_digests_of(volume_.mounted().database()), 0u);
  write("after", 5, 3);
  NACRE_EXPECT_OK(volume_->sync_all());

  NACRE_EXPECT_OK(rotation_->begin({.accept_unreadable = true}));
  EXPECT_TRUE(keys_.keys->is_rotating());
  close();
}

// The same as above for a rotation in the background, whose state has the reason.
TEST_F(RotationSurvey, says_why_it_did_not_lead_to_a_rotation) {
  open();
  fill(9);
  close();
  const Place bad = named_place();
  backing_->set_bad_block(bad.path, bad.offset);
  open();
  rotation_->start();
  NACRE_ASSERT_OK(rotation_->begin_in_background({}));
  ASSERT_TRUE(wait_for_end());
  const auto status = rotation_->status();
  EXPECT_EQ(status.state, fs::RotationState::stopped);
  EXPECT_NE(status.message.find(bad.path), std::string::npos) << status.message;
  EXPECT_FALSE(keys_.keys->is_rotating());
  NACRE_ASSERT_OK(rotation_->begin_in_background({.accept_unreadable = true}));
  EXPECT_TRUE(wait_for([&] { return keys_.keys->is_rotating(); }));
  close();
}

TEST_F(RotationSurvey, reads_again_what_the_medium_did_not_read_at_once) {
  open();
  fill(9);
  close();
  const Place place = named_place();
  open();
  // The whole walk of that segment, and the first try of a record that a row names.
  const std::uint64_t blocks = segment_size_bytes_ / 4096 + 2;
  backing_->inject({.operations = operation_read, .path_part = place.path, .count = blocks});
  NACRE_ASSERT_OK(rotation_->begin({}));
  backing_->clear_failures();
  EXPECT_TRUE(holds_everything());
  NACRE_EXPECT_OK(rotation_->run({}));
  EXPECT_TRUE(holds_everything());
  close();
  expect_rotated(2);
}

// A place that no row names needs no digest.
TEST_F(RotationSurvey, a_dead_place_that_cannot_be_read_is_no_hindrance) {
  open();
  fill(9);
  write("f1", 78, 4);
  NACRE_ASSERT_OK(volume_->sync_all());
  close();
  const auto places = places_of_records(backing_);
  const auto dead = std::find_if(places.begin(), places.end(), [](const Place& place) {
    return !place.is_named && place.offset > 4096;
  });
  ASSERT_NE(dead, places.end());
  backing_->set_bad_block(dead->path, dead->offset + 2048);
  open();
  NACRE_EXPECT_OK(rotation_->begin({}));
  EXPECT_TRUE(holds_everything());
  close();
}

// The bytes of a dead file are headers, one after the other, each with the form of a record that
// reaches far.
TEST_F(RotationSurvey, a_segment_full_of_headers_ends_in_a_verdict) {
  segment_size_bytes_ = 2u << 20;
  open();
  write("dead", 1, 300);
  NACRE_ASSERT_OK(volume_->sync_all());
  fill(9);
  NACRE_ASSERT_OK(volume_->unlink(root, "dead"));
  contents_.erase("dead");
  NACRE_ASSERT_OK(volume_->sync_all());
  close();
  const auto places = places_of_records(backing_);
  // The longest run of dead records that lies before one that counts.
  const auto first = std::find_if(places.begin(), places.end(),
                                  [](const Place& place) { return !place.is_named; });
  const auto end =
      std::find_if(first, places.end(), [](const Place& place) { return place.is_named; });
  ASSERT_NE(end, places.end());
  ASSERT_EQ(first->path, end->path);
  ASSERT_GT(end->offset - first->offset, 600u << 10);
  Bytes bytes = backing_->load(first->path).value();
  auto header = *engine::parse_record_header(ByteView(bytes).subspan(first->offset));
  for (std::size_t at = first->offset; at + 64 < end->offset; at += 64) {
    header.stored_size =
        static_cast<std::uint32_t>(std::min<std::size_t>(bytes.size() - at, 1u << 20));
    store_le(bytes.data() + at, header);
  }
  backing_->store(first->path, bytes);

  open();
  ASSERT_TRUE(holds_everything());
  NACRE_EXPECT_OK(rotation_->begin({}));
  EXPECT_TRUE(holds_everything());
  NACRE_EXPECT_OK(rotation_->run({}));
  EXPECT_TRUE(holds_everything());
  close();
  expect_rotated(2);
}

}  // namespace
}  // namespace nacre::tests
