// SPDX-License-Identifier: Apache-2.0
// A full disk: which calls fail, which go on all the same, and how the volume recovers.
#include <vector>

#include <fmt/format.h>

#include "fs/cache/file_cache.h"
#include "fs/store/ballast.h"
#include "tests/fs/volume_fixture.h"
#include "tests/support/noise.h"

namespace nacre::tests {
namespace {

using fs::Ballast;
using fs::InodeNumber;
using fs::RenameMode;

constexpr std::uint64_t disk_size_bytes = 48u << 20;

class VolumeFullDisk : public VolumeTest {
 protected:
  void SetUp() override {
    options_.store.fresh_lane_count = 1;  // as on a small disk
    backing_ = MemoryBacking::create();
    backing_->set_capacity(disk_size_bytes);
    NACRE_ASSERT_OK(fs::Mounted::format(backing_, test_keys(), 1, caller_));
    mount();
  }

  InodeNumber make_noise(std::string_view name, std::size_t size, std::uint64_t seed) {
    const InodeNumber file = make_file(root, name);
    write(file, 0, noise(size, seed));
    return file;
  }
  std::uint64_t free_bytes() { return backing_->space().value().free_bytes; }
  // Another program takes all the space that is left.
  void fill_from_outside(std::uint64_t leave = 0) {
    const std::uint64_t has = backing_->load("foreign").value_or(Bytes()).size();
    backing_->store("foreign", Bytes(has + free_bytes() - std::min(leave, free_bytes())));
  }
  // The disk fills up after data was taken and before it was written, so a commit gives up the
  // ballast. Returns the file with that data.
  InodeNumber use_up_ballast() {
    const InodeNumber file = make_noise("taken", 1, 0);
    fill_from_outside();
    EXPECT_EQ(free_bytes(), 0u);
    write(file, 0, noise(1u << 20, 0));
    NACRE_EXPECT_OK(sync(file));
    EXPECT_FALSE(has_ballast());
    return file;
  }
  // Writes as the kernel does when it writes back bytes that it took from a program before.
  Result<> write_back(InodeNumber file, std::string_view bytes) {
    return volume().write(file, 0, as_bytes(bytes), {.is_taken = true});
  }
  // Makes files of 1 MiB until there is no room. Returns their number.
  int fill_from_inside() {
    for (int count = 0;; ++count) {
      const InodeNumber file = make_file(root, "f" + std::to_string(count));
      const auto written = volume().write(file, 0, as_bytes(noise(1u << 20, count)), {});
      if (!written) {
        EXPECT_EQ(written.error().code, ErrorCode::no_space) << written.error().message;
        return count;
      }
      NACRE_EXPECT_OK(sync(file));
      if (count == 100) ADD_FAILURE() << "a disk without end";
      if (::testing::Test::HasFailure()) return count;
    }
  }
  // Whether the ballast has its whole size.
  bool has_ballast() {
    const auto size = backing_->file_size(fs::ballast_file);
    return size && *size == Ballast::size_for(backing_->space().value().total_bytes);
  }
  void expect_noise(std::string_view name, std::size_t size, std::uint64_t seed) {
    EXPECT_TRUE(read(find(root, name)) == noise(size, seed)) << name;
  }
};

TEST_F(VolumeFullDisk, the_ballast_follows_the_size_of_the_disk) {
  EXPECT_EQ(Ballast::size_for(0), 0u);
  EXPECT_EQ(Ballast::size_for(256u << 20), 16u << 20);
  EXPECT_EQ(Ballast::size_for(1u << 30), 64u << 20);
  EXPECT_EQ(Ballast::size_for(1ull << 50), 64u << 20);
  EXPECT_EQ(backing_->file_size(fs::ballast_file).value(), Ballast::size_for(disk_size_bytes));
  unmount();
  backing_->set_capacity(4 * disk_size_bytes);  // the disk has grown
  mount();
  EXPECT_EQ(backing_->file_size(fs::ballast_file).value(), Ballast::size_for(4 * disk_size_bytes));
  unmount();
  backing_->set_capacity(disk_size_bytes);
  mount();
  EXPECT_EQ(backing_->file_size(fs::ballast_file).value(), Ballast::size_for(disk_size_bytes));
}

TEST_F(VolumeFullDisk, a_write_is_refused_before_the_disk_is_full) {
  const int count = fill_from_inside();
  EXPECT_GT(count, 10);
  EXPECT_TRUE(has_ballast());
  // Less room is left than the next file takes: its bytes, and what is written with them.
  constexpr std::uint64_t file_takes_bytes = (1u << 20) + (128u << 10);
  EXPECT_LT(volume().space().value().available_bytes, file_takes_bytes);
  // All data that was taken is there, and everything except for new data goes on.
  const InodeNumber file = make_file(root, "empty");
  NACRE_EXPECT_OK(volume().rename(root, "f0", root, "g0", RenameMode::replace));
  NACRE_EXPECT_OK(sync(file));
  NACRE_EXPECT_OK(volume().sync_all());
  lose_power();
  for (int i = 1; i < count; ++i)
    expect_noise("f" + std::to_string(i), 1u << 20, i);
  expect_noise("g0", 1u << 20, 0);
}

// Several writers are between their admission and the moment when their bytes are dirty. In an
// earlier version each was promised all the room that there was.
TEST(BallastAdmission, writers_at_the_same_time_are_not_promised_the_same_room) {
  const auto backing = MemoryBacking::create();
  backing->set_capacity(disk_size_bytes);
  Ballast ballast(backing, 0);
  ASSERT_TRUE(ballast.restore());
  const auto space = [&] { return backing->space().value(); };
  backing->store("foreign", Bytes(space().free_bytes - (10u << 20)));
  const std::uint64_t room = ballast.room(space(), 0);
  ASSERT_GT(room, 8u << 20);
  std::uint64_t dirty = 0;
  for (const std::uint64_t bytes : {64u << 10, 1u << 20, 3u << 20}) {
    const auto admit = [&] { return ballast.admit_data(bytes, [&] { return dirty; }); };
    std::vector<Ballast::Admission> admissions;
    for (auto admitted = admit(); admitted; admitted = admit())
      admissions.push_back(std::move(*admitted));
    EXPECT_EQ(ballast.admitted_bytes(), admissions.size() * bytes);
    EXPECT_LE(admissions.size() * bytes, room);
    EXPECT_GT(admissions.size() * bytes, room / 2) << "and not much less";
    // Bytes that became dirty count as dirty. Bytes that were given up no longer count.
    dirty = ballast.admitted_bytes();
    admissions.clear();
    EXPECT_FALSE(admit());
    dirty = 0;
    EXPECT_TRUE(admit());
    EXPECT_EQ(ballast.admitted_bytes(), 0u);
  }
}

TEST_F(VolumeFullDisk, what_is_deleted_makes_room_for_the_next_write) {
  const int count = fill_from_inside();
  for (int i = 0; i < count; ++i) {
    const std::string name = "f" + std::to_string(i);
    const InodeNumber inode = find(root, name);
    NACRE_EXPECT_OK(volume().unlink(root, name));
    volume().forget(inode, 2);
  }
  // Only the write itself asks for a commit.
  const InodeNumber file = make_file(root, "new");
  NACRE_EXPECT_OK(volume().write(file, 0, as_bytes(noise(4u << 20, 7)), {}));
  NACRE_EXPECT_OK(sync(file));
}

TEST_F(VolumeFullDisk, what_was_taken_is_written_though_somebody_else_fills_the_disk) {
  const InodeNumber file = use_up_ballast();
  EXPECT_CODE(no_space, volume().write(file, 0, as_bytes("more"), {}));
  EXPECT_EQ(volume().space().value().available_bytes, 0u);
  lose_power();
  expect_noise("taken", 1u << 20, 0);
}

// Data that the kernel took from a program is not dropped for lack of room: it is shown as before,
// every sync reports the error, and it is written once there is room.
TEST_F(VolumeFullDisk, what_the_kernel_took_waits_for_room) {
  const InodeNumber file = make_file(root, "f");
  NACRE_EXPECT_OK(sync(file));
  fill_from_outside();
  EXPECT_CODE(no_space, volume().write(file, 0, as_bytes("x"), {}));
  EXPECT_CODE(no_space, volume().check_write(file, 1, 0));
  NACRE_EXPECT_OK(write_back(file, noise(3u << 20, 1)));
  EXPECT_CODE(no_space, sync(file));
  EXPECT_CODE(no_space, sync(file));
  expect_noise("f", 3u << 20, 1);
  backing_->erase("foreign");
  NACRE_EXPECT_OK(sync(file));
  lose_power();
  expect_noise("f", 3u << 20, 1);
}

// Once, fsync refused what the kernel took although the commit that it began freed the room.
TEST_F(VolumeFullDisk, what_a_commit_frees_is_for_the_data_that_it_began_with) {
  const InodeNumber cut = make_noise("cut", 8u << 20, 2), file = make_file(root, "f");
  NACRE_EXPECT_OK(volume().sync_all());
  fill_from_outside();
  NACRE_EXPECT_OK(write_back(file, noise(3u << 20, 1)));
  NACRE_EXPECT_OK(volume().change_attributes(cut, {.size = 0}));
  NACRE_EXPECT_OK(sync(file));
  EXPECT_GT(mounted().stats().commits.retry_count, 0u);
  lose_power();
  expect_noise("f", 3u << 20, 1);
}

// Each attempt must have gained something, so a disk that stays full is told at once.
TEST_F(VolumeFullDisk, is_not_tried_again_where_nothing_is_gained) {
  const InodeNumber file = make_file(root, "f");
  NACRE_EXPECT_OK(sync(file));
  fill_from_outside();
  NACRE_EXPECT_OK(write_back(file, noise(3u << 20, 1)));
  EXPECT_CODE(no_space, sync(file));
  EXPECT_EQ(mounted().stats().commits.retry_count, 0u);
  backing_->erase("foreign");
}

TEST_F(VolumeFullDisk, what_the_kernel_took_keeps_nothing_from_being_deleted) {
  const InodeNumber file = make_file(root, "f"), clean = make_file(root, "clean");
  make_noise("gone", 1u << 20, 2);
  make_noise("gone too", 1u << 20, 3);
  NACRE_EXPECT_OK(volume().sync_all());
  fill_from_outside();
  EXPECT_CODE(no_space, volume().write(file, 0, as_bytes(noise(16u << 20, 0)), {}));
  NACRE_EXPECT_OK(write_back(file, noise(3u << 20, 1)));
  // The ballast is still whole. If the file got the name, no commit could be made.
  EXPECT_TRUE(has_ballast());
  EXPECT_CODE(no_space, volume().rename(root, "f", root, "g", RenameMode::replace));
  NACRE_EXPECT_OK(volume().unlink(root, "gone"));
  NACRE_EXPECT_OK(sync(root));
  // For the same reason, bytes for a file with a new name are not taken.
  NACRE_EXPECT_OK(volume().rename(root, "clean", root, "moved", RenameMode::replace));
  EXPECT_CODE(no_space, write_back(clean, noise(1u << 20, 4)));
  NACRE_EXPECT_OK(volume().unlink(root, "gone too"));
  NACRE_EXPECT_OK(sync(root));
  lose_power();
  EXPECT_EQ(list(root), (std::vector<std::string>{"f", "moved"}));
}

TEST_F(VolumeFullDisk, what_the_kernel_took_is_bounded_and_keeps_nobody_waiting) {
  const InodeNumber file = make_file(root, "f");
  NACRE_EXPECT_OK(sync(file));
  fill_from_outside();
  std::uint64_t taken_bytes = 0;
  for (std::uint64_t i = 0; i < 64; ++i) {
    if (!volume().write(file, i << 20, as_bytes(noise(1u << 20, i)), {.is_taken = true})) break;
    taken_bytes += 1u << 20;
  }
  EXPECT_LE(taken_bytes, *options_.dirty_budget_bytes + disk_size_bytes / 4);
  NACRE_EXPECT_OK(volume().unlink(root, "f"));
  NACRE_EXPECT_OK(sync(root));
}

TEST_F(VolumeFullDisk, closing_tells_of_what_the_kernel_took_in_vain) {
  const InodeNumber file = make_file(root, "f");
  NACRE_EXPECT_OK(sync(file));
  fill_from_outside();
  NACRE_EXPECT_OK(write_back(file, noise(3u << 20, 1)));
  EXPECT_CODE(no_space, mounted().close());
  volume_.reset();
  mount();
  EXPECT_EQ(stat(find(root, "f")).size, 0u);
}

TEST_F(VolumeFullDisk, deletes_truncates_and_renames_work_on_a_full_disk) {
  const InodeNumber cut = make_noise("cut", 200'000, 1);
  make_noise("gone", 200'000, 2);
  make_noise("kept", 200'000, 3);
  NACRE_EXPECT_OK(volume().sync_all());
  use_up_ballast();
  fill_from_outside(disk_size_bytes / 64);
  NACRE_EXPECT_OK(volume().unlink(root, "gone"));
  NACRE_EXPECT_OK(volume().change_attributes(cut, {.size = 1000}));
  NACRE_EXPECT_OK(volume().rename(root, "kept", root, "renamed", RenameMode::replace));
  NACRE_EXPECT_OK(volume().sync_all());
  EXPECT_TRUE(read(find(root, "renamed")) == noise(200'000, 3));
  lose_power();
  EXPECT_EQ(list(root), (std::vector<std::string>{"cut", "renamed", "taken"}));
  EXPECT_TRUE(read(find(root, "cut")) == noise(200'000, 1).substr(0, 1000));
  expect_noise("renamed", 200'000, 3);
}

// In an earlier version, every commit waited for room for the data of a renamed file.
TEST_F(VolumeFullDisk, the_data_of_a_renamed_file_does_not_hold_up_deletes) {
  make_noise("f", 100'000, 1);
  make_noise("gone", 100'000, 2);
  NACRE_EXPECT_OK(volume().sync_all());
  const InodeNumber fresh = make_noise("f.new", 1, 3);
  fill_from_outside();
  write(fresh, 0, noise(1u << 20, 3));
  NACRE_EXPECT_OK(volume().rename(root, "f.new", root, "f", RenameMode::replace));
  NACRE_EXPECT_OK(volume().unlink(root, "gone"));
  NACRE_EXPECT_OK(sync(root));
  lose_power();
  EXPECT_EQ(list(root), std::vector<std::string>{"f"});
  expect_noise("f", 1u << 20, 3);
}

TEST_F(VolumeFullDisk, a_file_whose_data_has_no_room_keeps_its_name) {
  make_noise("f", 100'000, 1);
  NACRE_EXPECT_OK(volume().sync_all());
  backing_->inject({.operations = change_write | change_create,
                    .path_part = "segments",
                    .code = ErrorCode::no_space});
  const InodeNumber fresh = make_noise("f.new", 300'000, 2);
  EXPECT_CODE(no_space, sync(fresh));
  EXPECT_CODE(no_space, volume().rename(root, "f.new", root, "f", RenameMode::replace));
  EXPECT_CODE(no_space, volume().rename(root, "f", root, "f.new", RenameMode::exchange));
  EXPECT_CODE(no_space, volume().link(fresh, root, "g"));
  NACRE_EXPECT_OK(volume().rename(root, "f", root, "h", RenameMode::replace));
  NACRE_EXPECT_OK(sync(root));
  lose_power();
  EXPECT_EQ(list(root), (std::vector<std::string>{"f.new", "h"}));
  expect_noise("h", 100'000, 1);
}

TEST_F(VolumeFullDisk, names_stop_before_deletes_do) {
  use_up_ballast();
  fill_from_outside();
  // Rows take the other half of the ballast, and half of that.
  for (std::uint64_t i = 0;; ++i) {
    const auto name = fmt::format("user.{}", i);
    if (!volume().set_xattr(root, name, noise(60'000, i), fs::XattrMode::set, false)) break;
    NACRE_EXPECT_OK(sync(root));
    ASSERT_LT(i, 100u);
  }
  EXPECT_FALSE(backing_->exists(fs::ballast_file).value());
  EXPECT_GT(free_bytes(), Ballast::size_for(disk_size_bytes) / 4);
  fill_from_outside(Ballast::size_for(disk_size_bytes) / 4);
  EXPECT_CODE(no_space, volume().make_node(root, "f", caller_, S_IFREG, 0));
  EXPECT_CODE(no_space, volume().make_directory(root, "d", caller_, 0755));
  EXPECT_CODE(no_space, volume().make_symlink(root, "l", caller_, "target"));
  EXPECT_CODE(no_space, volume().make_unnamed(root, caller_, 0644));
  EXPECT_CODE(no_space, volume().link(find(root, "taken"), root, "second"));
  EXPECT_CODE(no_space, volume().set_xattr(root, "user.x", "v", fs::XattrMode::set, false));
  NACRE_EXPECT_OK(volume().change_attributes(root, {.mode = 0700}));
  NACRE_EXPECT_OK(volume().unlink(root, "taken"));
  NACRE_EXPECT_OK(volume().sync_all());
  lose_power();
  EXPECT_EQ(list(root), std::vector<std::string>{});
}

TEST_F(VolumeFullDisk, it_passes_by_itself_when_space_returns) {
  unmount();
  options_.commit_interval_ms = 3000;  // none comes while the disk is being filled
  mount();
  const InodeNumber file = use_up_ballast();
  backing_->erase("foreign");
  while (!has_ballast())  // although there are no calls and no changes
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  write(file, 0, noise(1u << 20, 2));
  NACRE_EXPECT_OK(sync(file));
  lose_power();
  expect_noise("taken", 1u << 20, 2);
}

TEST_F(VolumeFullDisk, a_write_finds_space_that_returned_without_waiting_for_the_interval) {
  const InodeNumber file = use_up_ballast();
  EXPECT_CODE(no_space, volume().write(file, 0, as_bytes("x"), {}));
  backing_->erase("foreign");
  Result<> written = fail(ErrorCode::no_space);
  while (!written)  // at most one commit a second is tried for the sake of space
    written = volume().write(file, 0, as_bytes("x"), {});
  EXPECT_TRUE(has_ballast());
}

// A quota does not show in the count of free bytes.
TEST_F(VolumeFullDisk, a_quota_is_met_like_a_full_disk) {
  const InodeNumber file = make_noise("f", 300'000, 1);
  const InodeNumber small = make_file(root, "small");
  write(small, 0, "x");
  backing_->inject({.operations = change_write | change_create,
                    .path_part = "segments",
                    .code = ErrorCode::no_space});
  backing_->inject(
      {.operations = change_write, .path_part = "ballast", .code = ErrorCode::no_space});
  EXPECT_CODE(no_space, sync(file));
  EXPECT_FALSE(has_ballast());
  NACRE_EXPECT_OK(sync(small));  // others are not held up
  EXPECT_TRUE(read(file) == noise(300'000, 1));
  EXPECT_CODE(no_space, volume().write(small, 0, as_bytes("y"), {}));
  EXPECT_EQ(mounted().stats().health, "ok");
  backing_->clear_failures();
  NACRE_EXPECT_OK(sync(file));
  EXPECT_TRUE(has_ballast());
  write(small, 0, "y");
  NACRE_EXPECT_OK(sync(small));
  lose_power();
  expect_noise("f", 300'000, 1);
  EXPECT_EQ(read(find(root, "small")), "y");
}

// Data that was taken must not use up what it takes to delete, or nothing ever gets through again.
TEST_F(VolumeFullDisk, data_past_a_quota_leaves_room_for_deletes) {
  unmount();
  options_.store.segment_size_bytes = 1u << 20;  // one that is filled goes with its file
  mount();
  const InodeNumber large = make_noise("large", 12u << 20, 1);
  NACRE_ASSERT_OK(volume().sync_all());
  const InodeNumber file = make_noise("past", 10u << 20, 2);
  const auto space = backing_->space().value();
  backing_->set_quota(space.total_bytes - space.free_bytes + (1u << 20));
  // More rows than the log has room for.
  for (int i = 0; i < 12; ++i)
    NACRE_ASSERT_OK(volume().set_xattr(file, fmt::format("user.{}", i),
                                       noise(60'000, static_cast<std::uint64_t>(i)),
                                       fs::XattrMode::set, false));
  EXPECT_CODE(no_space, sync(file));
  EXPECT_FALSE(has_ballast());
  NACRE_EXPECT_OK(volume().unlink(root, "large"));
  volume().forget(large, 1);
  // One commit to free, one more to write what then has room.
  if (!volume().sync_all()) NACRE_EXPECT_OK(volume().sync_all());
  EXPECT_EQ(mounted().stats().health, "ok");
  lose_power();
  backing_->set_quota(~0ull);
  expect_noise("past", 10u << 20, 2);
  EXPECT_FALSE(exists(root, "large"));
}

TEST(FlushErrors, the_gravest_of_several_files_errors_counts) {
  const auto error = [](ErrorCode code) -> Result<> { return fail(code, "forced by the test"); };
  Result<> outcome;
  fs::keep_gravest(outcome, {});
  EXPECT_TRUE(outcome);
  fs::keep_gravest(outcome, error(ErrorCode::corrupt));
  EXPECT_CODE(corrupt, outcome);
  fs::keep_gravest(outcome, {});
  EXPECT_CODE(corrupt, outcome);
  fs::keep_gravest(outcome, error(ErrorCode::no_space));  // else a rename would be let go for it
  EXPECT_CODE(no_space, outcome);
  fs::keep_gravest(outcome, error(ErrorCode::tampered));
  EXPECT_CODE(no_space, outcome);
}

TEST_F(VolumeFullDisk, a_full_disk_can_be_mounted_and_emptied) {
  make_noise("f", 1u << 20, 1);
  NACRE_EXPECT_OK(volume().sync_all());
  fill_from_outside();
  auto after = backing_->power_loss(0);
  volume_.reset();
  backing_ = std::move(after);
  mount();
  EXPECT_CODE(no_space, volume().write(find(root, "f"), 0, as_bytes("x"), {}));
  NACRE_EXPECT_OK(volume().unlink(root, "f"));
  NACRE_EXPECT_OK(volume().sync_all());
  remount();
  EXPECT_EQ(list(root), std::vector<std::string>{});
}

TEST_F(VolumeFullDisk, closing_works_on_a_full_disk) {
  make_noise("f", 1u << 20, 1);
  NACRE_EXPECT_OK(volume().sync_all());
  NACRE_EXPECT_OK(volume().unlink(root, "f"));
  fill_from_outside();
  remount();
  EXPECT_EQ(list(root), std::vector<std::string>{});
}

TEST_F(VolumeFullDisk, a_volume_on_a_full_disk_is_read_without_touching_the_ballast) {
  make_noise("f", 100'000, 1);
  unmount();
  backing_->erase(fs::ballast_file);
  fill_from_outside();
  backing_->set_read_only(true);
  options_.read_only = true;
  mount();
  expect_noise("f", 100'000, 1);
  EXPECT_FALSE(has_ballast());
}

TEST_F(VolumeFullDisk, a_ballast_that_cannot_be_made_stops_nobody) {
  unmount();
  backing_->erase(fs::ballast_file);
  backing_->inject({.operations = change_create, .path_part = "ballast", .code = ErrorCode::io});
  mount();
  const InodeNumber file = make_noise("f", 100'000, 1);
  NACRE_EXPECT_OK(sync(file));
  EXPECT_FALSE(has_ballast());
}

TEST_F(VolumeFullDisk, space_that_can_never_be_is_not_promised) {
  const InodeNumber file = make_file(root, "f");
  const std::uint64_t available = volume().space().value().available_bytes;
  EXPECT_LT(available, free_bytes());
  EXPECT_CODE(no_space, volume().allocate(file, fs::AllocateMode::allocate, 0, available + 1));
  NACRE_EXPECT_OK(volume().allocate(file, fs::AllocateMode::allocate, 0, available / 2));
  const std::uint64_t before = volume().space().value().available_bytes;
  write(file, 0, noise(1u << 20, 1));  // not written yet, but spoken for
  EXPECT_LE(volume().space().value().available_bytes, before - (1u << 20));
}

}  // namespace
}  // namespace nacre::tests
