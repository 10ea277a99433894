// SPDX-License-Identifier: Apache-2.0
// Compaction while programs use the volume: it keeps to its rate, holds up no program while the
// disk is slow for it, and merges what many small writes leave.
#include <atomic>
#include <future>
#include <latch>
#include <set>
#include <thread>

#include "tests/fs/compaction_fixture.h"
#include "tests/support/patience.h"

namespace nacre::tests {
namespace {

using fs::CompactionGoal;
using fs::InodeNumber;
using metadata::ChunkRow;

class CompactionManners : public VolumeCompaction {
 protected:
  static constexpr std::size_t chunk_count = 512;

  // A file of which of_ten tenths of the records were overwritten, evenly over all segments.
  void make_dead(std::size_t of_ten) {
    const InodeNumber file = make_file(root, "f");
    constexpr std::size_t piece = 8 * chunk_size;
    for (std::size_t chunk = 0; chunk < chunk_count; chunk += 8) {
      write(file, chunk * chunk_size, noise(piece, 1));
      NACRE_EXPECT_OK(volume().sync_all());
    }
    overwrite(file, 0, of_ten);
  }
  void overwrite(InodeNumber file, std::size_t from_ten, std::size_t to_ten) {
    for (std::size_t chunk = 0; chunk < chunk_count; ++chunk) {
      if (chunk % 10 < from_ten || chunk % 10 >= to_ten) continue;
      write(file, chunk * chunk_size, noise(chunk_size, 2));
    }
    NACRE_EXPECT_OK(volume().sync_all());
  }
  // Compaction works from then on.
  InodeNumber mount_with_compaction() {
    unmount();
    options_.background_compaction = true;
    options_.compaction.rate_bytes_per_second = 1;
    options_.cache_budget_bytes = 1u << 16;  // readers go to the segments
    options_.read_ahead_bytes_max = 0;
    mount();
    return find(root, "f");
  }
  double dead_share() {
    return static_cast<double>(segments().movable_dead_bytes) /
           static_cast<double>(segments().live_bytes);
  }
  // A thread that reads all the time. Between any two pieces of its work compaction sees foreground
  // work, however seldom the test's own thread runs.
  class Reader {
   public:
    Reader(fs::Volume& volume, MemoryBacking& backing, InodeNumber file)
        : backing_(backing), thread_([this, &volume, file] {
            Bytes out(chunk_size);
            for (std::size_t chunk = 0; !stop_; chunk = (chunk + 37) % chunk_count) {
              NACRE_EXPECT_OK(volume.read(file, chunk * chunk_size, out));
              ++read_count_;
            }
          }) {
      backing_.watch([this](std::uint32_t operation, std::string_view path) {
        const bool is_other = std::this_thread::get_id() != thread_.get_id();
        if (operation == operation_read && is_other && path.starts_with("segments/")) wait_for(2);
      });
    }
    ~Reader() {
      backing_.watch({});
      stop_ = true;
      thread_.join();
    }
    void wait_for(std::uint64_t more) const {
      for (const std::uint64_t end = read_count_ + more; read_count_ < end && !stop_;)
        std::this_thread::yield();
    }

   private:
    MemoryBacking& backing_;
    std::atomic<bool> stop_{false};
    std::atomic<std::uint64_t> read_count_{0};
    std::thread thread_;
  };
  // The row of one chunk, of the volume that is unmounted.
  ChunkRow row_of(InodeNumber file, std::uint64_t chunk) {
    const auto database = metadata::Database::open(backing_, test_keys(), {.read_only = true});
    NACRE_EXPECT_OK(database);
    const auto value =
        (*database)->get(metadata::Table::chunks, metadata::chunk_key(file, fs::ChunkIndex{chunk}));
    const auto row = value && *value ? metadata::decode_chunk_map_row(**value)
                                     : tl::unexpected(Error{ErrorCode::missing, {}});
    EXPECT_TRUE(row && row->chunk) << "the chunk has no row";
    return row && row->chunk ? *row->chunk : ChunkRow{};
  }
  // A chunk whose row has as many patches as it may have.
  InodeNumber make_patched() {
    const InodeNumber file = make_file(root, "patched");
    patched_ = noise(chunk_size, 3);
    write(file, 0, patched_);
    NACRE_EXPECT_OK(volume().sync_all());
    for (std::size_t i = 0; i < metadata::patch_count_max; ++i) {
      const std::string text = fmt::format("{:02}", i);
      write(file, i * 100, text);
      patched_.replace(i * 100, text.size(), text);
      NACRE_EXPECT_OK(volume().sync_all());
    }
    return file;
  }
  // More rows than one look into the table reads.
  void make_many_rows() {
    const InodeNumber file = make_file(root, "many chunks");
    for (std::size_t chunk = 0; chunk < 5000; ++chunk)
      write(file, chunk * chunk_size, "x");
    NACRE_EXPECT_OK(volume().sync_all());
  }
  void expect_one_base(InodeNumber file) {
    const ChunkRow row = row_of(file, 0);
    EXPECT_TRUE(row.base);
    EXPECT_TRUE(row.patches.empty()) << row.patches.size() << " patches are left";
    expect_clean();
    mount();
    EXPECT_TRUE(read(find(root, "patched")) == patched_);
  }

  std::string patched_;
};

// At a rate of one byte a second, compaction does one piece of work and then sleeps for hours. The
// test compares counts, not times: however long the other work takes, nothing more is moved.
TEST_F(CompactionManners, keeps_to_its_rate_beside_others) {
  make_dead(2);  // within the bound
  const InodeNumber file = mount_with_compaction();
  const Reader reader(volume(), *backing_, file);
  overwrite(file, 2, 4);
  while (segments().moved_bytes == 0)
    std::this_thread::yield();
  reader.wait_for(20'000);
  // Without a pause only one batch is moved; here that is the rest of a segment.
  EXPECT_LE(segments().moved_bytes, options_.store.segment_size_bytes);
  EXPECT_GT(dead_share(), 0.3) << "it did all its work at a byte a second";
}

TEST_F(CompactionManners, knows_no_rate_when_nobody_else_is_there) {
  make_dead(4);
  ASSERT_GT(dead_share(), 0.3);
  mount_with_compaction();
  while (dead_share() > 0.25)
    std::this_thread::yield();
}

// Once there are more than twice the dead bytes that the bound allows, only the disk limits
// compaction, also during foreground work.
TEST_F(CompactionManners, knows_no_rate_far_past_the_bound) {
  make_dead(9);
  ASSERT_GT(dead_share(), 0.6);
  const InodeNumber file = mount_with_compaction();
  const Reader reader(volume(), *backing_, file);
  while (dead_share() > 0.5)
    std::this_thread::yield();
}

// The disk answers none of compaction's reads or writes of records. It answers all others. (The
// making of segment files is not held, since they are made one after the other for all threads.)
TEST_F(CompactionManners, holds_up_no_writer_while_the_disk_is_slow_for_it) {
  for (const std::uint32_t held : {+operation_read, +change_write}) {
    SCOPED_TRACE(testing::Message() << "held in operation " << held);
    contents_.clear();
    const InodeNumber file = make_holey_file(fmt::format("holey{}", held), 64, 4);
    std::promise<void> disk;
    const std::shared_future<void> answers = disk.get_future().share();
    std::latch is_held(1);
    std::atomic<bool> was_held{false};
    std::atomic<std::thread::id> compacting{};
    std::set<std::string, std::less<>> begun;  // files with a header; the compacting thread's own
    backing_->watch([&](std::uint32_t operation, std::string_view path) {
      if (std::this_thread::get_id() != compacting || operation != held ||
          !path.starts_with("segments/")) {
        return;
      }
      if (held == change_write && begun.emplace(path).second) return;
      if (!was_held.exchange(true)) is_held.count_down();
      answers.wait();
    });
    auto compaction = std::async(std::launch::async, [&] {
      compacting = std::this_thread::get_id();
      compact();
    });
    is_held.wait();
    auto others = std::async(std::launch::async, [&] {
      for (int i = 0; i < 50; ++i) {
        const InodeNumber other = make_file(root, "other");
        write(other, 0, noise(40 * chunk_size, 5));  // more than a segment
        NACRE_EXPECT_OK(sync(other));
        NACRE_EXPECT_OK(volume().rename(root, "other", root, "renamed", fs::RenameMode::replace));
        EXPECT_TRUE(read(other) == noise(40 * chunk_size, 5));
        NACRE_EXPECT_OK(volume().sync_all());
        NACRE_EXPECT_OK(volume().unlink(root, "renamed"));
        volume().forget(other, 1);
        // The very chunks that are being moved.
        const std::size_t chunk = static_cast<std::size_t>(i) % 64;
        const std::string fresh = noise(chunk_size, static_cast<std::uint32_t>(i));
        write(file, chunk * chunk_size, fresh);
        contents_[file].replace(chunk * chunk_size, chunk_size, fresh);
        NACRE_EXPECT_OK(sync(file));
      }
    });
    EXPECT_EQ(others.wait_for(patience), std::future_status::ready)
        << "writers wait for compaction";
    EXPECT_EQ(compaction.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
    disk.set_value();
    others.wait();
    compaction.wait();
    backing_->watch({});
    EXPECT_TRUE(was_held);
    expect_contents();
    compact();
    EXPECT_LT(segments().stored_bytes, 11 * segments().live_bytes / 10);
  }
  remount();
  unmount();
  expect_clean();
}

TEST_F(CompactionManners, a_chunk_takes_as_many_patches_as_its_row_holds) {
  const InodeNumber file = make_patched();
  unmount();
  const ChunkRow row = row_of(file, 0);
  EXPECT_TRUE(row.base);
  EXPECT_EQ(row.patches.size(), metadata::patch_count_max);
  mount();
  EXPECT_TRUE(read(find(root, "patched")) == patched_);
}

TEST_F(CompactionManners, one_patch_too_many_merges_them) {
  const InodeNumber file = make_patched();
  write(file, 50, "more");
  patched_.replace(50, 4, "more");
  NACRE_EXPECT_OK(volume().sync_all());
  unmount();
  expect_one_base(file);
}

TEST_F(CompactionManners, an_idle_volume_merges_patches) {
  unmount();
  options_.background_compaction = true;
  options_.compaction.idle_after = std::chrono::milliseconds(20);
  mount();
  const std::uint64_t before = segments().live_bytes;  // those of a checkpoint
  const InodeNumber file = make_patched();
  // Base and patches die, and with the commit they are counted so.
  while (segments().live_bytes >= before + 2u * chunk_size - 1024)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  unmount();
  expect_one_base(file);
}

TEST_F(CompactionManners, an_idle_volume_merges_what_an_earlier_mount_left) {
  const InodeNumber file = make_patched();
  remount();
  const std::uint64_t live = segments().live_bytes;
  unmount();
  options_.background_compaction = true;
  options_.compaction.idle_after = std::chrono::milliseconds(20);
  options_.commit_interval_ms = 20;
  mount();
  // The patches' records die.
  while (segments().live_bytes >= live)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  unmount();
  expect_one_base(file);
}

// Few patches, but a quarter of what they lie over.
TEST_F(CompactionManners, an_idle_volume_merges_large_patches) {
  unmount();
  options_.background_compaction = true;
  options_.compaction.idle_after = std::chrono::milliseconds(20);
  mount();
  compact();  // from here on only what is noted is looked at
  const InodeNumber file = make_file(root, "patched");
  patched_ = noise(chunk_size, 3);
  write(file, 0, patched_);
  NACRE_ASSERT_OK(volume().sync_all());
  const std::uint64_t before = segments().live_bytes;
  const std::string quarter = noise(chunk_size / 4, 4);
  write(file, 100, quarter);
  patched_.replace(100, quarter.size(), quarter);
  NACRE_ASSERT_OK(volume().sync_all());
  // The patch adds live bytes, until it is merged.
  while (segments().live_bytes > before)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  unmount();
  expect_one_base(file);
}

// Also small writes of an earlier mount, which only rows know of.
TEST_F(CompactionManners, an_idle_volume_moves_small_synchronous_writes_to_segments) {
  const InodeNumber file = make_file(root, "small writes");
  write(file, 0, noise(chunk_size, 1));
  NACRE_ASSERT_OK(volume().sync_all());
  for (std::uint64_t i = 0; i < 5; ++i) {
    write(file, 100 * i, "x");
    NACRE_ASSERT_OK(sync(file));
  }
  unmount();
  ASSERT_EQ(count_rows()[metadata::Table::inlined], 5u);
  options_.background_compaction = true;
  options_.compaction.idle_after = std::chrono::milliseconds(20);
  mount();
  const std::uint64_t before = segments().live_bytes;
  make_file(root, "a commit");
  NACRE_ASSERT_OK(volume().sync_all());
  while (segments().live_bytes < before + 5 * engine::record_size_bytes_min)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  unmount();
  EXPECT_EQ(count_rows()[metadata::Table::inlined], 0u);
  mount();
}

TEST_F(CompactionManners, a_trim_merges_patches) {
  const InodeNumber file = make_patched();
  compact();
  unmount();
  expect_one_base(file);
}

// Offline, nothing in memory knows of them; many rows lie before theirs.
TEST_F(CompactionManners, a_trim_merges_patches_of_an_earlier_mount) {
  make_many_rows();
  const InodeNumber file = make_patched();
  remount();
  compact();
  unmount();
  expect_one_base(file);
}

// Each backup closes the segments that are being filled, however little is in them.
class CompactionOfSmallSegments : public CompactionManners {
 protected:
  void SetUp() override {
    options_.compaction.small_segment_count_max = 20;
    CompactionManners::SetUp();
    unmount();
    options_.store.segment_size_bytes = 1u << 20;  // less than 64 KiB is small
    mount();
    before_ = segments();
  }
  void make_segments(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      const InodeNumber file = make_file(root, std::to_string(i));
      contents_[file] = noise(chunk_size, static_cast<std::uint32_t>(i));
      write(file, 0, contents_[file]);
      NACRE_EXPECT_OK(mounted().begin_backup());
    }
    NACRE_EXPECT_OK(volume().sync_all());
  }
  fs::SegmentStats before_;  // with a checkpoint
};

TEST_F(CompactionOfSmallSegments, joins_them_when_there_are_many) {
  make_segments(50);
  ASSERT_GE(segments().segment_count, 50u);
  const std::uint64_t live = segments().live_bytes - before_.live_bytes;
  compact();
  EXPECT_EQ(segments().segment_count, before_.segment_count + 1);
  EXPECT_EQ(segments().moved_bytes, live) << "each record once";
  expect_contents();
  unmount();
  expect_clean();
}

TEST_F(CompactionOfSmallSegments, leaves_few_alone) {
  make_segments(15);
  compact();
  EXPECT_EQ(segments().segment_count, before_.segment_count + 15);
  EXPECT_EQ(segments().moved_bytes, 0u);
  expect_contents();
}

TEST_F(CompactionOfSmallSegments, joins_them_on_an_idle_volume) {
  unmount();
  options_.background_compaction = true;
  options_.compaction.idle_after = std::chrono::milliseconds(20);
  options_.commit_interval_ms = 20;
  mount();
  make_segments(50);
  while (segments().segment_count > 20)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  expect_contents();
}

}  // namespace
}  // namespace nacre::tests
