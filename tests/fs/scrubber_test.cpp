// SPDX-License-Identifier: Apache-2.0
// The scrub of a mounted volume: what it finds and which files it names, that it goes on after a
// restart, and that it does not slow down other operations.
#include "fs/scrub/scrubber.h"

#include <atomic>
#include <random>
#include <thread>

#include "fs/check/finding.h"
#include "fs/check/record_index.h"
#include "fs/store/segment_table.h"
#include "metadata/format/checkpoint.h"
#include "tests/fs/compaction_fixture.h"
#include "tests/support/error_of.h"
#include "tests/support/patience.h"

namespace nacre::tests {
namespace {

using fs::ScrubCommand;
using metadata::DamageOwner;
using metadata::ScrubRow;
using metadata::ScrubState;
using namespace std::chrono_literals;

// Time that passes only while the scrubber waits, and a gate that holds it there.
class TestClock final : public fs::ScrubClock {
 public:
  Clock::time_point now() override {
    std::lock_guard lock(mutex_);
    return now_;
  }
  void wait(UniqueLock<Mutex>& lock, ConditionVariable& wake, Clock::duration time,
            const std::function<bool()>& is_over) override {
    {
      std::lock_guard own(mutex_);
      now_ += time;
      waited_ += time;
      ++wait_count_;
    }
    reached_.notify_all();
    if (user_) user_();
    // Held, until the test ends the pass or lets it go on.
    while (!is_over() && is_held()) {
      wake.wait_for(lock, 1ms);
    }
  }
  // From its count-th wait on, the scrubber is held.
  void hold_at(std::uint64_t count) { held_at_ = count; }
  void release() { held_at_ = UINT64_MAX; }
  void wait_until_held() {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(reached_.wait_for(lock, patience, [&] { return wait_count_ >= held_at_; }));
  }
  // Called in each wait. Only while nothing runs.
  void set_user(std::function<void()> user) { user_ = std::move(user); }
  Clock::duration waited() {
    std::lock_guard lock(mutex_);
    return waited_;
  }

 private:
  bool is_held() {
    std::lock_guard lock(mutex_);
    return wait_count_ >= held_at_;
  }
  std::mutex mutex_;
  std::condition_variable reached_;
  Clock::time_point now_{1h};
  Clock::duration waited_{0};
  std::uint64_t wait_count_ = 0;
  std::function<void()> user_;
  std::atomic<std::uint64_t> held_at_{UINT64_MAX};
};

class ScrubberTest : public VolumeCompaction {
 protected:
  void TearDown() override {
    scrubber_.reset();
    VolumeCompaction::TearDown();
  }
  fs::Scrubber& scrubber(std::chrono::milliseconds save_interval = 0ms) {
    if (!scrubber_) {
      scrubber_ = std::make_unique<fs::Scrubber>(
          mounted(), test_keys()->volume_id(),
          fs::ScrubberOptions{.save_interval = save_interval, .clock = clock_});
      scrubber_->start();
    }
    return *scrubber_;
  }
  void begin(std::optional<std::uint64_t> rate = 0) {
    NACRE_EXPECT_OK(scrubber().apply(ScrubCommand::begin, rate));
  }
  ScrubRow finish() {
    EXPECT_TRUE(scrubber().wait_until_idle(patience));
    const ScrubRow row = scrubber().status();
    EXPECT_EQ(to_string(row.state), to_string(ScrubState::finished)) << row.error;
    return row;
  }
  ScrubRow scrub() {
    begin();
    return finish();
  }
  // Kills the daemon, and mounts again with a scrubber.
  void kill() {
    auto after = backing_->process_kill();
    scrubber_.reset();
    volume_.reset();
    backing_ = std::move(after);
    mount();
  }
  // The file has count chunks, each a record of its own.
  fs::InodeNumber make_stored_file(fs::InodeNumber parent, std::string_view name, std::size_t count,
                                   std::uint32_t seed) {
    const fs::InodeNumber file = make_file(parent, name);
    const std::string content = noise(count * chunk_size, seed);
    // Written in pieces, since all records of one flush go into one segment.
    constexpr std::size_t piece = 10 * chunk_size;
    for (std::size_t at = 0; at < content.size(); at += piece) {
      write(file, at, std::string_view(content).substr(at, piece));
      NACRE_EXPECT_OK(volume().sync_all());
    }
    return file;
  }
  // The place of a chunk's record, according to the current rows.
  fs::RecordLocation location_of(fs::InodeNumber inode, std::uint64_t index) {
    std::optional<fs::RecordLocation> found;
    const auto value = mounted().database().get(metadata::Table::chunks,
                                                metadata::chunk_key(inode, fs::ChunkIndex{index}));
    EXPECT_TRUE(value && *value);
    const auto row = metadata::decode_chunk_map_row(**value);
    EXPECT_TRUE(row && row->chunk);
    fs::for_each_record(inode, fs::ChunkIndex{index}, *row->chunk,
                        [&](const fs::NamedRecord& record) { found = record.location; });
    EXPECT_TRUE(found) << "no record";
    return found.value_or(fs::RecordLocation{});
  }
  void flip(const std::string& path, std::uint64_t offset) {
    auto bytes = backing_->load(path);
    ASSERT_TRUE(bytes) << path;
    bytes->at(offset) ^= 1;
    backing_->store(path, *bytes);
  }
  void flip(const fs::RecordLocation& location, std::uint64_t offset = 50) {
    flip(fs::segment_path(location.segment), location.offset + offset);
  }
  static std::string verdict_of(const metadata::ScrubPlace& place) {
    return std::string(to_string(static_cast<fs::Verdict>(place.verdict)));
  }
  std::uint64_t committed_bytes() {
    std::uint64_t bytes = 0;
    NACRE_EXPECT_OK(mounted().database().scan(
        metadata::Table::segments, "", "", [&](std::string_view, std::string_view value) {
          const auto row = metadata::decode_segment_row(value);
          bytes += row->committed_size - metadata::segment_header_size_bytes;
          return true;
        }));
    return bytes;
  }

  std::shared_ptr<TestClock> clock_ = std::make_shared<TestClock>();
  std::unique_ptr<fs::Scrubber> scrubber_;
};

TEST_F(ScrubberTest, reads_every_committed_byte_of_a_sound_volume) {
  for (std::uint32_t i = 0; i < 10; ++i)
    make_stored_file(root, fmt::format("file {}", i), 20, i);
  const ScrubRow row = scrub();
  EXPECT_EQ(row.damage_count, 0u);
  EXPECT_EQ(row.record_count, 200u);
  EXPECT_EQ(row.segment_bytes, committed_bytes());
  EXPECT_GT(row.segment_count, 5u);
  EXPECT_GT(row.database_file_count, 3u);
  EXPECT_GT(row.database_bytes, 0u);
  EXPECT_GT(row.ended_seconds, 0);
  // The check of the rows knows the scrub's.
  scrubber_.reset();
  unmount();
  expect_clean();
  mount();
  EXPECT_EQ(scrubber().status(), row) << "the result is kept";
}

TEST_F(ScrubberTest, names_every_path_of_every_file_that_is_hit) {
  const auto folder = make_directory(root, "folder");
  const auto hit = make_stored_file(folder, "hit", 3, 1);
  NACRE_EXPECT_OK(volume().link(hit, root, "other name"));
  make_stored_file(root, "sound", 3, 2);
  const auto unnamed = make_stored_file(root, "unnamed", 3, 3);
  const auto dead = make_stored_file(root, "dead", 3, 4);
  NACRE_EXPECT_OK(volume().sync_all());
  const auto in_hit = location_of(hit, 1);
  const auto in_unnamed = location_of(unnamed, 0);
  const auto in_dead = location_of(dead, 2);
  NACRE_EXPECT_OK(volume().unlink(root, "unnamed"));  // still looked up: it lives on
  write(dead, 2 * chunk_size, noise(chunk_size, 5));
  NACRE_EXPECT_OK(volume().sync_all());
  flip(in_hit);
  flip(in_unnamed);
  flip(in_dead);

  const ScrubRow row = scrub();
  EXPECT_EQ(row.damage_count, 3u);
  ASSERT_EQ(row.places.size(), 3u);
  for (const auto& place : row.places)
    EXPECT_EQ(verdict_of(place), "rot");
  EXPECT_EQ(row.places[0].file, fs::segment_path(in_hit.segment));
  EXPECT_EQ(row.places[0].offset, in_hit.offset);
  EXPECT_EQ(row.places[0].size, in_hit.stored_size);
  EXPECT_EQ(row.places[0].owner, DamageOwner::files);
  auto paths = row.places[0].paths;
  std::sort(paths.begin(), paths.end());
  EXPECT_EQ(paths, (std::vector<std::string>{"/folder/hit", "/other name"}));
  ASSERT_EQ(row.places[1].paths.size(), 1u);
  EXPECT_NE(row.places[1].paths[0].find("which no name leads to"), std::string::npos);
  EXPECT_EQ(row.places[2].owner, DamageOwner::nobody);
  EXPECT_TRUE(row.places[2].paths.empty());

  // The next one keeps what this one found.
  const ScrubRow next = scrub();
  EXPECT_EQ(next.previous_ended_seconds, row.ended_seconds);
  EXPECT_EQ(next.previous_damage_count, 3u);
  EXPECT_EQ(next.damage_count, 3u);
}

TEST_F(ScrubberTest, knows_a_checkpoint_that_is_hit) {
  make_stored_file(root, "file", 3, 1);
  NACRE_ASSERT_OK(mounted().write_checkpoint(fs::CheckpointKeep::only_this));
  std::optional<fs::RecordLocation> root_of_it;
  const std::string prefix(metadata::system_key_checkpoint_prefix);
  NACRE_EXPECT_OK(mounted().database().scan(
      metadata::Table::system, prefix, metadata::prefix_end(prefix),
      [&](std::string_view, std::string_view value) {
        root_of_it = metadata::decode_checkpoint_row(value)->root.location;
        return true;
      }));
  ASSERT_TRUE(root_of_it);
  flip(*root_of_it);
  const ScrubRow row = scrub();
  ASSERT_EQ(row.damage_count, 1u);
  EXPECT_EQ(row.places[0].paths, std::vector<std::string>{"(a checkpoint of the tables)"});
}

TEST_F(ScrubberTest, goes_on_where_it_was_after_a_kill) {
  for (std::uint32_t i = 0; i < 10; ++i)
    make_stored_file(root, fmt::format("file {}", i), 20, i);
  flip(location_of(find(root, "file 1"), 3));
  clock_->hold_at(6);
  begin(1u << 20);
  clock_->wait_until_held();
  NACRE_EXPECT_OK(volume().sync_all());  // an interval's commit
  const ScrubRow before = scrubber().status();
  EXPECT_EQ(before.state, ScrubState::running);
  EXPECT_GT(before.segment_bytes, 0u);
  EXPECT_LT(before.record_count, 200u);
  EXPECT_EQ(before.damage_count, 1u);
  kill();
  clock_->release();
  const ScrubRow row = finish();
  EXPECT_EQ(row.started_seconds, before.started_seconds);
  EXPECT_EQ(row.record_count, 199u) << "each once, whatever was read twice";
  EXPECT_EQ(row.database_file_count, mounted().database().needed_files()->size());
  ASSERT_EQ(row.damage_count, 1u);
  EXPECT_EQ(row.places[0].paths, std::vector<std::string>{"/file 1"});
}

TEST_F(ScrubberTest, stays_paused_over_a_restart_until_it_is_resumed) {
  for (std::uint32_t i = 0; i < 6; ++i)
    make_stored_file(root, fmt::format("file {}", i), 20, i);
  clock_->hold_at(3);
  begin(1u << 20);
  clock_->wait_until_held();
  NACRE_EXPECT_OK(scrubber().apply(ScrubCommand::pause, {}));
  EXPECT_TRUE(scrubber().wait_until_idle(patience));
  const ScrubRow paused = scrubber().status();
  EXPECT_EQ(paused.state, ScrubState::paused);
  clock_->release();
  kill();
  EXPECT_EQ(scrubber().status(), paused) << "a pause is durable when the command returns";
  NACRE_EXPECT_OK(scrubber().apply(ScrubCommand::resume, 0));
  const ScrubRow row = finish();
  EXPECT_EQ(row.record_count, 120u);
  EXPECT_EQ(row.rate_bytes_per_second, 0u);
}

TEST_F(ScrubberTest, that_was_stopped_begins_anew) {
  for (std::uint32_t i = 0; i < 6; ++i)
    make_stored_file(root, fmt::format("file {}", i), 20, i);
  for (const auto command : {ScrubCommand::pause, ScrubCommand::resume, ScrubCommand::stop})
    EXPECT_EQ(error_of(scrubber().apply(command, {})), ErrorCode::not_found);
  clock_->hold_at(2);
  begin(1u << 20);
  clock_->wait_until_held();
  NACRE_EXPECT_OK(scrubber().apply(ScrubCommand::stop, {}));
  EXPECT_TRUE(scrubber().wait_until_idle(patience));
  EXPECT_EQ(scrubber().status().state, ScrubState::stopped);
  clock_->release();
  kill();
  EXPECT_EQ(scrubber().status().state, ScrubState::stopped);
  EXPECT_EQ(scrub().record_count, 120u);
}

// An earlier version went on sleeping for hours if a scrub at 1 KiB a second got a higher rate.
TEST_F(ScrubberTest, begun_again_while_it_waits_takes_the_new_rate_at_once) {
  for (std::uint32_t i = 0; i < 6; ++i)
    make_stored_file(root, fmt::format("file {}", i), 20, i);
  clock_->hold_at(3);
  begin(1u << 20);
  clock_->wait_until_held();
  const ScrubRow before = scrubber().status();
  begin(0);
  const ScrubRow row = finish();
  EXPECT_EQ(row.started_seconds, before.started_seconds);
  EXPECT_EQ(row.rate_bytes_per_second, 0u);
  EXPECT_EQ(row.record_count, 120u);
}

TEST_F(ScrubberTest, keeps_to_its_rate_and_to_a_quarter_of_it_beside_users) {
  for (std::uint32_t i = 0; i < 10; ++i)
    make_stored_file(root, fmt::format("file {}", i), 20, i);
  const auto seconds_for = [&](std::uint64_t rate) {
    const auto before = clock_->waited();
    begin(rate);
    const ScrubRow row = finish();
    const auto bytes = row.segment_bytes + row.database_bytes;
    const double waited = std::chrono::duration<double>(clock_->waited() - before).count();
    const double due = static_cast<double>(bytes) / static_cast<double>(rate);
    EXPECT_LT(waited, 4.1 * due + 1);
    EXPECT_GT(waited, due - 0.6) << "faster than it may";
    return waited / due;
  };
  seconds_for(100'000);  // takes note of what users did so far
  EXPECT_LT(seconds_for(100'000), 1.3);
  // A user who writes between any two stretches.
  const auto file = find(root, "file 0");
  clock_->set_user([&] {
    write(file, 0, noise(chunk_size, 7));
    NACRE_EXPECT_OK(volume().sync_all());
  });
  const double busy = seconds_for(100'000);
  clock_->set_user({});
  EXPECT_GT(busy, 3.0);
}

TEST_F(ScrubberTest, finds_nothing_while_users_write_and_compaction_runs) {
  std::atomic<bool> over{false};
  std::vector<std::thread> users;
  for (std::uint32_t user = 0; user < 2; ++user) {
    users.emplace_back([&, user] {
      const auto file = make_file(root, fmt::format("user {}", user));
      for (std::uint32_t i = 0; !over; ++i) {
        write(file, i % 40 * chunk_size, noise(chunk_size * 3, i));
        if (i % 7 == 0) NACRE_EXPECT_OK(volume().sync_all());
        if (i % 50 == 0) compact();
      }
    });
  }
  std::uint64_t records = 0;
  for (int i = 0; i < 12; ++i) {
    const ScrubRow row = scrub();
    EXPECT_EQ(row.damage_count, 0u)
        << (row.places.empty() ? "" : row.places[0].file + ": " + row.places[0].what);
    records += row.record_count;
  }
  over = true;
  for (auto& user : users)
    user.join();
  EXPECT_GT(records, 0u);
}

TEST_F(ScrubberTest, leaves_out_damage_in_a_segment_that_goes_meanwhile) {
  const auto file = make_stored_file(root, "file", 60, 1);
  const auto location = location_of(file, 0);
  flip(location);
  clock_->hold_at(2);
  begin(1u << 20);
  clock_->wait_until_held();
  EXPECT_EQ(scrubber().status().damage_count, 1u);
  NACRE_EXPECT_OK(volume().unlink(root, "file"));
  volume().forget(file, 1);
  for (int i = 0; i < 3; ++i)
    compact();
  EXPECT_FALSE(backing_->load(fs::segment_path(location.segment))) << "the scrub held it";
  clock_->release();
  EXPECT_EQ(finish().damage_count, 0u);
}

TEST_F(ScrubberTest, tells_a_segment_that_cannot_be_read_or_is_cut_from_rot) {
  const auto file = make_stored_file(root, "file", 60, 1);
  const auto unreadable = location_of(file, 0);
  const auto cut = location_of(file, 30);
  ASSERT_NE(unreadable.segment, cut.segment);
  const std::string path = fs::segment_path(cut.segment);
  auto bytes = *backing_->load(path);
  bytes.resize(cut.offset + 5);
  backing_->store(path, bytes);
  backing_->inject({.operations = operation_read,
                    .path_part = fs::segment_path(unreadable.segment),
                    .code = ErrorCode::io});
  const ScrubRow row = scrub();
  backing_->clear_failures();
  ASSERT_GE(row.places.size(), 3u);
  EXPECT_EQ(verdict_of(row.places[0]), "unreadable") << "its header";
  EXPECT_EQ(row.places[0].owner, DamageOwner::unknown);
  EXPECT_EQ(verdict_of(row.places[1]), "unreadable") << row.places[1].what;
  bool is_missing = false;
  for (const auto& place : row.places) {
    if (place.file != path) continue;
    is_missing |= verdict_of(place) == "missing" && place.offset == bytes.size();
    EXPECT_EQ(place.paths, std::vector<std::string>{"/file"}) << place.what;
  }
  EXPECT_TRUE(is_missing);
}

// An earlier version silently left out the paths for which a row has no room.
TEST_F(ScrubberTest, says_how_many_paths_it_leaves_out) {
  constexpr std::uint64_t count = 300;
  const auto folder = make_directory(root, std::string(200, 'd'));
  for (std::uint32_t i = 0; i < count; ++i)
    write(make_file(folder, fmt::format("{:0>250}", i)), 0, noise(chunk_size, i));
  NACRE_EXPECT_OK(volume().sync_all());
  for (const auto& path : backing_->files())
    if (path.ends_with(".seg")) backing_->erase(path);
  const ScrubRow row = scrub();
  std::uint64_t named = 0, left_out = 0, named_bytes = 0;
  for (const auto& place : row.places) {
    for (const auto& path : place.paths) {
      if (path.starts_with("/")) {
        ++named;
        named_bytes += path.size();
      } else if (std::uint64_t more = 0;
                 std::sscanf(path.c_str(), "(and at least %lu", &more) == 1) {
        left_out += more;
      }
    }
  }
  EXPECT_LE(named_bytes, metadata::scrub_paths_size_bytes_max);
  EXPECT_GT(named, 20u);
  EXPECT_EQ(named + left_out, count);
}

TEST_F(ScrubberTest, finds_a_damaged_page_of_the_database) {
  make_stored_file(root, "file", 3, 1);
  remount();  // the rows are in tables now
  const auto needed = mounted().database().needed_files();
  NACRE_ASSERT_OK(needed);
  std::string table;
  for (const auto& name : *needed) {
    if (name.ends_with(".sst")) table = "db/" + name;
  }
  ASSERT_FALSE(table.empty());
  EXPECT_EQ(scrub().damage_count, 0u);
  const auto sound = *backing_->load(table);
  flip(table, 64 + 100);
  const ScrubRow row = scrub();
  ASSERT_EQ(row.damage_count, 1u);
  EXPECT_EQ(row.places[0].file, table);
  EXPECT_EQ(verdict_of(row.places[0]), "rot");
  EXPECT_EQ(row.places[0].owner, DamageOwner::unknown);
  backing_->store(table, sound);
  EXPECT_EQ(scrub().damage_count, 0u);
}

TEST_F(ScrubberTest, reads_a_volume_that_is_mounted_read_only) {
  const auto file = make_stored_file(root, "file", 20, 1);
  const auto location = location_of(file, 7);
  unmount();
  flip(location);
  options_.read_only = true;
  mount();
  const auto before = backing_->change_count();
  const ScrubRow row = scrub();
  ASSERT_EQ(row.damage_count, 1u);
  EXPECT_EQ(row.places[0].paths, std::vector<std::string>{"/file"});
  EXPECT_EQ(backing_->change_count(), before) << "nothing is written";
}

TEST(RateLimit, lets_no_more_through_than_its_rate) {
  using fs::RateLimit;
  auto now = RateLimit::Clock::time_point(1h);
  const auto start = now;
  RateLimit limit(1000);
  std::uint64_t bytes = 0;
  std::mt19937 random(1);
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t piece = random() % 3000;
    bytes += piece;
    now += std::chrono::milliseconds(random() % 2000);  // what the work itself took
    now += limit.after(piece, now);
    const std::chrono::duration<double> passed = now - start;
    // The scrub may exceed the rate by the bytes saved up and by the piece in hand.
    EXPECT_LE(static_cast<double>(bytes), 1000 * (passed.count() + 0.5) + 3000);
  }
  EXPECT_EQ(RateLimit(0).after(1u << 30, now), RateLimit::Clock::duration::zero());
  EXPECT_GT(RateLimit(1).after(UINT64_MAX, now), 23h);
}

}  // namespace
}  // namespace nacre::tests
