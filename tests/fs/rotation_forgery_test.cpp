// SPDX-License-Identifier: Apache-2.0
// While keys are rotated, an attacker has the older keys: a recipient who was removed (AUDIT F1).
// In format 2, nothing that the attacker makes counts from the beginning of the rotation on,
// however long it is paused.
#include <algorithm>
#include <chrono>
#include <thread>

#include "tests/fs/rotation_forgery_fixture.h"

namespace nacre::tests {
namespace {

TEST_F(RotationForgery, of_records_is_nobodys_business_while_the_keys_count) {
  open();
  fill(9);
  close();
  const auto old_keys = unlock(*backing_);
  NACRE_ASSERT_OK(old_keys);

  // With the keys of today an attacker can forge any record, which shows that the fixture's
  // forgeries work.
  const auto today = backing_->process_kill();
  ASSERT_GT(forge_records(*today, *old_keys->keys, 1), 20u);
  NACRE_ASSERT_OK(try_open(today));
  EXPECT_GT(read_all().forged, 5u);
  abandon();
}

TEST_F(RotationForgery, of_records_while_a_rotation_is_paused_is_tampering) {
  open();
  fill(9);
  const auto old_keys = unlock(*backing_);
  NACRE_ASSERT_OK(old_keys);
  NACRE_ASSERT_OK(rotation_->begin({}));
  write("during", 5, 4);  // under the new key
  NACRE_ASSERT_OK(volume_->sync_all());
  close();
  const auto genuine = backing_->process_kill();
  ASSERT_GT(forge_records(*backing_, *old_keys->keys, 1), 20u);

  open();
  Reading reading = read_all();
  EXPECT_EQ(reading.forged, 0u);
  EXPECT_GT(reading.refused, 5u);
  const auto rotated = rotation_->run({});
  ASSERT_FALSE(rotated);
  EXPECT_EQ(to_string(rotated.error().code), to_string(ErrorCode::corrupt));
  reading = read_all();
  EXPECT_EQ(reading.forged, 0u);
  EXPECT_GT(reading.refused, 5u);
  close();

  // Nothing was forged: the rotation comes to its end.
  NACRE_ASSERT_OK(try_open(genuine));
  EXPECT_TRUE(holds_everything());
  NACRE_ASSERT_OK(rotation_->run({}));
  EXPECT_TRUE(holds_everything());
  close();
  expect_rotated(2);
}

// A repair may lose the row which says that records have digests. In an earlier version all records
// then counted.
TEST_F(RotationForgery, of_records_is_tampering_where_nothing_says_which_are_genuine) {
  open();
  fill(9);
  const auto old_keys = unlock(*backing_);
  NACRE_ASSERT_OK(old_keys);
  NACRE_ASSERT_OK(rotation_->begin({}));
  close();
  ASSERT_GT(forge_records(*backing_, *old_keys->keys, 1), 20u);
  const auto keys = unlock(*backing_);
  NACRE_ASSERT_OK(keys);
  const auto database = metadata::Database::open(backing_, keys->keys, {});
  NACRE_ASSERT_OK(database);
  (*database)->erase(metadata::Table::system, metadata::system_key_genuine);
  ASSERT_TRUE((*database)->freeze() && (*database)->commit_frozen(true) && (*database)->close());
  open();
  const Reading reading = read_all();
  EXPECT_EQ(reading.forged, 0u);
  EXPECT_GT(reading.refused, 5u);
}

// Each forgery follows a genuine record of the same session. A verdict on one record must not be
// used for another one of its session.
TEST_F(RotationForgery, of_every_second_record_is_tampering) {
  open();
  fill(9);
  const auto old_keys = unlock(*backing_);
  NACRE_ASSERT_OK(old_keys);
  NACRE_ASSERT_OK(rotation_->begin({}));
  close();
  ASSERT_GT(
      forge_records(*backing_, *old_keys->keys, 1, [](unsigned place) { return place % 2 == 1; }),
      10u);
  open();
  const Reading before = read_all();
  EXPECT_EQ(before.forged, 0u);
  EXPECT_GT(before.refused, 5u);
  const auto rotated = rotation_->run({});
  EXPECT_FALSE(rotated);
  const Reading after = read_all();
  EXPECT_EQ(after.forged, 0u);
  EXPECT_EQ(after.refused, before.refused);
}

// The end of a rotation is cut off when everything is sealed anew, but the older keys are still in
// the keyring: the storage refuses the last one. Records under the older keys must not count then
// in the places of new ones.
TEST_F(RotationForgery, of_records_before_the_last_keyring_is_tampering) {
  open();
  fill(9);
  const auto old_keys = unlock(*backing_);
  NACRE_ASSERT_OK(old_keys);
  const auto paths = backing_->files();
  const auto path = std::find_if(paths.begin(), paths.end(), [](const std::string& each) {
    return each.starts_with("segments/");
  });
  ASSERT_NE(path, paths.end());
  const Bytes old_segment = backing_->load(*path).value();
  const auto old_header = engine::parse_record_header(
      ByteView(old_segment).subspan(metadata::segment_header_size_bytes));
  ASSERT_TRUE(old_header);
  NACRE_ASSERT_OK(rotation_->begin({}));
  backing_->inject({.operations = change_create, .path_part = "keyring.new"});
  ASSERT_FALSE(rotation_->run({}));
  backing_->clear_failures();
  EXPECT_TRUE(holds_everything());
  close();
  const auto new_keys = unlock(*backing_);
  NACRE_ASSERT_OK(new_keys);
  ASSERT_EQ(new_keys->keyring.epochs.size(), 2u);

  const auto undamaged = backing_->process_kill();
  engine::RecordHeader as = *old_header;
  as.counter = 1u << 20;
  const unsigned count = replace_records(
      *backing_, 2, [](unsigned) { return true; },
      [&](ByteView record) {
        ++as.counter;
        return forged(record, *new_keys->keys, as, *old_keys->keys);
      });
  ASSERT_GT(count, 20u);
  open();
  const Reading reading = read_all();
  EXPECT_EQ(reading.forged, 0u);
  EXPECT_GT(reading.refused, 5u);
  close();

  NACRE_ASSERT_OK(try_open(undamaged));
  NACRE_ASSERT_OK(rotation_->run({}));
  EXPECT_TRUE(holds_everything());
  close();
  expect_rotated(2);
  EXPECT_EQ(count_digests(), 0u);
}

// Power is lost when the last keyring is durable, and the digests are not gone yet.
TEST_F(RotationForgery, digests_left_behind_the_last_keyring_go_at_the_next_opening) {
  open();
  fill(6);
  NACRE_ASSERT_OK(rotation_->begin({}));
  // The commit that erases them is the first write to the log behind the keyring's last copy.
  std::shared_ptr<MemoryBacking> left;
  backing_->watch([&](std::uint32_t operation, std::string_view path) {
    if (!left && operation == change_rename && path.find("keyring.copy") != path.npos) {
      left = backing_->process_kill();
    }
  });
  NACRE_ASSERT_OK(rotation_->run({}));
  backing_->watch({});
  close();
  ASSERT_TRUE(left);
  EXPECT_EQ(count_digests(), 0u);

  NACRE_ASSERT_OK(try_open(left));
  rotation_->start();
  for (int i = 0; i < 500 && count_digests_of(volume_.mounted().database()) > 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_TRUE(holds_everything());
  close();
  EXPECT_EQ(count_digests(), 0u);
  expect_rotated(2);
}

// Bytes that look like a record with a right CRC take the place of a dead record, and reach over
// all records behind it. No key is needed to make them. No row names them, and all records behind
// them are unchanged.
TEST_F(RotationForgery, a_dead_record_that_reaches_over_live_ones_costs_none_of_them) {
  open();
  fill(9);
  write("f1", 78, 4);  // what it held is dead, and others follow that
  NACRE_ASSERT_OK(volume_->sync_all());
  close();
  const auto places = places_of_records(backing_);
  const auto dead = std::find_if(places.begin(), places.end(),
                                 [](const Place& place) { return !place.is_named; });
  ASSERT_NE(dead, places.end());
  ASSERT_TRUE(std::any_of(dead, places.end(), [&](const Place& place) {
    return place.path == dead->path && place.is_named;
  }));
  change_header(*backing_, *dead, [](engine::RecordHeader& header, std::size_t rest) {
    header.stored_size = static_cast<std::uint32_t>(rest);
  });
  const auto keys = unlock(*backing_);
  NACRE_ASSERT_OK(keys);
  // The check tells it from damage of what counts.
  const auto report =
      fs::check_volume(backing_, *keys, *engine_, {.scrub = true, .deep = true}, {});
  NACRE_ASSERT_OK(report);
  for (const auto& finding : report->findings.findings()) {
    if (finding.severity != fs::Severity::error) continue;
    EXPECT_NE(finding.what.find("no file uses them"), std::string::npos) << finding.what;
  }
  open();
  EXPECT_TRUE(holds_everything());
  NACRE_ASSERT_OK(rotation_->begin({}));
  EXPECT_TRUE(holds_everything());
  NACRE_EXPECT_OK(rotation_->run({}));
  EXPECT_TRUE(holds_everything());
  close();
  expect_rotated(2);
}

// The row of a digest is named by the salt and the counter of its record. An attacker can write
// both into the header of another record.
TEST_F(RotationForgery, a_dead_record_under_the_name_of_a_live_one_costs_it_nothing) {
  open();
  fill(9);
  write("f8", 84, 6);
  NACRE_ASSERT_OK(volume_->sync_all());
  close();
  const auto places = places_of_records(backing_);
  ASSERT_TRUE(places.front().is_named);
  const auto dead = std::find_if(places.begin(), places.end(),
                                 [](const Place& place) { return !place.is_named; });
  ASSERT_NE(dead, places.end());
  const Bytes bytes = backing_->load(places.front().path).value();
  const auto live = *engine::parse_record_header(ByteView(bytes).subspan(places.front().offset));
  change_header(*backing_, *dead, [&](engine::RecordHeader& header, std::size_t) {
    header.salt = live.salt;
    header.counter = live.counter;
  });
  open();
  NACRE_ASSERT_OK(rotation_->begin({}));
  EXPECT_TRUE(holds_everything());
  NACRE_EXPECT_OK(rotation_->run({}));
  EXPECT_TRUE(holds_everything());
  close();
  expect_rotated(2);
}

TEST_F(RotationForgery, leaves_no_digest_when_the_rotation_ends) {
  open();
  fill(6);
  NACRE_ASSERT_OK(rotation_->begin({}));
  NACRE_ASSERT_OK(rotation_->run({}));
  close();
  EXPECT_EQ(count_digests(), 0u);
}

// The superblock says so before the keyring does, and a crash may come between.
TEST_F(RotationTest, the_next_one_makes_the_move_that_was_cut_off_before_its_keyring) {
  make_volume(engine::CipherSuite::aes_256_gcm, metadata::EpochFormat::one);
  open();
  fill(3);
  close();
  auto keys = unlock(*backing_);
  NACRE_ASSERT_OK(keys);
  keys->superblock.has_format_2 = true;
  ++keys->superblock.generation;
  NACRE_ASSERT_OK(metadata::save_superblock(*backing_, keys->superblock, *keys->keys));
  open();
  EXPECT_TRUE(holds_everything());
  NACRE_ASSERT_OK(rotation_->begin({}));
  EXPECT_EQ(rotation_->format(), metadata::EpochFormat::two);
  NACRE_ASSERT_OK(rotation_->run({}));
  EXPECT_TRUE(holds_everything());
  close();
  expect_rotated(2);
}

TEST_F(RotationTest, moves_a_volume_to_format_2) {
  make_volume(engine::CipherSuite::aes_256_gcm, metadata::EpochFormat::one);
  open();
  fill(9);
  NACRE_ASSERT_OK(rotation_->begin({.to_format_2 = true}));
  write("during", 8, 5);
  EXPECT_TRUE(holds_everything());
  NACRE_ASSERT_OK(rotation_->run({}));
  EXPECT_TRUE(holds_everything());
  close();
  expect_rotated(2);
  auto keys = unlock(*backing_);
  NACRE_ASSERT_OK(keys);
  EXPECT_TRUE(keys->superblock.has_format_2);
  EXPECT_EQ(keys->keyring.epochs.back().format, metadata::EpochFormat::two);
  open();
  EXPECT_TRUE(holds_everything());
  NACRE_ASSERT_OK(rotation_->begin({}));
  NACRE_ASSERT_OK(rotation_->run({}));
  close();
  expect_rotated(3);
  keys = unlock(*backing_);
  NACRE_ASSERT_OK(keys);
  EXPECT_EQ(keys->keyring.epochs.back().format, metadata::EpochFormat::two);
}

}  // namespace
}  // namespace nacre::tests
