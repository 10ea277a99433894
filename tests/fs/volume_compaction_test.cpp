// SPDX-License-Identifier: Apache-2.0
// Compaction: what it gives back and what that costs, in counts; that content, caches and checks do
// not notice; and that a crash at any moment of it leaves the old place of a record or the new one.
#include <atomic>
#include <random>
#include <thread>

#include <fmt/format.h>

#include "fs/maintenance/checker.h"
#include "fs/maintenance/scrub.h"
#include "fs/store/segment_table.h"
#include "tests/fs/table_checker.h"
#include "tests/fs/volume_fixture.h"

namespace nacre::tests {
namespace {

using fs::CompactionGoal;
using fs::InodeNumber;

// Bytes that no codec makes smaller.
std::string noise(std::size_t size, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::string text(size, '\0');
  for (char& c : text)
    c = static_cast<char>(random());
  return text;
}

class VolumeCompaction : public VolumeTest {
 protected:
  static constexpr std::uint32_t chunk_size = 4u << 10;

  void SetUp() override {
    options_.background_compaction = false;  // tests compact when they want to
    options_.store.chunk_size_bytes = chunk_size;
    options_.store.segment_size_bytes = 64u << 10;
    options_.store.codec = engine::Codec::none;
    VolumeTest::SetUp();
  }

  fs::CompactionReport compact(CompactionGoal goal = CompactionGoal::everything) {
    const auto report = volume().compact(goal, {});
    NACRE_EXPECT_OK(report);
    return report.value_or(fs::CompactionReport{});
  }
  fs::SegmentStats segments() { return volume().stats().segments; }

  // A file of count chunks of which only every step-th is still what was written first.
  InodeNumber make_holey_file(std::string_view name, std::size_t count, std::size_t step) {
    const InodeNumber file = make_file(root, name);
    std::string content = noise(count * chunk_size, 1);
    // In pieces: one flush goes into one segment.
    constexpr std::size_t piece = 8 * chunk_size;
    for (std::size_t at = 0; at < content.size(); at += piece) {
      write(file, at, std::string_view(content).substr(at, piece));
      NACRE_EXPECT_OK(volume().sync_all());
    }
    for (std::size_t chunk = 0; chunk < count; ++chunk) {
      if (chunk % step == 0) continue;
      const std::string fresh = noise(chunk_size, static_cast<std::uint32_t>(chunk + 100));
      write(file, chunk * chunk_size, fresh);
      content.replace(chunk * chunk_size, chunk_size, fresh);
    }
    NACRE_EXPECT_OK(volume().sync_all());
    contents_[file] = content;
    return file;
  }
  void expect_contents() {
    for (const auto& [file, content] : contents_)
      EXPECT_TRUE(read(file) == content) << "inode " << file.value;
  }
  // The check with the key; the volume is not mounted.
  void expect_clean() {
    metadata::VolumeKeys keys;
    keys.keys = test_keys();
    keys.superblock.chunk_size_bytes = chunk_size;
    keys.keyring.generation = 1;
    auto engine = engine::Engine::create({.thread_count = 2});
    NACRE_ASSERT_OK(engine);
    const auto report =
        fs::check_volume(backing_, keys, **engine, {.scrub = true, .deep = true}, {});
    NACRE_ASSERT_OK(report);
    for (const auto& finding : report->findings.findings()) {
      // The fixture has neither superblock nor keyring.
      if (finding.file.empty() || finding.file.starts_with("segments")) {
        EXPECT_NE(finding.severity, fs::Severity::error) << finding.file << ": " << finding.what;
      }
    }
  }

  // The check without a key. Right after a crash it cannot tell a segment that was just being made
  // from a damaged one.
  void expect_clean_scrub() {
    fs::FindingList findings;
    fs::ScrubCounts counts;
    NACRE_EXPECT_OK(fs::scrub_segments(*backing_, std::nullopt, counts, findings, {}));
    EXPECT_EQ(findings.error_count(), 0u);
  }

  std::map<InodeNumber, std::string> contents_;
};

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
  compact();  // closes what was being filled
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
  const auto before = volume().stats();
  ASSERT_GT(compact().moved_bytes, 0u);
  expect_contents();
  const auto after = volume().stats();
  EXPECT_EQ(after.cache_misses, before.cache_misses);
  EXPECT_GT(after.cache_hits, before.cache_hits);
  EXPECT_EQ(file.value, contents_.begin()->first.value);
}

// Steady state of a full volume. Bytes appended for each byte of payload, and stored for each live
// one, once the first writes are forgotten.
struct Costs {
  double amplification = 0, space_max = 0;
};
class SteadyState : public VolumeCompaction {
 protected:
  static constexpr std::size_t chunk_count = 2048;

  Costs overwrite(const std::function<std::size_t(std::mt19937&)>& pick) {
    const InodeNumber file = make_file(root, "f");
    write(file, 0, noise(chunk_count * chunk_size, 1));
    NACRE_EXPECT_OK(volume().sync_all());
    std::mt19937 random(7);
    const std::string fresh = noise(chunk_size, 2);
    fs::SegmentStats warm;
    Costs costs;
    constexpr std::size_t rounds = 5 * chunk_count / 16;
    for (std::size_t round = 0; round < rounds; ++round) {
      if (round == rounds / 2) warm = segments();
      for (int i = 0; i < 16; ++i)
        write(file, pick(random) * chunk_size, fresh);
      NACRE_EXPECT_OK(volume().sync_all());
      compact(CompactionGoal::space_ratio);
      const auto now = segments();
      if (warm.stored_bytes > 0) {
        costs.space_max = std::max(costs.space_max, static_cast<double>(now.stored_bytes) /
                                                        static_cast<double>(now.live_bytes));
      }
    }
    const auto end = segments();
    costs.amplification = static_cast<double>(end.appended_bytes - warm.appended_bytes +
                                              end.moved_bytes - warm.moved_bytes) /
                          static_cast<double>(end.plain_bytes - warm.plain_bytes);
    std::cout << fmt::format("write amplification {:.2f}, space at most {:.3f} of live\n",
                             costs.amplification, costs.space_max);
    return costs;
  }
};

TEST_F(SteadyState, random_overwrites_stay_within_space_and_amplification) {
  const Costs costs = overwrite([](std::mt19937& random) { return random() % chunk_count; });
  EXPECT_LE(costs.space_max, 1.25 + 0.05);
  EXPECT_LE(costs.amplification, 2.5);
}

TEST_F(SteadyState, overwrites_of_a_hot_tenth_cost_less) {
  const Costs costs = overwrite([](std::mt19937& random) {
    return random() % 10 < 9 ? random() % (chunk_count / 10) : random() % chunk_count;
  });
  EXPECT_LE(costs.space_max, 1.25 + 0.05);
  EXPECT_LE(costs.amplification, 2.0);
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
  // Many in one chunk are merged into its base.
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
  // Its neighbours were moved all the same, and it is still known to be damaged.
  const InodeNumber found = find(root, "f");
  Bytes out(chunk_size);
  EXPECT_CODE(corrupt, volume().read(found, 0, out));
  const auto rest = volume().read(found, 4 * chunk_size, out);
  NACRE_ASSERT_OK(rest);
  EXPECT_TRUE(as_text(out) == std::string_view(contents_[file]).substr(4 * chunk_size, chunk_size));
}

TEST_F(VolumeCompaction, no_space_stops_it_and_changes_nothing) {
  make_holey_file("f", 64, 4);
  const auto before = segments();
  backing_->inject(
      {.operations = change_write, .path_part = "segments/", .code = ErrorCode::no_space});
  EXPECT_CODE(no_space, volume().compact(CompactionGoal::everything, {}));
  EXPECT_EQ(volume().stats().health, "ok");
  backing_->clear_failures();
  expect_contents();
  compact();
  EXPECT_LT(segments().stored_bytes, before.stored_bytes);
  expect_contents();
}

TEST_F(VolumeCompaction, ends_when_the_volume_closes) {
  make_holey_file("f", 64, 4);
  volume().stop_compaction();
  EXPECT_CODE(cancelled, volume().compact(CompactionGoal::everything, {}));
}

TEST_F(VolumeCompaction, works_in_the_background) {
  unmount();
  options_.background_compaction = true;
  options_.commit_interval_ms = 20;
  mount();
  make_holey_file("f", 256, 4);
  for (int waited = 0; waited < 60'000 && segments().stored_bytes > 13 * segments().live_bytes / 10;
       waited += 10) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_LE(segments().stored_bytes, 13 * segments().live_bytes / 10);
  EXPECT_GT(volume().stats().compaction.segment_count, 0u);
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
    const auto done = volume().compact(CompactionGoal::everything, {});
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

}  // namespace
}  // namespace nacre::tests
