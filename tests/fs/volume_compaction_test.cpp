// SPDX-License-Identifier: Apache-2.0
// Compaction: how much space it frees; that content, caches and checks stay right; and that a crash
// at any moment of it leaves the old place of a record or the new one.
#include <atomic>
#include <random>
#include <thread>

#include <fmt/format.h>

#include "fs/store/segment_table.h"
#include "tests/fs/compaction_fixture.h"
#include "tests/fs/table_checker.h"
#include "tests/support/patience.h"

namespace nacre::tests {
namespace {

using fs::CompactionGoal;
using fs::InodeNumber;

TEST_F(VolumeCompaction, gives_back_what_is_dead_and_keeps_what_is_live) {
  make_holey_file("a", 64, 4);
  make_holey_file("b", 64, 7);
  const auto before = segments();
  ASSERT_GT(before.stored_bytes, 17 * before.live_bytes / 10);
  const auto report = compact();
  const auto after = segments();
  EXPECT_EQ(after.live_bytes, before.live_bytes);
  EXPECT_LT(after.stored_bytes, 11 * after.live_bytes / 10);
  EXPECT_EQ(report.freed_bytes, before.stored_bytes - after.stored_bytes);
  EXPECT_EQ(report.moved_bytes, after.moved_bytes);
  EXPECT_GT(report.segment_count, 0u);
  EXPECT_EQ(report.immovable_count, 0u);
  expect_contents();
  std::uint64_t on_disk = 0;
  for (const auto& path : backing_->files()) {
    if (path.starts_with("segments/")) on_disk += backing_->load(path)->size();
  }
  EXPECT_EQ(on_disk, after.stored_bytes);
  remount();
  expect_contents();
  unmount();
  check_tables(backing_, chunk_size, true);
  expect_clean();
  expect_clean_scrub();
}

TEST_F(VolumeCompaction, does_nothing_where_nothing_is_worth_it) {
  const InodeNumber file = make_file(root, "f");
  write(file, 0, noise(64 * chunk_size, 1));
  NACRE_EXPECT_OK(volume().sync_all());
  compact();  // closes the segments that were being filled
  const auto before = segments();
  const auto report = compact();
  EXPECT_EQ(report.segment_count, 0u);
  EXPECT_EQ(report.freed_bytes, 0u);
  EXPECT_EQ(segments().stored_bytes, before.stored_bytes);
  EXPECT_EQ(segments().moved_bytes, before.moved_bytes);
}

TEST_F(VolumeCompaction, moves_patches_and_records_of_earlier_sessions_unchanged) {
  const InodeNumber file = make_holey_file("f", 64, 8);
  std::string& content = contents_[file];
  for (std::size_t chunk = 0; chunk < 64; chunk += 8) {
    write(file, chunk * chunk_size + 10, "a patch");
    content.replace(chunk * chunk_size + 10, 7, "a patch");
  }
  NACRE_EXPECT_OK(volume().sync_all());
  remount();
  contents_ = {{find(root, "f"), content}};
  compact();
  expect_contents();
  remount();
  expect_contents();
  unmount();
  expect_clean();
}

TEST_F(VolumeCompaction, keeps_the_chunk_cache_warm) {
  const InodeNumber file = make_holey_file("f", 32, 4);
  read(file);
  const auto before = mounted().stats();
  ASSERT_GT(compact().moved_bytes, 0u);
  expect_contents();
  const auto after = mounted().stats();
  EXPECT_EQ(after.cache_misses, before.cache_misses);
  EXPECT_GT(after.cache_hits, before.cache_hits);
  EXPECT_EQ(file.value, contents_.begin()->first.value);
}

TEST_F(VolumeCompaction, small_synchronous_writes_move_to_segments) {
  const InodeNumber file = make_holey_file("f", 8, 2);
  std::string& content = contents_[file];
  for (int i = 0; i < 20; ++i) {
    const std::size_t at = static_cast<std::size_t>(i) * 1500;
    write(file, at, "inlined");
    NACRE_EXPECT_OK(sync(file));
    content.replace(at, 7, "inlined");
  }
  // Many patches in one chunk are merged into its base.
  for (int i = 0; i < 12; ++i) {
    const std::size_t at = static_cast<std::size_t>(i) * 100;
    write(file, at, "more");
    NACRE_EXPECT_OK(sync(file));
    content.replace(at, 4, "more");
  }
  compact();
  expect_contents();
  remount();
  expect_contents();
  unmount();
  EXPECT_EQ(count_rows()[metadata::Table::inlined], 0u);
  check_tables(backing_, chunk_size, true);
  expect_clean();
}

TEST_F(VolumeCompaction, a_damaged_record_stays_and_is_counted_once) {
  const InodeNumber file = make_holey_file("f", 64, 4);
  unmount();
  // Chunk 0 was never overwritten: its record is the first of its segment and is live.
  std::string path;
  {
    auto database = metadata::Database::open(backing_, test_keys(), {.read_only = true});
    NACRE_ASSERT_OK(database);
    const auto value =
        (*database)->get(metadata::Table::chunks, metadata::chunk_key(file, fs::ChunkIndex{0}));
    ASSERT_TRUE(value && *value);
    const auto row = metadata::decode_chunk_map_row(**value);
    ASSERT_TRUE(row && row->chunk && row->chunk->base);
    const auto location = row->chunk->base->location;
    path = fs::segment_path(location.segment);
    auto bytes = backing_->load(path);
    ASSERT_TRUE(bytes);
    bytes->at(location.offset + 100) ^= 1;
    backing_->store(path, *bytes);
  }
  mount();
  const auto report = compact();
  EXPECT_EQ(report.immovable_count, 1u);
  EXPECT_EQ(segments().immovable_count, 1u);
  const auto moved = segments().moved_bytes;
  EXPECT_EQ(compact().immovable_count, 0u) << "it is tried once";
  EXPECT_EQ(segments().moved_bytes, moved);
  EXPECT_TRUE(backing_->load(path));
  // The neighbours of the damaged record were moved, and the record is still known to be damaged.
  const InodeNumber found = find(root, "f");
  Bytes out(chunk_size);
  EXPECT_CODE(corrupt, volume().read(found, 0, out));
  const auto rest = volume().read(found, 4 * chunk_size, out);
  NACRE_ASSERT_OK(rest);
  EXPECT_TRUE(as_text(out) == std::string_view(contents_[file]).substr(4 * chunk_size, chunk_size));
}

// In a damaged volume, a segment counts records as live that no row names.
TEST_F(VolumeCompaction, live_bytes_that_nobody_names_are_not_chased) {
  const InodeNumber file = make_holey_file("f", 64, 4);
  unmount();
  {
    auto database = metadata::Database::open(backing_, test_keys(), {});
    NACRE_ASSERT_OK(database);
    for (std::uint64_t chunk = 0; chunk < 64; chunk += 4)
      (*database)->erase(metadata::Table::chunks, metadata::chunk_key(file, fs::ChunkIndex{chunk}));
    ASSERT_TRUE((*database)->freeze());
    NACRE_ASSERT_OK((*database)->commit_frozen(true));
    NACRE_ASSERT_OK((*database)->close());
  }
  options_.compaction.open_dead_bytes_min = chunk_size;
  mount();
  EXPECT_GT(compact().segment_count, 0u);
  EXPECT_EQ(segments().reclaimable_bytes, 0u);
  const std::uint64_t segment_count = segments().segment_count;
  EXPECT_EQ(compact().segment_count, 0u) << "what cannot be emptied is tried again";
  // Nor does compaction close the segment that is being filled again and again because of those
  // bytes.
  for (int i = 0; i < 8; ++i) {
    write(make_file(root, std::to_string(i)), 0, noise(chunk_size, 1));
    NACRE_EXPECT_OK(volume().sync_all());
    EXPECT_EQ(compact(CompactionGoal::space_ratio).segment_count, 0u);
  }
  EXPECT_LE(segments().segment_count, segment_count + 1);
}

// The only thing left to do is to remove a segment that no row names. Compaction makes a commit for
// that alone.
TEST_F(VolumeCompaction, gives_back_the_last_segment_though_nobody_changes_anything_more) {
  unmount();
  options_.background_compaction = true;
  options_.commit_interval_ms = 20;
  options_.compaction.open_dead_bytes_min = chunk_size;
  mount();
  const auto before = segments();  // that of a checkpoint
  const InodeNumber file = make_file(root, "f");
  write(file, 0, noise(8 * chunk_size, 1));
  NACRE_EXPECT_OK(volume().sync_all());
  NACRE_EXPECT_OK(volume().unlink(root, "f"));
  volume().forget(file, 1);
  const auto end = std::chrono::steady_clock::now() + patience;
  while (segments().segment_count > before.segment_count && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(segments().segment_count, before.segment_count);
  EXPECT_EQ(segments().stored_bytes, before.stored_bytes);
}

TEST_F(VolumeCompaction, no_space_stops_it_and_changes_nothing) {
  make_holey_file("f", 64, 4);
  const auto before = segments();
  backing_->inject(
      {.operations = change_write, .path_part = "segments/", .code = ErrorCode::no_space});
  EXPECT_CODE(no_space, mounted().compact(CompactionGoal::everything, {}));
  EXPECT_EQ(mounted().stats().health, "ok");
  backing_->clear_failures();
  expect_contents();
  compact();
  EXPECT_LT(segments().stored_bytes, before.stored_bytes);
  expect_contents();
}

// The disk is completely full, and a third of each segment is dead. The room that compaction needs
// to begin is reserved, and every segment that it removes frees more.
TEST_F(VolumeCompaction, goes_on_where_writers_have_filled_the_disk) {
  mount_on_small_disk();
  std::vector<std::string> names;
  Result<> written;
  for (int i = 0; written && i < 10'000; ++i) {
    names.push_back(std::to_string(i));
    const InodeNumber file = make_file(root, names.back());
    written = volume().write(file, 0, as_bytes(noise(8 * chunk_size, 1)), {});
    volume().forget(file, 1);
    if (i % 16 == 0) NACRE_EXPECT_OK(volume().sync_all());
  }
  EXPECT_CODE(no_space, written);
  NACRE_EXPECT_OK(volume().sync_all());
  const auto full = segments();
  for (std::size_t i = 0; i < names.size(); i += 3)
    NACRE_EXPECT_OK(volume().unlink(root, names[i]));
  compact();
  EXPECT_LE(segments().stored_bytes, 11 * segments().live_bytes / 10);
  EXPECT_LT(segments().live_bytes, 3 * full.live_bytes / 4);
  NACRE_EXPECT_OK(volume().write(find(root, names[1]), 0, as_bytes(noise(chunk_size, 2)), {}));
}

// A sixth of each segment is dead. The bound allows that, but the disk is full.
TEST_F(VolumeCompaction, what_is_deleted_makes_room_on_a_full_disk_although_the_bound_is_kept) {
  mount_on_small_disk();
  std::vector<std::string> names;
  const auto fill = [&] {
    Result<> written;
    while (written && names.size() < 10'000) {
      names.push_back(std::to_string(names.size()));
      const InodeNumber file = make_file(root, names.back());
      written = volume().write(file, 0, as_bytes(noise(8 * chunk_size, 1)), {});
      volume().forget(file, 1);
      if (names.size() % 16 == 0) NACRE_EXPECT_OK(volume().sync_all());
    }
    EXPECT_CODE(no_space, written);
    NACRE_EXPECT_OK(volume().sync_all());
  };
  fill();
  const std::size_t count = names.size();
  for (std::size_t i = 0; i < count; i += 6)
    NACRE_EXPECT_OK(volume().unlink(root, names[i]));
  NACRE_EXPECT_OK(volume().sync_all());
  ASSERT_LE(segments().stored_bytes, 5 * segments().live_bytes / 4);
  ASSERT_GT(segments().stored_bytes, 8 * segments().live_bytes / 7);
  compact(CompactionGoal::space_ratio);
  EXPECT_GE(volume().space().value().available_bytes, small_disk_bytes / 16);
  // New writes use up the freed space, and more comes until few bytes are dead.
  for (int i = 0; i < 4; ++i) {
    fill();
    compact(CompactionGoal::space_ratio);
  }
  EXPECT_GE(names.size(), count + count / 8);
  EXPECT_LE(segments().stored_bytes, 11 * segments().live_bytes / 10);
}

TEST_F(VolumeCompaction, ends_when_the_volume_closes) {
  make_holey_file("f", 64, 4);
  mounted().compactor().stop();
  EXPECT_CODE(cancelled, mounted().compact(CompactionGoal::everything, {}));
}

TEST_F(VolumeCompaction, works_in_the_background) {
  unmount();
  options_.background_compaction = true;
  options_.commit_interval_ms = 20;
  mount();
  make_holey_file("f", 256, 4);
  const auto end = std::chrono::steady_clock::now() + patience;
  while (segments().stored_bytes > 13 * segments().live_bytes / 10 &&
         std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_LE(segments().stored_bytes, 13 * segments().live_bytes / 10);
  EXPECT_GT(mounted().stats().compaction.segment_count, 0u);
  expect_contents();
}

// A reader that looked up a row just before its record moved finds the new place, however often
// that happens: no EIO.
TEST_F(VolumeCompaction, readers_and_writers_beside_it_see_right_content) {
  unmount();
  options_.cache_budget_bytes = 1u << 16;  // so that readers go to the segments
  mount();
  constexpr std::size_t count = 64;
  const InodeNumber file = make_file(root, "f");
  const auto chunk_of = [](std::size_t chunk, char version) {
    return std::string(chunk_size, static_cast<char>('a' + chunk % 20)) + version;
  };
  for (std::size_t chunk = 0; chunk < count; ++chunk)
    write(file, chunk * chunk_size, chunk_of(chunk, '0').substr(1));
  NACRE_EXPECT_OK(volume().sync_all());
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (unsigned reader = 0; reader < 3; ++reader) {
    threads.emplace_back([&, reader] {
      std::mt19937 random(reader);
      Bytes out(chunk_size);
      while (!stop) {
        const std::size_t chunk = random() % count;
        const auto got = volume().read(file, chunk * chunk_size, out);
        NACRE_EXPECT_OK(got);
        // All but the last byte of a chunk never change.
        EXPECT_TRUE(as_text(out).substr(0, chunk_size - 1) ==
                    chunk_of(chunk, '0').substr(0, chunk_size - 1));
      }
    });
  }
  threads.emplace_back([&] {
    std::mt19937 random(99);
    for (int i = 0; !stop; ++i) {
      const std::size_t chunk = random() % count;
      write(file, chunk * chunk_size, chunk_of(chunk, static_cast<char>('0' + i % 10)).substr(1));
      if (i % 16 == 0) NACRE_EXPECT_OK(volume().sync_all());
    }
  });
  while (segments().moved_records < 500 && !HasFailure())
    compact();
  stop = true;
  for (std::thread& thread : threads)
    thread.join();
  unmount();
  check_tables(backing_, chunk_size, true);
}

// Files come and go while their records move.
TEST_F(VolumeCompaction, deleted_files_leave_nothing_behind) {
  std::atomic<bool> stop{false};
  std::thread deleter([&] {
    for (int i = 0; !stop; ++i) {
      const InodeNumber file = make_file(root, "f");
      write(file, 0, noise(20 * chunk_size, static_cast<std::uint32_t>(i)));
      NACRE_EXPECT_OK(volume().sync_all());
      write(file, 0, noise(10 * chunk_size, static_cast<std::uint32_t>(i + 1)));
      NACRE_EXPECT_OK(volume().sync_all());
      NACRE_EXPECT_OK(volume().unlink(root, "f"));
      volume().forget(file, 1);
    }
  });
  while (segments().moved_records < 100 && !HasFailure())
    compact();
  stop = true;
  deleter.join();
  NACRE_EXPECT_OK(volume().sync_all());
  compact();
  EXPECT_EQ(segments().live_bytes, 0u);
  unmount();
  EXPECT_EQ(count_rows()[metadata::Table::chunks], 0u);
  check_tables(backing_, chunk_size, true);
}

// Power is lost at every change that compaction makes on the disk, in turn.
TEST_F(VolumeCompaction, a_crash_at_any_change_leaves_the_old_place_or_the_new) {
  make_holey_file("f", 64, 3);
  const std::string content = contents_.begin()->second;
  unmount();
  const auto formatted = backing_;
  const auto run = [&](std::uint64_t stop_at) {
    backing_ = formatted->process_kill();
    mount();
    const std::uint64_t first = backing_->change_count();
    if (stop_at < ~0ull) backing_->fail_at(first + stop_at);
    const auto done = mounted().compact(CompactionGoal::everything, {});
    if (stop_at == ~0ull) NACRE_EXPECT_OK(done);
    return backing_->change_count() - first;
  };
  const std::uint64_t changes = run(~0ull);
  unmount();
  ASSERT_GT(changes, 12u);
  for (std::uint64_t stop_at = 0; stop_at < changes; ++stop_at) {
    run(stop_at);
    for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{1}, 2 + stop_at}) {
      SCOPED_TRACE(fmt::format("stopped at {} of {}, seed {}", stop_at, changes, seed));
      const auto running = backing_;
      auto crashed = std::move(volume_);
      backing_ = running->power_loss(seed);
      check_tables(backing_, chunk_size, false);
      expect_clean();
      mount();
      EXPECT_TRUE(read(find(root, "f")) == content);
      compact();
      EXPECT_TRUE(read(find(root, "f")) == content);
      unmount();
      check_tables(backing_, chunk_size, true);
      expect_clean_scrub();
      backing_ = running;
      volume_ = std::move(crashed);
    }
    volume_.reset();
  }
}

// Small synchronous writes lie over a chunk that cannot be read any more. They cannot be merged,
// but everything else is compacted all the same.
TEST_F(VolumeCompaction, a_bad_sector_under_small_writes_stops_nothing_else) {
  const InodeNumber bad = make_file(root, "bad");
  write(bad, 0, noise(chunk_size, 1));
  NACRE_ASSERT_OK(volume().sync_all());
  remount();  // which closes its segment, the first
  const InodeNumber patched = find(root, "bad");
  for (std::uint64_t i = 0; i < 12; ++i) {
    write(patched, 10 * i, "x");
    NACRE_ASSERT_OK(sync(patched));
  }
  make_holey_file("other", 64, 4);
  remount();
  backing_->inject({.operations = operation_read,
                    .path_part = "segments/000000000001.seg",
                    .code = ErrorCode::io});
  EXPECT_GT(compact().freed_bytes, 0u);
  backing_->clear_failures();
  compact();
  EXPECT_EQ(read(find(root, "bad")).substr(0, 1), "x");
  expect_clean();
}

// Each fsync makes durable all that a segment has: when it is full, nothing of it is waiting.
TEST_F(VolumeCompaction, segments_filled_by_syncs_do_not_stay_open) {
  const InodeNumber file = make_file(root, "f");
  for (std::uint64_t i = 0; i < 700; ++i) {
    write(file, i * 14 * chunk_size, noise(14 * chunk_size, static_cast<std::uint32_t>(i)));
    NACRE_ASSERT_OK(sync(file));
  }
  EXPECT_GT(segments().segment_count, 650u);
  EXPECT_LT(backing_->open_file_count(), 600u);
}

// A segment that a commit dropped before it was ever synced, and whose removal power loss undid.
TEST_F(VolumeCompaction, a_dropped_segment_that_comes_back_torn_is_removed) {
  write(make_file(root, "f"), 0, noise(chunk_size, 1));
  NACRE_ASSERT_OK(volume().sync_all());
  remount();  // which closes the segment
  NACRE_ASSERT_OK(volume().unlink(root, "f"));
  NACRE_ASSERT_OK(volume().sync_all());
  unmount();
  const std::string path = "segments/000000000001.seg";
  ASSERT_FALSE(backing_->load(path)) << "a commit dropped it";
  for (const std::size_t size : {0u, 40u, 64u, 5000u}) {
    backing_->store(path, Bytes(size, Byte{7}));
    expect_clean();
    mount();
    unmount();
    EXPECT_FALSE(backing_->load(path));
  }
  mount();
}

}  // namespace
}  // namespace nacre::tests
