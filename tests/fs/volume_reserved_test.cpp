// SPDX-License-Identifier: Apache-2.0
// Blocks that fallocate has reserved: they take their first write on a disk that others have
// filled, and what is not reserved is refused as before.
#include <algorithm>
#include <random>
#include <vector>

#include <fmt/format.h>

#include "metadata/format/reserved_row.h"
#include "tests/fs/volume_reserved_fixture.h"

namespace nacre::tests {
namespace {

using fs::AllocateMode;
using fs::Ballast;
using fs::InodeNumber;
using metadata::Table;

TEST_F(VolumeReserved, room_shows_in_statfs_and_in_blocks_and_is_taken_from_the_disk) {
  const std::uint64_t before = available_bytes(), free = backing_->space()->free_bytes;
  const InodeNumber file = make_reserved("f", 8 * mebibyte);
  EXPECT_LE(available_bytes(), before - 8 * mebibyte);
  EXPECT_LE(backing_->space()->free_bytes, free - 8 * mebibyte);
  EXPECT_EQ(stat(file).size, 8 * mebibyte);
  EXPECT_EQ(blocks_bytes(file), 8 * mebibyte);
  remount();
  EXPECT_EQ(blocks_bytes(find(root, "f")), 8 * mebibyte);
  EXPECT_LE(available_bytes(), before - 8 * mebibyte);
  lose_power();
  EXPECT_EQ(blocks_bytes(find(root, "f")), 8 * mebibyte);
  EXPECT_LE(available_bytes(), before - 8 * mebibyte);
  // More than there is cannot be reserved in two files.
  const InodeNumber other = make_file(root, "g");
  EXPECT_CODE(no_space, volume().allocate(other, AllocateMode::allocate, 0, before - mebibyte));
  NACRE_EXPECT_OK(volume().unlink(root, "f"));
  volume().forget(file, 8);
  NACRE_EXPECT_OK(volume().sync_all());
  EXPECT_GT(available_bytes(), before - mebibyte);
  EXPECT_EQ(promised_bytes(), 0u);
}

TEST_F(VolumeReserved, blocks_are_counted_that_a_range_touches) {
  const InodeNumber file = make_file(root, "f");
  reserve(file, block - 1, 2, AllocateMode::keep_size);
  EXPECT_EQ(stat(file).size, 0u);
  EXPECT_EQ(blocks_bytes(file), 2 * block);
  reserve(file, 0, 3 * block, AllocateMode::keep_size);
  EXPECT_EQ(blocks_bytes(file), 3 * block);
}

TEST_F(VolumeReserved, takes_its_first_writes_on_a_full_disk) {
  constexpr std::uint64_t size = 4 * mebibyte;
  const InodeNumber file = make_reserved("f", size);
  fill();
  fill_from_outside();
  EXPECT_CODE(no_space, try_write(make_file(root, "g"), 0, "x"));
  for (std::uint64_t at = 0; at < size; at += 256 << 10) {
    NACRE_ASSERT_OK(try_write(file, at, noise(256 << 10, at + 1)));
    NACRE_ASSERT_OK(sync(file));
  }
  EXPECT_EQ(promised_bytes(), 0u);
  lose_power();
  for (std::uint64_t at = 0; at < size; at += 256 << 10)
    expect_content(find(root, "f"), at, noise(256 << 10, at + 1));
}

// Each page in a commit of its own, in any order: nothing dead may pile up.
TEST_F(VolumeReserved, takes_its_pages_in_any_order_on_a_full_disk) {
  constexpr std::uint64_t size = 2 * mebibyte;
  const InodeNumber file = make_reserved("f", size);
  fill();
  fill_from_outside();
  std::vector<std::uint64_t> pages(size / block);
  for (std::uint64_t i = 0; i < pages.size(); ++i)
    pages[i] = i;
  std::shuffle(pages.begin(), pages.end(), std::minstd_rand(7));
  for (const std::uint64_t page : pages) {
    const bool is_taken = page % 2 == 0;
    NACRE_ASSERT_OK(try_write(file, page * block, noise(block, page), is_taken));
    NACRE_ASSERT_OK(sync(file));
  }
  lose_power();
  for (const std::uint64_t page : pages)
    expect_content(find(root, "f"), page * block, noise(block, page));
}

TEST_F(VolumeReserved, behind_the_end_of_a_file_takes_appends) {
  const InodeNumber file = make_file(root, "f");
  reserve(file, 0, mebibyte, AllocateMode::keep_size);
  NACRE_EXPECT_OK(sync(file));
  fill();
  fill_from_outside();
  for (std::uint64_t at = 0; at < mebibyte; at += block) {
    NACRE_ASSERT_OK(try_write(file, at, noise(block, at)));
    if (at % (5 * block) == 0) NACRE_ASSERT_OK(sync(file));
  }
  NACRE_ASSERT_OK(sync(file));
  lose_power();
  for (std::uint64_t at = 0; at < mebibyte; at += block)
    expect_content(find(root, "f"), at, noise(block, at));
}

TEST_F(VolumeReserved, takes_copies_on_a_full_disk) {
  const InodeNumber source = make_file(root, "s");
  write(source, 0, noise(mebibyte, 1));
  NACRE_EXPECT_OK(sync(source));
  const InodeNumber file = make_reserved("f", mebibyte);
  fill();
  fill_from_outside();
  EXPECT_EQ(volume().copy_range(source, 0, file, 0, mebibyte).value_or(0), mebibyte);
  NACRE_ASSERT_OK(sync(file));
  lose_power();
  expect_content(find(root, "f"), 0, noise(mebibyte, 1));
}

// Point 1 of DECISIONS.md: the last commit before an unmount writes what was taken, although as
// much is reserved as there is.
TEST_F(VolumeReserved, a_last_flush_of_others_is_not_refused_for_its_sake) {
  const InodeNumber other = make_file(root, "g");
  NACRE_EXPECT_OK(try_write(other, 0, noise(mebibyte, 3)));
  const InodeNumber file = make_file(root, "f");
  std::uint64_t size = available_bytes();
  while (!volume().allocate(file, AllocateMode::allocate, 0, size))
    size -= mebibyte / 4;
  NACRE_EXPECT_OK(try_write(other, mebibyte, noise(mebibyte, 4), /*is_taken=*/true));
  unmount();
  mount();
  expect_content(find(root, "g"), 0, noise(mebibyte, 3) + noise(mebibyte, 4));
}

// Point 2: a second write is admitted as other data is, so it cannot take the room of others.
TEST_F(VolumeReserved, a_second_write_needs_free_room) {
  const InodeNumber file = make_reserved("f", 64 * block);
  NACRE_EXPECT_OK(try_write(file, 0, noise(64 * block, 1)));
  NACRE_EXPECT_OK(sync(file));
  fill();
  EXPECT_CODE(no_space, try_write(file, 0, noise(block, 2)));
  EXPECT_EQ(backing_->file_size(fs::ballast_file).value(), Ballast::size_for(disk_size_bytes));
  expect_content(file, 0, noise(64 * block, 1));
}

// Point 3.
TEST_F(VolumeReserved, a_writer_that_asks_first_hears_no_for_other_places) {
  const InodeNumber file = make_reserved("f", 16 * block);
  fill();
  const auto at = [](std::optional<std::uint64_t> offset, std::uint64_t size) {
    return [=] { return fs::WrittenRange{.is_known = true, .offset = offset, .size = size}; };
  };
  NACRE_EXPECT_OK(volume().check_write(file, 1, at(3 * block, 13 * block)));
  EXPECT_CODE(no_space, volume().check_write(file, 1, at(3 * block, 13 * block + 1)));
  EXPECT_CODE(no_space, volume().check_write(file, 1, at(std::nullopt, 1)));
  NACRE_EXPECT_OK(volume().check_write(file, 1));  // nobody knows where
  NACRE_EXPECT_OK(try_write(file, 0, noise(block, 1)));
  NACRE_EXPECT_OK(sync(file));
  EXPECT_CODE(no_space, volume().check_write(file, 1, at(0, block)));
}

// Point 4: the commit that a full disk needs cannot be made, and nobody waits for it.
TEST_F(VolumeReserved, a_write_waits_for_no_commit) {
  const InodeNumber file = make_reserved("f", 16 * block);
  fill();
  std::promise<void> may_go_on;
  std::atomic<bool> is_held{false};
  mounted().committer().request({}, [&](const Result<>&) {
    is_held = true;
    may_go_on.get_future().wait();
  });
  while (!is_held)
    std::this_thread::yield();
  NACRE_EXPECT_OK(try_write(file, 0, noise(16 * block, 1)));
  may_go_on.set_value();
  NACRE_EXPECT_OK(sync(file));
}

// Point 5: neither other files nor other bytes of the same chunk hold reserved ones up.
TEST_F(VolumeReserved, bytes_without_room_fail_no_reserved_ones) {
  const InodeNumber file = make_reserved("f", mebibyte);
  const InodeNumber other = make_file(root, "g");
  // In the chunk of reserved blocks lie some that are written.
  NACRE_EXPECT_OK(try_write(file, 0, noise(4 * block, 1)));
  NACRE_EXPECT_OK(volume().sync_all());
  fill();
  fill_from_outside();
  NACRE_EXPECT_OK(try_write(other, 0, noise(3 * mebibyte, 2), /*is_taken=*/true));
  NACRE_EXPECT_OK(try_write(file, 0, noise(4 * block, 3), /*is_taken=*/true));
  NACRE_EXPECT_OK(try_write(file, 4 * block, noise(3 * block, 4), /*is_taken=*/true));
  EXPECT_CODE(no_space, volume().sync_all());
  lose_power();
  expect_content(find(root, "f"), 4 * block, noise(3 * block, 4));
}

TEST_F(VolumeReserved, bytes_without_room_fail_no_reserved_ones_of_their_file) {
  const InodeNumber file = make_reserved("f", mebibyte);
  fill();
  fill_from_outside();
  NACRE_EXPECT_OK(try_write(file, mebibyte, noise(3 * mebibyte, 2), /*is_taken=*/true));
  NACRE_EXPECT_OK(try_write(file, 4 * block, noise(3 * block, 4), /*is_taken=*/true));
  EXPECT_CODE(no_space, sync(file));
  lose_power();
  expect_content(find(root, "f"), 4 * block, noise(3 * block, 4));
}

// Point 6.
TEST_F(VolumeReserved, rows_that_cannot_be_read_end_no_mount) {
  make_reserved("f", mebibyte);
  make_reserved("g", mebibyte);
  const InodeNumber file = find(root, "f");
  {
    const auto operation = mounted().committer().begin_operation();
    mounted().database().put(
        Table::xattrs, metadata::xattr_key(root, metadata::reserved_name(file)), "\1nonsense");
  }
  NACRE_EXPECT_OK(mounted().committer().commit({}));
  lose_power();
  EXPECT_EQ(blocks_bytes(find(root, "f")), 0u);
  EXPECT_EQ(blocks_bytes(find(root, "g")), mebibyte);
  unmount();
  options_.read_only = true;
  mount();
  EXPECT_EQ(blocks_bytes(find(root, "g")), mebibyte);
}

// Point 7: what is cut off is counted with the rows that go.
TEST_F(VolumeReserved, truncation_gives_back_what_it_cuts_off) {
  const InodeNumber file = make_reserved("f", 8 * mebibyte);
  for (std::uint64_t at = 0; at < 8 * mebibyte; at += 3 * block)
    NACRE_EXPECT_OK(try_write(file, at, noise(block, at)));
  NACRE_EXPECT_OK(sync(file));
  NACRE_EXPECT_OK(volume().change_attributes(file, {.size = 3 * mebibyte + 5 * block + 17}));
  NACRE_EXPECT_OK(sync(file));
  const std::uint64_t blocks = 3 * mebibyte / block + 6;
  EXPECT_LE(promised_bytes(), (blocks - blocks / 3) * (block + block / 4) + (512 << 10));
  EXPECT_GE(promised_bytes(), (blocks - blocks / 3 - 1) * block);
  NACRE_EXPECT_OK(volume().change_attributes(file, {.size = 1}));
  NACRE_EXPECT_OK(sync(file));
  EXPECT_EQ(promised_bytes(), 0u);
  EXPECT_LE(blocks_bytes(file), block);
}

// Point 8: a program that knows nothing of reserved blocks wrote to the file.
TEST_F(VolumeReserved, counts_that_are_out_of_date_are_counted_anew) {
  const InodeNumber file = make_reserved("f", 100 * block);
  NACRE_EXPECT_OK(try_write(file, 0, noise(50 * block, 1)));
  NACRE_EXPECT_OK(sync(file));
  const auto key = metadata::xattr_key(root, metadata::reserved_name(file));
  const auto stored = mounted().database().get(Table::xattrs, key).value();
  auto row = metadata::decode_reserved_row(stored.value()).value();
  EXPECT_EQ(row.unwritten_count, 50u);
  row.unwritten_count = 3;
  {
    const auto operation = mounted().committer().begin_operation();
    mounted().database().put(Table::xattrs, key, metadata::encode(row));
    mounted().database().put(Table::xattrs, metadata::xattr_key(root, metadata::reserved_mark_name),
                             metadata::encode_u64(1));
  }
  NACRE_EXPECT_OK(mounted().committer().commit({}));
  lose_power();
  fill();
  fill_from_outside();
  const InodeNumber found = find(root, "f");
  NACRE_EXPECT_OK(try_write(found, 50 * block, noise(50 * block, 2)));
  NACRE_EXPECT_OK(sync(found));
  EXPECT_EQ(promised_bytes(), 0u);
}

// Point 9.
TEST_F(VolumeReserved, punching_in_pieces_gives_everything_back) {
  const std::uint64_t before = available_bytes();
  const InodeNumber file = make_reserved("f", mebibyte);
  NACRE_EXPECT_OK(try_write(file, 10 * block, noise(20 * block, 1)));
  NACRE_EXPECT_OK(sync(file));
  for (std::uint64_t at = 0; at < mebibyte; at += block)
    NACRE_EXPECT_OK(volume().allocate(file, AllocateMode::punch_hole, at, block));
  NACRE_EXPECT_OK(sync(file));
  EXPECT_EQ(promised_bytes(), 0u);
  EXPECT_EQ(blocks_bytes(file), 0u);
  EXPECT_GT(available_bytes(), before - mebibyte / 2);
}

// More pieces than a row has room for.
TEST_F(VolumeReserved, too_many_ranges_are_given_back_or_refused) {
  const InodeNumber file = make_reserved("f", 32 * mebibyte);
  for (std::uint64_t at = 0; at < 32 * mebibyte; at += 2 * block)
    NACRE_EXPECT_OK(volume().allocate(file, AllocateMode::punch_hole, at, block));
  NACRE_EXPECT_OK(sync(file));
  EXPECT_LE(blocks_bytes(file), metadata::reserved_range_count_max * block);
  EXPECT_GE(blocks_bytes(file), (metadata::reserved_range_count_max - 1) * block);
  EXPECT_CODE(unsupported, volume().allocate(file, AllocateMode::keep_size, 64 * mebibyte, block));
  remount();
  EXPECT_GE(blocks_bytes(find(root, "f")), (metadata::reserved_range_count_max - 1) * block);
}

// Point 10.
TEST_F(VolumeReserved, rows_are_no_attributes_of_the_root) {
  for (int i = 0; i < 3; ++i)
    make_reserved(fmt::format("f{}", i), block);
  EXPECT_TRUE(volume().list_xattrs(root).value().empty());
  const std::string name(metadata::reserved_mark_name);
  EXPECT_CODE(unsupported, volume().get_xattr(root, name));
  EXPECT_CODE(unsupported, volume().set_xattr(root, name, "x", fs::XattrMode::set, false));
}

// Point 11: the zeros of a punch need no room that is reserved, and use none up.
TEST_F(VolumeReserved, zeros_of_a_punch_use_nothing_up) {
  const InodeNumber file = make_reserved("f", 64 * block);
  NACRE_EXPECT_OK(try_write(file, 0, noise(block, 1)));
  NACRE_EXPECT_OK(try_write(file, 15 * block, noise(block, 2)));
  NACRE_EXPECT_OK(sync(file));
  // The middle of the first chunk: 3 blocks and two halves.
  NACRE_EXPECT_OK(volume().allocate(file, AllocateMode::punch_hole, 4 * block + 100, 4 * block));
  NACRE_EXPECT_OK(volume().allocate(file, AllocateMode::zero, 9 * block + 100, 4 * block));
  NACRE_EXPECT_OK(sync(file));
  fill();
  fill_from_outside();
  for (std::uint64_t i = 1; i < 15; ++i) {
    const bool is_given_back = i >= 5 && i < 8;
    const auto written = try_write(file, i * block, noise(block, i));
    EXPECT_EQ(written.has_value(), !is_given_back) << i;
  }
  NACRE_EXPECT_OK(sync(file));
}

TEST_F(VolumeReserved, compaction_leaves_it_alone) {
  unmount();
  options_.store.segment_size_bytes = 256 << 10;
  mount();
  const InodeNumber file = make_reserved("f", 2 * mebibyte);
  const InodeNumber other = make_file(root, "g");
  for (std::uint64_t round = 0; round < 8; ++round) {
    for (std::uint64_t at = 0; at < 2 * mebibyte; at += 3 * block)
      NACRE_EXPECT_OK(try_write(other, at, noise(block, round * 1000 + at)));
    NACRE_EXPECT_OK(try_write(file, round * 31 * block, noise(block, round)));
    NACRE_EXPECT_OK(try_write(file, (round * 31 + 2) * block, noise(block, round + 100)));
    NACRE_EXPECT_OK(volume().sync_all());
  }
  NACRE_EXPECT_OK(mounted().compact(fs::CompactionGoal::everything, nullptr));
  EXPECT_GE(promised_bytes(), 2 * mebibyte - 16 * block);
  EXPECT_EQ(blocks_bytes(file), 2 * mebibyte);
  fill();
  fill_from_outside();
  for (std::uint64_t i = 0; i < 2 * mebibyte / block; ++i) {
    const bool is_written = i < 31 * 8 && (i % 31 == 0 || i % 31 == 2);
    if (is_written) continue;
    NACRE_ASSERT_OK(try_write(file, i * block, noise(block, i + 5000)));
    NACRE_ASSERT_OK(sync(file));
  }
  lose_power();
  for (std::uint64_t i = 0; i < 2 * mebibyte / block; ++i) {
    const bool is_written = i < 31 * 8 && (i % 31 == 0 || i % 31 == 2);
    const std::uint64_t seed = !is_written ? i + 5000 : i % 31 == 0 ? i / 31 : i / 31 + 100;
    expect_content(find(root, "f"), i * block, noise(block, seed));
  }
}

TEST_F(VolumeReserved, a_quota_counts_when_room_is_reserved_and_not_later) {
  const auto space = backing_->space().value();
  backing_->set_quota(space.total_bytes - space.free_bytes + 3 * mebibyte);
  const InodeNumber file = make_file(root, "f");
  EXPECT_CODE(no_space, volume().allocate(file, AllocateMode::allocate, 0, 8 * mebibyte));
  reserve(file, 0, mebibyte);
  NACRE_EXPECT_OK(sync(file));
  const auto now = backing_->space().value();
  backing_->set_quota(now.total_bytes - now.free_bytes);
  NACRE_EXPECT_OK(try_write(file, 0, noise(mebibyte, 1)));
  NACRE_EXPECT_OK(sync(file));
  lose_power();
  expect_content(find(root, "f"), 0, noise(mebibyte, 1));
}

TEST_F(VolumeReserved, a_rename_over_it_gives_it_back) {
  const InodeNumber file = make_reserved("f", 4 * mebibyte);
  const InodeNumber other = make_file(root, "g");
  write(other, 0, "x");
  NACRE_EXPECT_OK(volume().rename(root, "g", root, "f", fs::RenameMode::replace));
  volume().forget(file, 8);
  NACRE_EXPECT_OK(volume().sync_all());
  NACRE_EXPECT_OK(volume().sync_all());
  EXPECT_EQ(promised_bytes(), 0u);
}

// What a deletion gives back belongs to nobody else before it is durable: after a crash the file is
// there again, with its room.
TEST_F(VolumeReserved, what_is_given_back_is_free_after_the_commit) {
  const InodeNumber file = make_reserved("f", 8 * mebibyte);
  const std::uint64_t free = backing_->space()->free_bytes;
  NACRE_EXPECT_OK(volume().allocate(file, AllocateMode::punch_hole, 0, 8 * mebibyte));
  EXPECT_EQ(backing_->space()->free_bytes, free);
  fill_from_outside();
  lose_power();
  const InodeNumber found = find(root, "f");
  EXPECT_EQ(blocks_bytes(found), 8 * mebibyte);
  NACRE_EXPECT_OK(try_write(found, 0, noise(mebibyte, 1)));
  NACRE_EXPECT_OK(sync(found));
}

// The disk fails at each change in turn, and power is lost. What was synced is there, and what was
// reserved by then takes its first write.
TEST_F(VolumeReserved, survives_a_failure_at_every_change) {
  std::uint64_t change_count = 0;
  for (std::uint64_t number = 0; number == 0 || number <= change_count; ++number) {
    SCOPED_TRACE(number);
    unmount();
    backing_ = MemoryBacking::create();
    backing_->set_capacity(disk_size_bytes);
    NACRE_ASSERT_OK(fs::Mounted::format(backing_, test_keys(), 1, caller_));
    mount();
    const InodeNumber file = make_file(root, "f");
    NACRE_ASSERT_OK(volume().sync_all());
    const std::uint64_t before = backing_->change_count();
    if (number > 0) backing_->fail_at(before + number - 1);
    std::uint64_t reserved_count = 0;   // of the first blocks, durably
    std::vector<std::uint64_t> synced;  // of these, durably written
    const auto run = [&]() -> Result<> {
      NACRE_TRY(volume().allocate(file, AllocateMode::allocate, 0, 64 * block));
      NACRE_TRY(sync(file));
      reserved_count = 64;
      for (const std::uint64_t i : {3, 20, 4, 50, 0}) {
        NACRE_TRY(try_write(file, i * block, noise(block, i)));
        NACRE_TRY(sync(file));
        synced.push_back(i);
      }
      // From here on these blocks may be given back.
      reserved_count = 48;
      std::erase(synced, std::uint64_t{50});
      NACRE_TRY(volume().allocate(file, AllocateMode::punch_hole, 48 * block, 8 * block));
      NACRE_TRY(sync(file));
      NACRE_TRY(volume().change_attributes(file, {.size = 56 * block}));
      return sync(file);
    };
    const auto outcome = run();
    if (number == 0) {
      NACRE_ASSERT_OK(outcome);
      change_count = backing_->change_count() - before;
    }
    lose_power(number);
    if (HasFatalFailure()) return;
    const InodeNumber found = find(root, "f");
    for (const std::uint64_t i : synced)
      expect_content(found, i * block, noise(block, i));
    fill_from_outside();
    for (std::uint64_t i = 0; i < reserved_count; ++i) {
      // Of the others nobody knows whether they were written.
      if (std::find(synced.begin(), synced.end(), i) != synced.end()) continue;
      if (i == 3 || i == 20 || i == 4 || i == 50 || i == 0) continue;
      NACRE_ASSERT_OK(try_write(found, i * block, noise(block, i + 100)));
    }
    if (reserved_count > 0) NACRE_ASSERT_OK(sync(found));
    backing_->erase("foreign");
  }
  EXPECT_GT(change_count, 10u);
}

}  // namespace
}  // namespace nacre::tests
