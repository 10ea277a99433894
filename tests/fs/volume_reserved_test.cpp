// SPDX-License-Identifier: Apache-2.0
// What fallocate(2) set aside: who sees it, who may use it, and when it is given back.
#include <array>
#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "tests/fs/volume_fixture.h"
#include "tests/support/noise.h"

namespace nacre::tests {
namespace {

using fs::AllocateMode;
using fs::InodeNumber;

constexpr std::uint64_t mebibyte = 1u << 20;
constexpr std::uint64_t reserving_disk_bytes = 64 * mebibyte;
// What rows and a segment that is open may take meanwhile.
constexpr std::uint64_t tolerance_bytes = 2 * mebibyte;

class VolumeReserved : public VolumeTest {
 protected:
  void SetUp() override {
    options_.store.fresh_lane_count = 1;  // as on a small disk
    backing_ = MemoryBacking::create();
    backing_->set_capacity(reserving_disk_bytes);
    NACRE_ASSERT_OK(fs::Mounted::format(backing_, test_keys(), 1, caller_));
    mount();
  }

  std::uint64_t available() { return volume().space().value().available_bytes; }
  Result<> allocate(InodeNumber file, std::uint64_t offset, std::uint64_t length,
                    AllocateMode mode = AllocateMode::allocate) {
    return volume().allocate(file, mode, offset, length);
  }
  std::uint64_t shown_bytes(InodeNumber file) { return stat(file).blocks * 512; }
  Result<> write_noise(InodeNumber file, std::uint64_t offset, std::size_t size, std::uint64_t seed,
                       bool is_taken = false) {
    return volume().write(file, offset, as_bytes(noise(size, seed)), {.is_taken = is_taken});
  }
  // Files of 1 MiB, each synced, until there is no room.
  void fill(std::string_view name) {
    for (int count = 0; count < 100; ++count) {
      const InodeNumber file = make_file(root, fmt::format("{}{}", name, count));
      const auto written = write_noise(file, 0, mebibyte, static_cast<std::uint64_t>(count));
      const auto synced = sync(file);
      if (written && synced) continue;
      EXPECT_EQ((written ? synced : written).error().code, ErrorCode::no_space);
      return;
    }
    ADD_FAILURE() << "a disk without end";
  }
  void expect_near(std::uint64_t wanted, std::uint64_t found) {
    EXPECT_GE(found + tolerance_bytes, wanted);
    EXPECT_LE(found, wanted + tolerance_bytes);
  }
};

TEST_F(VolumeReserved, space_shows_in_blocks_and_in_what_is_free) {
  const std::uint64_t before = available();
  const InodeNumber file = make_file(root, "f");
  NACRE_ASSERT_OK(allocate(file, 0, 16 * mebibyte));
  EXPECT_EQ(stat(file).size, 16 * mebibyte);
  EXPECT_EQ(shown_bytes(file), 16 * mebibyte);
  EXPECT_TRUE(stat(file).has_holes);
  const std::uint64_t left = available();
  EXPECT_LE(left + 16 * mebibyte, before);
  // The same once more costs nothing.
  NACRE_ASSERT_OK(allocate(file, mebibyte, 4 * mebibyte));
  EXPECT_EQ(available(), left);
  const InodeNumber other = make_file(root, "other");
  EXPECT_CODE(no_space, allocate(other, 0, left + mebibyte));
  EXPECT_CODE(no_space, allocate(other, 0, 1ull << 60));
  EXPECT_EQ(available(), left);
  EXPECT_EQ(shown_bytes(other), 0u);
  NACRE_ASSERT_OK(allocate(other, mebibyte, mebibyte, AllocateMode::keep_size));
  EXPECT_EQ(stat(other).size, 0u);
  EXPECT_EQ(shown_bytes(other), mebibyte);
  // What is written there counts once.
  NACRE_ASSERT_OK(write_noise(file, 0, 8 * mebibyte, 1));
  NACRE_ASSERT_OK(sync(file));
  EXPECT_EQ(shown_bytes(file), 16 * mebibyte);
  EXPECT_LE(available(), left);
  expect_near(left - mebibyte, available());
}

TEST_F(VolumeReserved, space_comes_back_with_what_is_punched_cut_off_or_removed) {
  const std::uint64_t before = available();
  const InodeNumber file = make_file(root, "f");
  for (int round = 0; round < 2; ++round) {
    NACRE_ASSERT_OK(allocate(file, 0, 16 * mebibyte));
    EXPECT_LE(available() + 16 * mebibyte, before);
    NACRE_ASSERT_OK(allocate(file, 0, 4 * mebibyte, AllocateMode::punch_hole));
    EXPECT_EQ(shown_bytes(file), 12 * mebibyte);
    NACRE_ASSERT_OK(allocate(file, 4 * mebibyte, 2 * mebibyte, AllocateMode::zero_keep_size));
    EXPECT_EQ(shown_bytes(file), 12 * mebibyte) << "zeroing leaves it";
    NACRE_ASSERT_OK(volume().change_attributes(file, {.size = 8 * mebibyte}));
    EXPECT_EQ(shown_bytes(file), 4 * mebibyte);
    NACRE_ASSERT_OK(allocate(file, 0, 8 * mebibyte, AllocateMode::punch_hole));
    EXPECT_EQ(shown_bytes(file), 0u);
    expect_near(before, available());
    NACRE_ASSERT_OK(volume().sync_all());
  }
  NACRE_ASSERT_OK(allocate(file, 0, 16 * mebibyte));
  NACRE_ASSERT_OK(volume().sync_all());
  NACRE_ASSERT_OK(volume().unlink(root, "f"));
  EXPECT_LE(available() + 16 * mebibyte, before) << "somebody has it open";
  volume().forget(file, 1);
  while (available() + tolerance_bytes < before)
    std::this_thread::yield();
  remount();
  expect_near(before, available());
}

TEST_F(VolumeReserved, space_is_known_after_a_mount_and_a_crash) {
  const std::uint64_t before = available();
  const InodeNumber file = make_file(root, "f");
  NACRE_ASSERT_OK(allocate(file, 0, 16 * mebibyte));
  NACRE_ASSERT_OK(allocate(file, 20 * mebibyte, mebibyte, AllocateMode::keep_size));
  NACRE_ASSERT_OK(write_noise(file, mebibyte, mebibyte, 1));
  NACRE_ASSERT_OK(sync(file));
  const std::uint64_t left = available();
  for (int round = 0; round < 4; ++round) {
    if (round % 2 == 0) {
      remount();
    } else {
      lose_power(static_cast<std::uint64_t>(round));
    }
    const InodeNumber found = find(root, "f");
    EXPECT_EQ(shown_bytes(found), 17 * mebibyte);
    expect_near(left, available());
    EXPECT_EQ(volume().list_xattrs(root).value().size(), 0u);
    volume().forget(found, 1);
  }
  NACRE_ASSERT_OK(volume().unlink(root, "f"));
  NACRE_ASSERT_OK(volume().sync_all());
  remount();
  expect_near(before, available());
}

// A log that is preallocated and written over and over, while others have filled the disk: each
// rewrite needs room before the old record is given up.
TEST_F(VolumeReserved, space_takes_writes_again_and_again_on_a_full_disk) {
  constexpr std::uint64_t log_size = 6 * mebibyte;
  std::mt19937_64 random(11);
  InodeNumber log = make_file(root, "log");
  NACRE_ASSERT_OK(allocate(log, 0, log_size));
  NACRE_ASSERT_OK(sync(log));
  fill("filler");
  std::string content(log_size, '\0');
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 400; ++i) {
      const std::size_t size = i % 7 == 0 ? 200'000 : 8192;
      const std::uint64_t at = random() % (log_size - size);
      const std::uint64_t seed = random();
      SCOPED_TRACE(testing::Message() << "round " << round << ", write " << i);
      NACRE_ASSERT_OK(write_noise(log, at, size, seed, i % 2 == 0));
      content.replace(at, size, noise(size, seed));
      if (i % 3 == 0) NACRE_ASSERT_OK(sync(log));
    }
    NACRE_ASSERT_OK(sync(log));
    EXPECT_EQ(available(), 0u);
    EXPECT_TRUE(read(log) == content);
    if (round == 0) {
      remount();
    } else {
      lose_power(1);
    }
    log = find(root, "log");
    EXPECT_TRUE(read(log) == content);
    const InodeNumber other = make_file(root, fmt::format("more{}", round));
    EXPECT_CODE(no_space, write_noise(other, 0, mebibyte, 1));
  }
}

// Bytes that the kernel took from programs wait in memory on a full disk, and are tried again with
// each commit: they must not get what is set aside.
TEST_F(VolumeReserved, space_is_not_for_what_waits_in_memory) {
  constexpr std::uint64_t log_size = 6 * mebibyte;
  const InodeNumber log = make_file(root, "log");
  NACRE_ASSERT_OK(allocate(log, 0, log_size));
  fill("filler");
  const InodeNumber waiting = make_file(root, "waiting");
  for (std::uint64_t at = 0; at < 3 * mebibyte; at += 64u << 10)
    static_cast<void>(write_noise(waiting, at, 64u << 10, at, true));
  for (int i = 0; i < 5; ++i) {
    EXPECT_CODE(no_space, sync(waiting));
    for (std::uint64_t at = 0; at < log_size; at += mebibyte)
      NACRE_ASSERT_OK(write_noise(log, at, mebibyte, at + static_cast<std::uint64_t>(i), true));
    NACRE_ASSERT_OK(sync(log));
  }
  NACRE_ASSERT_OK(volume().unlink(root, "waiting"));
  volume().forget(waiting, 1);
}

// What was reckoned chunk by chunk is what is left when all is given back.
TEST_F(VolumeReserved, space_is_reckoned_right_through_random_changes) {
  std::mt19937_64 random(std::random_device{}());
  const auto seed = random();
  random.seed(seed);
  SCOPED_TRACE(seed);
  constexpr std::uint64_t size_max = 4 * mebibyte;
  const InodeNumber file = make_file(root, "f");
  for (int i = 0; i < 600; ++i) {
    const std::uint64_t at = random() % size_max;
    const std::uint64_t size = 1 + random() % (i % 5 == 0 ? 400'000 : 9000);
    switch (random() % 9) {
      case 0:
        NACRE_ASSERT_OK(allocate(file, at, size * 4));
        break;
      case 1:
        NACRE_ASSERT_OK(allocate(file, at, size * 4, AllocateMode::keep_size));
        break;
      case 2:
        NACRE_ASSERT_OK(allocate(file, at, size, AllocateMode::punch_hole));
        break;
      case 3:
        NACRE_ASSERT_OK(allocate(file, at, size, AllocateMode::zero_keep_size));
        break;
      case 4:
        if (i % 4 == 0) {
          NACRE_ASSERT_OK(volume().change_attributes(file, {.size = at}));
        }
        break;
      case 5:
        NACRE_ASSERT_OK(sync(file));
        break;
      case 6:
        if (i % 3 == 0) {
          NACRE_ASSERT_OK(mounted().compact(fs::CompactionGoal::everything, {}));
        }
        break;
      default:
        NACRE_ASSERT_OK(write_noise(file, at, size, random()));
    }
    if (i % 150 == 149) {
      NACRE_ASSERT_OK(volume().sync_all());
      const std::uint64_t shown = shown_bytes(file);
      remount();
      EXPECT_EQ(shown_bytes(find(root, "f")), shown);
    }
  }
  NACRE_ASSERT_OK(allocate(file, 0, 8 * size_max, AllocateMode::punch_hole));
  NACRE_ASSERT_OK(volume().change_attributes(file, {.size = 0}));
  EXPECT_EQ(shown_bytes(file), 0u);
  NACRE_ASSERT_OK(mounted().compact(fs::CompactionGoal::everything, {}));
  // As on a volume that never set anything aside: all that can be is, and no more.
  const std::uint64_t room = available();
  const InodeNumber other = make_file(root, "other");
  NACRE_ASSERT_OK(allocate(other, 0, room / 2));
  EXPECT_LE(available() + room / 2, room);
  expect_near(room, available() + room / 2 + room / 32 + 4 * mebibyte);
}

}  // namespace
}  // namespace nacre::tests
