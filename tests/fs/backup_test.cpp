// SPDX-License-Identifier: Apache-2.0
// Backups of a volume that goes on: what they hold, what they copy, what they refuse.
#include "tests/fs/backup_fixture.h"

#include "tests/support/error_of.h"

namespace nacre::tests {
namespace {

TEST_F(BackupTest, holds_the_moment_it_began_whatever_is_written_moved_and_removed_since) {
  work(60);
  const Tree then = tree_;
  const auto what = begin();
  work(60);
  compact();
  work(20);
  NACRE_EXPECT_OK(volume_->sync_all());
  compact();
  const auto done = copy(what, *target_);
  NACRE_ASSERT_OK(done);
  EXPECT_EQ(done->copied_bytes + what.snapshot.current.size(), done->total_bytes);
  expect_volume(target_, then);
}

TEST_F(BackupTest, copies_only_what_changed_and_removes_what_is_gone) {
  put("large", noise(2u << 20));
  put("going", noise(1u << 20));
  back_up();
  const auto first_files = target_->files();
  put("small", noise(30'000));
  remove("going");
  NACRE_EXPECT_OK(volume_->sync_all());
  compact();
  const auto second = back_up();
  EXPECT_GT(second.removed_file_count, 0u);
  EXPECT_LT(second.copied_bytes, 400'000u) << "of " << second.total_bytes;
  expect_volume(target_, tree_);
  const auto third = back_up();
  EXPECT_LT(third.copied_bytes, 100'000u);
  expect_volume(target_, tree_);
}

// The log once looks as it does in the middle of an append.
TEST_F(BackupTest, a_log_that_is_being_appended_to_is_looked_at_again) {
  work(40);
  // The check is the first that reads a whole log.
  int looks = 0;
  source_->watch([&](std::uint32_t operation, std::string_view path) {
    if (operation != operation_read || !path.ends_with(".log") || ++looks != 2) return;
    source_->inject({.operations = operation_read,
                     .path_part = ".log",
                     .count = 1,
                     .code = ErrorCode::corrupt});
  });
  back_up();
  source_->watch({});
  EXPECT_GE(looks, 2);
  expect_volume(target_, tree_);
}

TEST_F(BackupTest, nothing_but_the_volume_is_left_in_the_target) {
  work(40);
  back_up();
  work(40);
  compact();
  back_up();
  for (const std::string& path : target_->files()) {
    EXPECT_FALSE(path.ends_with(".new") || path.ends_with(".part") || path.ends_with(".dbtmp"))
        << path;
  }
  EXPECT_TRUE(target_->load("backup"));
}

TEST_F(BackupTest, goes_on_over_mounts_kills_and_compactions_of_the_source) {
  for (int round = 0; round < 5; ++round) {
    SCOPED_TRACE(round);
    work(30);
    if (round == 1) compact();
    if (round == 2) {
      unmount();
      mount();
    }
    if (round == 3) {
      NACRE_EXPECT_OK(volume_->sync_all());
      source_ = source_->process_kill();
      volume_.reset();
      mount();
    }
    back_up();
    expect_volume(target_, tree_);
  }
}

TEST_F(BackupTest, keeps_what_it_copies_and_gives_it_back_afterwards) {
  put("going", noise(1u << 20));
  put("staying", noise(100'000));
  auto what = begin();
  EXPECT_EQ(volume_.mounted().stats().backup_count, 1u);
  remove("going");
  NACRE_EXPECT_OK(volume_->sync_all());
  NACRE_EXPECT_OK(volume_->sync_all());
  EXPECT_GT(volume_.mounted().stats().segments.held_bytes, 1u << 20);
  compact();
  NACRE_EXPECT_OK(copy(what, *target_));
  what.snapshot.hold.reset();
  EXPECT_EQ(volume_.mounted().stats().backup_count, 0u);
  EXPECT_EQ(volume_.mounted().stats().segments.held_bytes, 0u);
  compact();
  EXPECT_LT(volume_.mounted().stats().segments.stored_bytes, 200'000u);
}

TEST_F(BackupTest, lets_writers_go_on_and_deletes_work_on_a_full_disk) {
  unmount();
  source_->set_capacity(64u << 20);
  mount();
  std::vector<std::string> names;
  put("going", noise(1u << 20));
  auto what = begin();
  remove("going");
  for (int i = 0;; ++i) {
    const std::string name = fmt::format("fill {}", i);
    const auto made = volume_->make_node(root, name, {}, S_IFREG | 0644, 0);
    if (!made) break;
    names.push_back(name);
    const auto written = volume_->write(made->inode, 0, as_bytes(noise(1u << 20)), {});
    volume_->forget(made->inode, 1);
    if (!written) break;
    if (!volume_->sync_all()) break;
    ASSERT_LT(i, 100);
  }
  auto full = volume_.mounted().begin_backup();
  if (!full) {
    EXPECT_EQ(full.error().code, ErrorCode::no_space) << full.error().message;
  }
  for (const std::string& name : names)
    NACRE_EXPECT_OK(volume_->unlink(root, name));
  what.snapshot.hold.reset();
  if (full) full->hold.reset();
  NACRE_EXPECT_OK(volume_->sync_all());
  NACRE_EXPECT_OK(volume_->sync_all());
  put("again", noise(1u << 20));
  NACRE_EXPECT_OK(volume_->sync_all());
  tree_ = {{"again", tree_["again"]}};
  unmount();
  expect_volume(source_, tree_);
}

TEST_F(BackupTest, gives_way_when_the_disk_is_full_of_what_only_it_keeps) {
  unmount();
  source_->set_capacity(64u << 20);
  mount();
  put("file", noise(28u << 20));
  put("small", noise(10'000));
  NACRE_EXPECT_OK(volume_->sync_all());
  auto what = begin();
  // The live data, the files that the backup keeps, and the ballast together exceed the disk.
  for (int i = 0; i < 3; ++i) {
    put("file", noise(28u << 20));
    NACRE_ASSERT_OK(volume_->sync_all());
  }
  EXPECT_TRUE(what.snapshot.hold->is_given_up());
  EXPECT_LT(volume_.mounted().stats().segments.held_bytes, 1u << 20);
  const auto check_hold = [&](std::chrono::milliseconds) -> Result<> {
    return what.snapshot.hold->is_given_up() ? fail(ErrorCode::no_space, "given up") : Result<>();
  };
  const auto failed = fs::back_up(*source_, what, *target_, {.check_hold = check_hold}, {});
  EXPECT_CODE(no_space, failed);
  EXPECT_NE(failed.error().message.find("given up"), std::string::npos) << failed.error().message;
  EXPECT_FALSE(is_volume(*target_));
  what.snapshot.hold.reset();
  EXPECT_EQ(volume_.mounted().stats().backup_count, 0u);
  back_up();
  expect_volume(target_, tree_);
}

// Data that had been taken meets the full disk when it is written. An earlier version failed that
// sync, and only the next one had the room.
TEST_F(BackupTest, gives_way_to_a_sync_before_it_is_answered) {
  unmount();
  source_->set_capacity(64u << 20);
  options_.dirty_budget_bytes = 64u << 20;  // nothing is written before it is asked for
  mount();
  put("file", noise(28u << 20));
  NACRE_EXPECT_OK(volume_->sync_all());
  auto what = begin();
  remove("file");
  NACRE_EXPECT_OK(volume_->sync_all());
  NACRE_EXPECT_OK(volume_->sync_all());
  for (int i = 0; i < 80; ++i)
    put(fmt::format("another {}", i), noise(128u << 10));  // each too short to be streamed out
  EXPECT_EQ(volume_.mounted().stats().dirty_bytes, 10u << 20);
  source_->store("foreign", Bytes(source_->space().value().free_bytes));
  NACRE_EXPECT_OK(volume_->sync_all());
  EXPECT_TRUE(what.snapshot.hold->is_given_up());
  what.snapshot.hold.reset();
  source_->erase("foreign");
  unmount();
  expect_volume(source_, tree_);
}

TEST_F(BackupTest, stays_when_the_disk_is_full_of_what_is_live) {
  unmount();
  source_->set_capacity(64u << 20);
  mount();
  put("file", noise(10u << 20));
  NACRE_EXPECT_OK(volume_->sync_all());
  const Tree then = tree_;
  const auto what = begin();
  const auto made = volume_->make_node(root, "endless", {}, S_IFREG | 0644, 0);
  NACRE_ASSERT_OK(made);
  Result<> written;
  for (std::uint64_t offset = 0; written; offset += 1u << 20) {
    ASSERT_LT(offset, 64u << 20);
    written = volume_->write(made->inode, offset, as_bytes(noise(1u << 20)), {});
    if (written) written = volume_->sync_all();
  }
  EXPECT_EQ(written.error().code, ErrorCode::no_space) << written.error().message;
  EXPECT_FALSE(what.snapshot.hold->is_given_up());
  NACRE_EXPECT_OK(copy(what, *target_));
  expect_volume(target_, then);
  volume_->forget(made->inode, 1);
  NACRE_EXPECT_OK(volume_->unlink(root, "endless"));
}

TEST_F(BackupTest, says_so_when_its_files_went_in_the_middle_of_a_run) {
  put("file", noise(2u << 20));
  NACRE_EXPECT_OK(volume_->sync_all());
  const auto what = begin();
  int asked = 0;
  const auto check_hold = [&](std::chrono::milliseconds) -> Result<> {
    return ++asked == 2 ? fail(ErrorCode::no_space, "given up") : Result<>();
  };
  EXPECT_CODE(no_space, fs::back_up(*source_, what, *target_, {.check_hold = check_hold}, {}));
  EXPECT_EQ(asked, 3) << "once more when the copy of a file had failed";
  EXPECT_FALSE(is_volume(*target_));
  NACRE_EXPECT_OK(copy(what, *target_));
  expect_volume(target_, tree_);
}

TEST_F(BackupTest, as_many_as_that_at_a_time) {
  std::vector<fs::BackupSource> running;
  for (unsigned i = 0; i < fs::backup_count_max; ++i)
    running.push_back(begin());
  EXPECT_CODE(busy, volume_.mounted().begin_backup());
  running.pop_back();
  running.push_back(begin());
}

TEST_F(BackupTest, of_a_closed_volume) {
  work(40);
  unmount();
  const auto what = fs::list_closed_volume(*source_);
  NACRE_ASSERT_OK(what);
  EXPECT_TRUE(what->is_clean);
  NACRE_ASSERT_OK(copy(*what, *target_));
  expect_volume(target_, tree_);
  mount();
  work(10);
  unmount();
  const auto later = fs::list_closed_volume(*source_);
  NACRE_ASSERT_OK(later);
  NACRE_ASSERT_OK(copy(*later, *target_));
  expect_volume(target_, tree_);
  mount();
  work(10);
  back_up();
  expect_volume(target_, tree_);
}

TEST_F(BackupTest, of_a_volume_that_was_killed_makes_a_new_one_and_replaces_none) {
  work(40);
  back_up();
  const Tree before = tree_;
  work(20);
  NACRE_EXPECT_OK(volume_->sync_all());
  source_ = source_->process_kill();
  volume_.reset();
  source_->store("db/777777.sst", Bytes());  // tables over which it was killed
  source_->store("db/777778.sst", Bytes(40));
  const auto what = fs::list_closed_volume(*source_);
  NACRE_ASSERT_OK(what);
  EXPECT_FALSE(what->is_clean);
  EXPECT_CODE(unsupported, copy(*what, *target_));
  expect_volume(target_, before);
  const auto fresh = MemoryBacking::create();
  NACRE_ASSERT_OK(copy(*what, *fresh));
  expect_volume(fresh, tree_);
  // After a mount, the volume is backed up like any other.
  mount();
  work(20);
  NACRE_EXPECT_OK(copy(begin(), *fresh));
  expect_volume(fresh, tree_);
}

TEST_F(BackupTest, into_a_folder_with_other_files_or_another_volume_is_refused) {
  work(10);
  const auto what = begin();
  target_->store("holiday.jpg", as_bytes("not ours"));
  EXPECT_CODE(not_empty, copy(what, *target_));
  EXPECT_EQ(target_->files(), std::vector<std::string>{"holiday.jpg"});

  const auto volume = MemoryBacking::create();
  make_volume(*volume);
  EXPECT_CODE(exists, copy(what, *volume));

  const auto other_source = MemoryBacking::create();
  make_volume(*other_source);
  const auto other = MemoryBacking::create();
  const auto closed = fs::list_closed_volume(*other_source);
  NACRE_ASSERT_OK(closed);
  NACRE_ASSERT_OK(fs::back_up(*other_source, *closed, *other, {}, {}));
  EXPECT_CODE(exists, copy(what, *other));
}

TEST_F(BackupTest, into_one_that_was_mounted_for_writing_since_is_refused) {
  work(10);
  back_up();
  { NACRE_EXPECT_OK(open(target_, true)->mounted().close()); }
  back_up();
  { NACRE_EXPECT_OK(open(target_)->mounted().close()); }
  work(10);
  const auto files = target_->files();
  const auto refused = copy(begin(), *target_);
  EXPECT_CODE(exists, refused);
  EXPECT_EQ(target_->files(), files);
}

TEST_F(BackupTest, of_a_source_that_was_put_back_is_refused) {
  work(20);
  NACRE_EXPECT_OK(volume_->sync_all());
  unmount();
  const auto old = source_->process_kill();
  for (int i = 0; i < 3; ++i) {
    mount();
    work(20);
    unmount();
  }
  mount();
  const Tree later = tree_;
  back_up();
  unmount();
  source_ = old;
  mount();
  EXPECT_CODE(exists, copy(begin(), *target_));
  expect_volume(target_, later);
}

TEST_F(BackupTest, into_a_later_generation_is_refused) {
  work(5);
  back_up();
  const auto keys = metadata::open_volume_keys(*target_, metadata::VolumeSecret(identity(0)));
  NACRE_ASSERT_OK(keys);
  auto superblock = keys->superblock;
  ++superblock.generation;
  NACRE_ASSERT_OK(metadata::save_superblock(*target_, superblock, *keys->keys));
  EXPECT_CODE(exists, copy(begin(), *target_));
}

TEST_F(BackupTest, says_before_it_begins_that_there_is_no_room) {
  put("large", noise(3u << 20));
  target_->set_capacity(2u << 20);
  const auto refused = copy(begin(), *target_);
  EXPECT_CODE(no_space, refused);
  EXPECT_FALSE(is_volume(*target_));
}

TEST_F(BackupTest, that_meets_a_full_target_leaves_the_earlier_one_and_goes_on_later) {
  work(20);
  back_up();
  const Tree before = tree_;
  work(40);
  const auto what = begin();
  target_->inject({.operations = change_write, .skip = 3, .code = ErrorCode::no_space});
  const auto stopped = copy(what, *target_);
  EXPECT_CODE(no_space, stopped);
  EXPECT_NE(stopped.error().message.find("as it was"), std::string::npos)
      << stopped.error().message;
  target_->clear_failures();
  expect_volume(target_, before);
  NACRE_EXPECT_OK(copy(what, *target_));
  expect_volume(target_, tree_);
}

TEST_F(BackupTest, copies_rot_in_a_segment_and_reports_it_once) {
  put("file", noise(200'000));
  const auto what = begin();
  const std::string path = "segments/000000000001.seg";
  auto bytes = source_->load(path);
  ASSERT_TRUE(bytes);
  (*bytes)[bytes->size() / 2] ^= 1;
  source_->store(path, *bytes);
  const auto done = copy(what, *target_);
  NACRE_ASSERT_OK(done);
  EXPECT_EQ(done->damage_count, 1u);
  EXPECT_EQ(target_->load(path), bytes);
  const auto again = copy(what, *target_);
  NACRE_ASSERT_OK(again);
  EXPECT_EQ(again->damage_count, 0u);
}

TEST_F(BackupTest, lets_no_rot_of_the_database_into_an_earlier_one) {
  work(20);
  back_up();
  const Tree before = tree_;
  work(20);
  const auto what = begin();
  for (const auto& file : what.snapshot.files) {
    if (!file.path.ends_with(".sst") || target_->load(file.path)) continue;
    auto bytes = source_->load(file.path);
    (*bytes)[bytes->size() / 2] ^= 1;
    source_->store(file.path, *bytes);
    break;
  }
  EXPECT_CODE(corrupt, copy(what, *target_));
  expect_volume(target_, before);
}

TEST_F(BackupTest, whose_files_went_away_says_so_and_leaves_the_earlier_one) {
  work(20);
  back_up();
  const Tree before = tree_;
  put("file", noise(100'000));
  auto what = begin();
  remove("file");
  what.snapshot.hold.reset();  // as when the daemon ends
  NACRE_EXPECT_OK(volume_->sync_all());
  NACRE_EXPECT_OK(volume_->sync_all());
  for (const auto& file : what.snapshot.files)
    if (file.path.starts_with("segments/")) source_->erase(file.path);
  EXPECT_CODE(stale, copy(what, *target_));
  expect_volume(target_, before);
  volume_.reset();
}

}  // namespace
}  // namespace nacre::tests
