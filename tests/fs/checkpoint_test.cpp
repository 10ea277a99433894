// SPDX-License-Identifier: Apache-2.0
// Checkpoints: when they are written, what they hold, which records they keep, and that whatever
// interrupts one leaves a clean volume with the one before.
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <set>
#include <thread>

#include "metadata/format/checkpoint_stream.h"
#include "tests/fs/compaction_fixture.h"
#include "tests/support/temporary_directory.h"

namespace nacre::tests {
namespace {

using metadata::CheckpointSection;
using metadata::Table;

class Checkpoint : public VolumeCompaction {
 protected:
  using Rows = std::map<std::string, std::string>;

  struct Found {
    metadata::CheckpointNumber number;
    metadata::CheckpointRow row;
  };
  // The checkpoints that the tables of the unmounted volume name.
  std::vector<Found> checkpoints() {
    std::vector<Found> found;
    const auto database = metadata::Database::open(backing_, test_keys(), {.read_only = true});
    NACRE_EXPECT_OK(database);
    NACRE_EXPECT_OK(
        (*database)->scan(Table::system, "", "", [&](std::string_view key, std::string_view value) {
          if (key.starts_with(metadata::system_key_checkpoint_prefix)) {
            found.push_back(
                {*metadata::decode_checkpoint_key(key), *metadata::decode_checkpoint_row(value)});
          }
          return true;
        }));
    return found;
  }
  Rows rows_of(Table table) {
    Rows rows;
    const auto database = metadata::Database::open(backing_, test_keys(), {.read_only = true});
    NACRE_EXPECT_OK(database);
    NACRE_EXPECT_OK(
        (*database)->scan(table, "", "", [&](std::string_view key, std::string_view value) {
          if (!key.starts_with(metadata::system_key_checkpoint_prefix)) rows.emplace(key, value);
          return true;
        }));
    return rows;
  }

  Bytes open_record(const metadata::CheckpointPlace& place, const metadata::RecordName& name) {
    const auto segment =
        backing_->load(fmt::format("segments/{:012}.seg", place.location.segment.value));
    EXPECT_TRUE(segment);
    const ByteView record =
        ByteView(*segment).subspan(place.location.offset, place.location.stored_size);
    const auto header = engine::verify_record_crc(record);
    NACRE_EXPECT_OK(header);
    const auto key = test_keys()->session_key(header->epoch, header->salt);
    Bytes plain(place.plain_size);
    engine::Payload payload;
    payload.input = record.data();
    payload.input_size = record.size();
    payload.output = plain.data();
    payload.output_size = plain.size();
    payload.volume_id = test_keys()->volume_id();
    payload.messages.push_back({.operation = engine::Operation::unseal,
                                .check_identity = true,
                                .key_index = payload.add_key((*key)->suite, (*key)->key.view()),
                                .input_size = record.size(),
                                .output_capacity = plain.size(),
                                .identity = metadata::encode(name)});
    const auto engine = engine::Engine::create({.thread_count = 1});
    (*engine)->run(payload);
    EXPECT_TRUE(payload.results.front().ok) << payload.results.front().detail;
    EXPECT_EQ(payload.results.front().output_size, plain.size());
    return plain;
  }
  metadata::CheckpointRoot root_of(const Found& found) {
    const auto plain =
        open_record(found.row.root, metadata::root_name(found.number, found.row.root.version));
    const auto decoded = metadata::decode_checkpoint_root(as_text(plain));
    NACRE_EXPECT_OK(decoded);
    return decoded.value_or(metadata::CheckpointRoot{});
  }
  std::map<CheckpointSection, Rows> read(const Found& found) {
    std::map<CheckpointSection, Rows> sections;
    NACRE_EXPECT_OK(metadata::read_checkpoint(
        root_of(found),
        [&](std::size_t i) -> Result<Bytes> {
          const auto& part = found.row.parts.at(i);
          return open_record(part, metadata::part_name(found.number, i, part.version));
        },
        [&](CheckpointSection section, std::string_view key, std::string_view value) -> Result<> {
          sections[section].emplace(key, value);
          return {};
        }));
    return sections;
  }
  void expect_holds_tables(const Found& found) {
    auto sections = read(found);
    const std::pair<CheckpointSection, Table> pairs[] = {
        {CheckpointSection::inodes, Table::inodes}, {CheckpointSection::dentries, Table::dentries},
        {CheckpointSection::chunks, Table::chunks}, {CheckpointSection::inlined, Table::inlined},
        {CheckpointSection::xattrs, Table::xattrs}, {CheckpointSection::orphans, Table::orphans}};
    for (const auto& [section, table] : pairs)
      EXPECT_EQ(sections[section], rows_of(table)) << metadata::to_string(table);
  }

  void make_tree() {
    const auto folder = make_directory(root, "folder");
    const auto file = make_file(folder, "large");
    write(file, 0, noise(20 * chunk_size + 100, 1));
    const auto sparse = make_file(root, "sparse");
    write(sparse, 30 * chunk_size, noise(chunk_size, 2));
    NACRE_EXPECT_OK(volume().make_symlink(root, "link", caller_, "folder/large"));
    NACRE_EXPECT_OK(volume().set_xattr(file, "user.note", "noted", fs::XattrMode::set, false));
    NACRE_EXPECT_OK(volume().sync_all());
    write(file, chunk_size + 10, "inlined bytes");
    NACRE_EXPECT_OK(sync(file));
    const auto lost = make_file(root, "a file that is deleted");
    write(lost, 0, "and still open");
    NACRE_EXPECT_OK(volume().unlink(root, "a file that is deleted"));
  }
  void crash() {
    volume_.reset();
    backing_ = backing_->process_kill();
  }
};

TEST_F(Checkpoint, closing_a_volume_writes_one_with_all_its_rows) {
  make_tree();
  unmount();
  const auto found = checkpoints();
  ASSERT_EQ(found.size(), 1u);
  expect_holds_tables(found.back());
  expect_clean();
}

TEST_F(Checkpoint, one_is_written_while_the_volume_is_in_use) {
  make_tree();
  const auto written = mounted().write_checkpoint(fs::CheckpointKeep::the_one_before);
  NACRE_ASSERT_OK(written);
  EXPECT_GT(written->row_count, 10u);
  EXPECT_GT(written->stored_bytes, 0u);
  crash();
  const auto found = checkpoints();
  ASSERT_EQ(found.size(), 1u);
  expect_holds_tables(found.back());
  expect_clean();
}

TEST_F(Checkpoint, two_are_kept_and_the_others_give_their_space_back) {
  const auto file = make_file(root, "file");
  for (int i = 0; i < 5; ++i) {
    write(file, 0, noise(chunk_size, static_cast<std::uint32_t>(i)));
    NACRE_ASSERT_OK(mounted().write_checkpoint(fs::CheckpointKeep::the_one_before));
  }
  unmount();
  const auto found = checkpoints();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_LT(found[0].number, found[1].number);
  expect_holds_tables(found.back());
  expect_clean();
  // Each lies in a segment of its own; no segment of the others is left.
  std::set<std::uint64_t> segments;
  for (const auto& checkpoint : found)
    segments.insert(checkpoint.row.root.location.segment.value);
  EXPECT_EQ(segments.size(), 2u);
  for (const auto& [key, value] : rows_of(Table::segments)) {
    const auto row = *metadata::decode_segment_row(value);
    EXPECT_GT(row.live_bytes, 0u) << metadata::decode_segment_key(key)->value;
  }
}

TEST_F(Checkpoint, only_the_new_one_stays_when_asked_for) {
  make_tree();
  NACRE_ASSERT_OK(mounted().write_checkpoint(fs::CheckpointKeep::the_one_before));
  make_file(root, "one more");
  NACRE_ASSERT_OK(mounted().write_checkpoint(fs::CheckpointKeep::the_one_before));
  const auto last = mounted().write_checkpoint(fs::CheckpointKeep::only_this);
  NACRE_ASSERT_OK(last);
  crash();
  const auto found = checkpoints();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found.front().number, last->number);
  expect_clean();
}

TEST_F(Checkpoint, a_mount_that_changes_nothing_writes_none) {
  make_tree();
  unmount();
  const auto first = checkpoints().back().number;
  for (int i = 0; i < 3; ++i) {
    mount();
    NACRE_EXPECT_OK(volume().lookup(root, "folder"));
    unmount();
    ASSERT_EQ(checkpoints().size(), 1u);
    EXPECT_EQ(checkpoints().back().number, first);
  }
  mount();
  make_file(root, "changed");
  unmount();
  EXPECT_EQ(checkpoints().size(), 2u);
  expect_clean();
}

// Merging changes no inode. But the records that the checkpoint names for the file are then dead.
TEST_F(Checkpoint, merging_after_it_is_a_change) {
  const auto file = make_file(root, "file");
  write(file, 0, noise(4 * chunk_size, 1));
  NACRE_ASSERT_OK(volume().sync_all());
  write(file, 10, "inlined bytes");
  NACRE_ASSERT_OK(sync(file));
  const auto written = mounted().write_checkpoint(fs::CheckpointKeep::the_one_before);
  NACRE_ASSERT_OK(written);
  compact();
  unmount();
  const auto found = checkpoints();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_LT(written->number, found.back().number);
  expect_holds_tables(found.back());
  expect_clean();
}

// The changes of the mount before the crash are in no checkpoint yet.
TEST_F(Checkpoint, a_mount_after_a_crash_writes_one_though_it_changes_nothing) {
  make_tree();
  unmount();
  mount();
  make_file(root, "made before the crash");
  NACRE_EXPECT_OK(volume().sync_all());
  crash();
  mount();
  unmount();
  ASSERT_EQ(checkpoints().size(), 2u);
  expect_holds_tables(checkpoints().back());
}

TEST_F(Checkpoint, the_background_writes_one_when_something_changed) {
  options_.checkpoints.interval_ms = 5;
  unmount();
  mount();
  make_file(root, "new");
  NACRE_EXPECT_OK(volume().sync_all());
  while (mounted().stats().checkpoints.written_count == 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  unmount();
  expect_clean();
}

TEST_F(Checkpoint, none_is_written_where_the_interval_is_zero) {
  options_.checkpoints.interval_ms = 0;
  unmount();
  const std::size_t before = checkpoints().size();
  mount();
  make_tree();
  unmount();
  EXPECT_EQ(checkpoints().size(), before);
}

// A checkpoint names records by their versions, so it stays right after compaction has moved them.
TEST_F(Checkpoint, compaction_beside_it_leaves_it_whole) {
  make_holey_file("file", 64, 4);
  NACRE_ASSERT_OK(mounted().write_checkpoint(fs::CheckpointKeep::the_one_before));
  EXPECT_GT(compact().moved_bytes, 0u);
  crash();
  const auto found = checkpoints();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_FALSE(read(found.back()).empty());
  expect_clean();
}

TEST_F(Checkpoint, a_full_disk_keeps_the_last_one_and_the_unmount_succeeds) {
  make_tree();
  unmount();
  const auto first = checkpoints().back().number;
  mount();
  make_file(root, "changed");
  NACRE_EXPECT_OK(volume().sync_all());
  std::uint64_t used = 0;
  for (const auto& path : backing_->files())
    used += backing_->load(path)->size();
  backing_->set_capacity(used + (64u << 10));
  unmount();
  backing_->set_capacity(~0ull);
  ASSERT_EQ(checkpoints().size(), 1u);
  EXPECT_EQ(checkpoints().back().number, first);
  expect_clean();
}

TEST_F(Checkpoint, one_that_takes_more_than_its_share_of_the_disk_is_given_up) {
  options_.checkpoints.disk_share = 1u << 30;  // of a disk of 1 TiB
  unmount();
  mount();
  for (std::uint32_t i = 0; i < 200; ++i)
    NACRE_EXPECT_OK(volume().set_xattr(root, fmt::format("user.{}", i), noise(1000, i),
                                       fs::XattrMode::set, false));
  EXPECT_CODE(too_big, mounted().write_checkpoint(fs::CheckpointKeep::the_one_before));
  unmount();
  expect_clean();
}

// A rotation of keys asks for such a checkpoint: the older one would keep the rotation from ending.
TEST_F(Checkpoint, one_that_others_must_give_way_to_may_outgrow_its_share) {
  make_tree();
  NACRE_ASSERT_OK(mounted().write_checkpoint(fs::CheckpointKeep::the_one_before));
  options_.checkpoints.disk_share = 1u << 30;
  unmount();
  mount();
  for (std::uint32_t i = 0; i < 200; ++i)
    NACRE_EXPECT_OK(volume().set_xattr(root, fmt::format("user.{}", i), noise(1000, i),
                                       fs::XattrMode::set, false));
  EXPECT_CODE(too_big, mounted().write_checkpoint(fs::CheckpointKeep::the_one_before));
  const auto only = mounted().write_checkpoint(fs::CheckpointKeep::only_this);
  NACRE_ASSERT_OK(only);
  unmount();
  ASSERT_EQ(checkpoints().size(), 1u);
  EXPECT_EQ(checkpoints().front().number, only->number);
  expect_clean();
}

// Records that a writer has in hand while a checkpoint is taken are newer, not dead.
TEST_F(Checkpoint, what_is_settled_is_named_or_dead) {
  std::atomic<bool> done{false};
  std::atomic<std::uint32_t> syncs{0};
  std::thread writer([&] {
    const auto file = make_file(root, "busy");
    for (std::uint32_t i = 0; !done; ++i) {
      write(file, (i % 8) * chunk_size, noise(2 * chunk_size, i));
      if (i % 4 == 0) NACRE_EXPECT_OK(sync(file));
      ++syncs;
    }
  });
  for (std::uint32_t i = 1; i <= 20; ++i) {
    while (syncs < 3 * i)
      std::this_thread::yield();
    NACRE_EXPECT_OK(mounted().write_checkpoint(fs::CheckpointKeep::the_one_before));
  }
  done = true;
  writer.join();
  crash();
  const auto found = checkpoints();
  ASSERT_EQ(found.size(), 2u);
  const auto versions_of = [&](const Found& checkpoint) {
    std::set<std::uint64_t> versions;
    const auto sections = read(checkpoint);
    for (const auto& [key, value] : sections.at(CheckpointSection::chunks)) {
      const auto row = *metadata::decode_chunk_map_row(value);
      if (!row.chunk) continue;
      if (row.chunk->base) versions.insert(row.chunk->base->version.value);
      for (const auto& patch : row.chunk->patches) {
        if (patch.location) versions.insert(patch.version.value);
      }
    }
    return versions;
  };
  const auto before = versions_of(found[0]);
  const auto settled = root_of(found[0]).settled.value;
  EXPECT_GT(settled, 1ull << 40);
  for (const std::uint64_t version : versions_of(found[1]))
    EXPECT_TRUE(before.contains(version) || version >= settled) << version << " " << settled;
  expect_clean();
}

// Measures a checkpoint, and how much it delays other operations, on a real directory. The figures
// are for docs/PERFORMANCE.md.
TEST_F(Checkpoint, of_many_files) {
  const char* wanted = std::getenv("NACRE_LONG");
  if (wanted == nullptr) {
    GTEST_SKIP() << "skipped: checkpoint of many files: it takes minutes; NACRE_LONG=1 runs it";
  }
  const TemporaryDirectory place;
  auto directory = metadata::open_posix_directory(place.path());
  NACRE_ASSERT_OK(directory);
  NACRE_ASSERT_OK(fs::Mounted::format(*directory, test_keys(), 1, caller_));
  auto engine = engine::Engine::create({.thread_count = 2});
  auto opened = fs::Mounted::open(*directory, test_keys(), 1, std::move(*engine), options_);
  NACRE_ASSERT_OK(opened);
  fs::Mounted& mounted = **opened;
  fs::Volume& many = mounted.volume();
  fs::InodeNumber folder;
  const auto make = [&](std::uint64_t i) {
    if (i % 1000 == 0) {
      const auto made = many.make_directory(root, fmt::format("folder {}", i), caller_, 0755);
      NACRE_ASSERT_OK(made);
      folder = made->inode;
    }
    const auto file = many.make_node(folder, fmt::format("file {}.txt", i), caller_, S_IFREG, 0);
    NACRE_ASSERT_OK(file);
    NACRE_ASSERT_OK(many.write(file->inode, 0, as_bytes(fmt::format("file {}", i)), {}));
    many.forget(file->inode, 1);
  };
  using Clock = std::chrono::steady_clock;
  const auto worst_of = [&](std::uint64_t& next, const std::function<bool()>& goes_on) {
    Clock::duration worst{};
    while (goes_on()) {
      const auto begin = Clock::now();
      make(next++);
      worst = std::max(worst, Clock::now() - begin);
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    return std::chrono::duration_cast<std::chrono::microseconds>(worst).count();
  };
  std::uint64_t next = 0;
  for (const std::uint64_t count : {20'000u, 1'000'000u}) {
    for (; next < count; ++next)
      make(next);
    NACRE_ASSERT_OK(many.sync_all());
    const auto until = Clock::now() + std::chrono::seconds(2);
    const auto alone = worst_of(next, [&] { return Clock::now() < until; });
    std::atomic<bool> done{false};
    Result<fs::CheckpointReport> report;
    std::thread writer([&] {
      report = mounted.write_checkpoint(fs::CheckpointKeep::the_one_before);
      done = true;
    });
    const auto beside = worst_of(next, [&] { return !done; });
    writer.join();
    NACRE_ASSERT_OK(report);
    std::cout << report->row_count << " rows, " << count << " files: " << report->took_ms << " ms, "
              << report->plain_bytes << " bytes packed to " << report->stored_bytes
              << "; the slowest of a writer's files: " << alone << " us alone, " << beside
              << " us beside it\n";
  }
  const auto begin = Clock::now();
  NACRE_ASSERT_OK(mounted.close());
  std::cout << "closed in "
            << std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin).count()
            << " ms\n";
}

TEST_F(Checkpoint, damage_in_one_is_found_by_a_deep_check) {
  make_tree();
  unmount();
  const auto found = checkpoints().back();
  const auto& part = found.row.parts.front().location;
  const auto path = fmt::format("segments/{:012}.seg", part.segment.value);
  auto bytes = *backing_->load(path);
  bytes.at(part.offset + part.stored_size / 2) ^= 1;
  backing_->store(path, bytes);
  metadata::VolumeKeys keys;
  keys.keys = test_keys();
  keys.superblock.chunk_size_bytes = chunk_size;
  keys.keyring.generation = 1;
  const auto engine = engine::Engine::create({.thread_count = 1});
  const auto report = fs::check_volume(backing_, keys, **engine, {.deep = true}, {});
  NACRE_ASSERT_OK(report);
  const auto& findings = report->findings.findings();
  const auto hit = std::find_if(findings.begin(), findings.end(), [](const fs::Finding& finding) {
    return finding.what.find("part 0 of checkpoint") != std::string::npos;
  });
  ASSERT_NE(hit, findings.end());
  EXPECT_EQ(hit->verdict, fs::Verdict::rot);
  EXPECT_FALSE(hit->inode);  // a checkpoint is no file's
}

}  // namespace
}  // namespace nacre::tests
