// SPDX-License-Identifier: Apache-2.0
// Salvage: a volume without db/ is made anew from its segments. What the last checkpoint knew comes
// back as it was; what is newer goes to lost+found; what is gone is an error and never zeros.
#include <algorithm>
#include <functional>
#include <regex>
#include <set>

#include <spdlog/spdlog.h>

#include "tests/crash/sample.h"
#include "tests/fs/salvage_fixture.h"

namespace nacre::tests {
namespace {

TEST_F(Salvage, of_an_undamaged_volume_returns_every_file_under_its_name) {
  make_tree();
  unmount();
  const auto before = tree_of(source_);
  lose_database(*source_);
  const auto report = salvage_all();
  EXPECT_TRUE(report.checkpoint_seconds);
  EXPECT_GT(report.record_count, 10u);
  EXPECT_EQ(report.lost_record_count, 0u);
  EXPECT_TRUE(report.newer.empty());
  expect_same(before);
}

TEST_F(Salvage, reads_only) {
  make_tree();
  unmount();
  lose_database(*source_);
  source_->set_read_only(true);
  salvage_all();
}

TEST_F(Salvage, finds_records_that_compaction_moved_after_the_checkpoint) {
  options_.store.segment_size_bytes = 64u << 10;
  unmount();
  mount();
  for (int i = 0; i < 20; ++i)
    put(fmt::format("file {}", i), noise(2 * chunk_size));
  NACRE_EXPECT_OK(volume_->sync_all());
  for (int i = 0; i < 20; i += 2)
    remove(fmt::format("file {}", i));
  NACRE_ASSERT_OK(volume_.mounted().write_checkpoint(fs::CheckpointKeep::the_one_before));
  compact();
  EXPECT_GT(volume_.mounted().stats().segments.moved_records, 0u);
  crash();
  const auto before = tree_of(source_);
  lose_database(*source_);
  const auto report = salvage_all();
  EXPECT_TRUE(report.newer.empty());
  expect_same(before);
}

TEST_F(Salvage, twenty_thousand_files_come_back) {
  for (int folder = 0; folder < 20; ++folder) {
    const auto parent = make(root, fmt::format("folder {}", folder), S_IFDIR);
    for (int i = 0; i < 1000; ++i) {
      const auto file = make(parent, fmt::format("file {}", i), S_IFREG);
      write(file, 0, fmt::format("{} {} ", folder, i) + std::string(i % 50, 'x'));
      volume_->forget(file, 1);
    }
  }
  unmount();
  const auto before = tree_of(source_);
  lose_database(*source_);
  EXPECT_EQ(salvage_all().inode_count, 20'021u);
  expect_same(before);
}

TEST_F(Salvage, what_is_newer_than_the_checkpoint_goes_to_lost_and_found) {
  make_tree();
  NACRE_ASSERT_OK(volume_.mounted().write_checkpoint(fs::CheckpointKeep::the_one_before));
  const auto before = tree_of(source_);
  const std::string fresh = noise(3 * chunk_size + 5);
  const auto file = make(root, "made after it", S_IFREG);
  write(file, 0, fresh);
  const std::string over = noise(chunk_size);
  write(large_, 2 * chunk_size, over);  // a whole chunk of an old file
  NACRE_EXPECT_OK(volume_->sync_all());
  crash();
  lose_database(*source_);
  const auto report = salvage_all();
  ASSERT_EQ(report.newer.size(), 2u);
  EXPECT_EQ(report.newer[0].inode, large_);
  EXPECT_EQ(report.newer[0].paths.size(), 2u);
  EXPECT_EQ(report.newer[0].chunk_count, 1u);
  EXPECT_EQ(gaps_of(report.newer[0]), fmt::format("0+{} ", 2 * chunk_size));
  EXPECT_EQ(gaps_of(report.newer[1]), "");
  EXPECT_EQ(report.newer[1].inode, file);
  EXPECT_TRUE(report.newer[1].paths.empty());
  EXPECT_EQ(newer_content(fmt::format("#{}", file.value)), fresh);
  EXPECT_EQ(newer_content(fmt::format("#{}", large_.value)),
            std::string(2 * chunk_size, '\0') + over);
  // The files of the checkpoint are as it knew them.
  const auto after = tree_of(target_);
  for (const auto& [inode, content] : before.contents)
    EXPECT_TRUE(after.contents.at(inode) == content) << inode.value;
}

// A piece of a chunk lies over what the checkpoint's file has there.
TEST_F(Salvage, newer_pieces_are_put_over_what_the_checkpoint_knows) {
  options_.inline_commit_bytes_max = 0;
  unmount();
  mount();
  std::string content = noise(2 * chunk_size);
  const auto file = make(root, "file", S_IFREG);
  write(file, 0, content);
  NACRE_ASSERT_OK(volume_.mounted().write_checkpoint(fs::CheckpointKeep::the_one_before));
  for (const std::uint32_t offset : {100u, 150u, 9000u}) {
    const std::string piece = noise(100);
    write(file, offset, piece);
    content.replace(offset, piece.size(), piece);
    sync(file);
  }
  crash();
  lose_database(*source_);
  const auto report = salvage_all();
  ASSERT_EQ(report.newer.size(), 1u);
  EXPECT_EQ(report.newer[0].pieced_count, 1u);
  EXPECT_EQ(gaps_of(report.newer[0]), "") << "what the checkpoint has of the chunk is known";
  EXPECT_EQ(newer_content(fmt::format("#{}", file.value)), content.substr(0, chunk_size));
}

TEST_F(Salvage, a_volume_without_a_checkpoint_gives_its_files_by_inode) {
  options_.checkpoints.interval_ms = 0;
  volume_.reset();
  source_ = MemoryBacking::create();
  make_volume(*source_);
  mount();
  const std::string content = noise(4 * chunk_size + 9);
  const auto file = make(root, "file", S_IFREG);
  write(file, 0, content);
  unmount();
  lose_database(*source_);
  const auto report = salvage_all();
  EXPECT_FALSE(report.checkpoint_seconds);
  ASSERT_EQ(report.newer.size(), 1u);
  EXPECT_EQ(newer_content(fmt::format("#{}", file.value)), content);
}

// A chunk is written to while it is being merged. Then the merged record is dead, and older than
// the new bytes. The test runs without a checkpoint, and with one that is older than the record.
TEST_F(Salvage, a_merged_record_that_no_row_came_to_name_is_older_than_what_was_written) {
  for (const bool has_checkpoint : {false, true}) {
    SCOPED_TRACE(has_checkpoint);
    options_.checkpoints.interval_ms = 0;
    options_.inline_commit_bytes_max = 0;
    volume_.reset();
    source_ = MemoryBacking::create();
    target_ = MemoryBacking::create();
    make_volume(*source_);
    mount();
    std::string content(chunk_size, 'c');
    const auto file = make(root, "file", S_IFREG);
    write(file, 0, content);
    NACRE_ASSERT_OK(volume_->sync_all());
    const auto change = [&](std::size_t offset, std::size_t size, char with) {
      content.replace(offset, size, size, with);
      write(file, offset, content.substr(offset, size));
      sync(file);
    };
    change(0, chunk_size / 4, 'p');  // worth merging
    std::atomic<int> read_count{0};
    std::shared_ptr<MemoryBacking> killed;
    RecoveredTree before;
    source_->watch([&](std::uint32_t operation, std::string_view path) {
      if (operation != operation_read || !path.starts_with("segments/")) return;
      switch (read_count++) {
        case 0:  // of what is to be merged
          change(1000, 500, 'n');
          if (has_checkpoint) {
            NACRE_EXPECT_OK(volume_.mounted().write_checkpoint(fs::CheckpointKeep::the_one_before));
          }
          break;
        case 1:  // what is dead is about to be removed
          killed = source_->process_kill();
          break;
        default:
          break;
      }
    });
    compact();
    source_->watch({});
    ASSERT_TRUE(killed);
    volume_.reset();
    source_ = killed;
    before = tree_of(source_);
    lose_database(*source_);
    const auto report = salvage_all();
    if (has_checkpoint) {
      EXPECT_TRUE(report.newer.empty());
      expect_same(before);
    } else {
      ASSERT_EQ(report.newer.size(), 1u);
      EXPECT_TRUE(newer_content(fmt::format("#{}", file.value)) == content);
    }
  }
}

TEST_F(Salvage, a_damaged_checkpoint_gives_way_to_the_one_before) {
  make_tree();
  NACRE_ASSERT_OK(volume_.mounted().write_checkpoint(fs::CheckpointKeep::the_one_before));
  const auto before = tree_of(source_);
  make(root, "made after it", S_IFREG);
  unmount();
  const auto found = checkpoints();
  ASSERT_EQ(found.size(), 2u);
  for (const bool hit_root : {false, true}) {
    const auto undamaged = source_;
    source_ = undamaged->process_kill();
    target_ = MemoryBacking::create();
    const auto& row = found.back().second;
    damage(hit_root ? row.root.location : row.parts.front().location);
    lose_database(*source_);
    const auto report = salvage();
    NACRE_ASSERT_OK(report);
    EXPECT_EQ(report->findings.error_count(), 1u) << list(*report);
    EXPECT_NE(list(*report).find("is not whole"), std::string::npos) << list(*report);
    expect_same(before);
    expect_clean(*target_->process_kill());
    source_ = undamaged;
  }
}

TEST_F(Salvage, lost_records_are_told_and_read_as_errors) {
  make_tree();
  unmount();
  const auto before = tree_of(source_);
  damage(location_of(5));
  lose_database(*source_);
  const auto report = salvage();
  NACRE_ASSERT_OK(report);
  EXPECT_EQ(report->lost_record_count, 1u);
  EXPECT_EQ(report->findings.error_count(), 1u) << list(*report);
  const auto& findings = report->findings.findings();
  const auto lost = std::find_if(findings.begin(), findings.end(), [&](const fs::Finding& finding) {
    return finding.severity == fs::Severity::error;
  });
  EXPECT_EQ(lost->inode, large_);
  EXPECT_EQ(lost->paths.size(), 2u);

  const auto volume = open(target_->process_kill());
  NACRE_ASSERT_OK(volume);
  Bytes chunk(chunk_size);
  for (std::uint64_t index = 0; index < 10; ++index) {
    const auto got = (*volume)->read(large_, index * chunk_size, chunk);
    EXPECT_EQ(got.has_value(), index != 5) << index;
    if (!got) continue;
    EXPECT_EQ(as_text(ByteView(chunk).first(*got)),
              before.contents.at(large_).substr(index * chunk_size, chunk_size));
  }
}

// An earlier version reported all of this as rot, in a note.
TEST_F(Salvage, what_the_disk_does_not_read_is_an_error_and_no_rot) {
  make_tree();
  unmount();
  const auto unreadable = location_of(5);
  damage(location_of(7));
  const std::string path = fmt::format("segments/{:012}.seg", unreadable.segment.value);
  source_->set_bad_block(path, unreadable.offset + unreadable.stored_size / 2);
  lose_database(*source_);
  const auto report = salvage();
  NACRE_ASSERT_OK(report);
  int unreadable_count = 0, rot_count = 0;
  for (const auto& finding : report->findings.findings()) {
    if (finding.file != path) continue;
    const bool is_unreadable = finding.verdict == fs::Verdict::unreadable;
    (is_unreadable ? unreadable_count : rot_count) += 1;
    EXPECT_EQ(finding.severity, is_unreadable ? fs::Severity::error : fs::Severity::note);
  }
  EXPECT_EQ(unreadable_count, 1) << list(*report);
  EXPECT_EQ(rot_count, 1) << list(*report);
}

// Records of another volume, under the names of segments of this one.
TEST_F(Salvage, forged_checkpoints_are_refused) {
  make_tree();
  unmount();
  const auto before = tree_of(source_);
  const auto found = checkpoints().back().second;
  const auto other = MemoryBacking::create();
  make_volume(*other);
  {
    auto volume = open(other);
    NACRE_ASSERT_OK(volume);
    for (int i = 0; i < 3; ++i) {
      NACRE_EXPECT_OK((*volume)->make_node(root, fmt::format("forged {}", i), {}, S_IFREG, 0));
      NACRE_EXPECT_OK(volume->mounted().write_checkpoint(fs::CheckpointKeep::the_one_before));
    }
    NACRE_EXPECT_OK(volume->mounted().close());
  }
  std::uint64_t number = 1000;
  for (const auto& path : other->files()) {
    if (path.starts_with("segments/")) {
      source_->store(fmt::format("segments/{:012}.seg", number++), *other->load(path));
    }
  }
  lose_database(*source_);
  const auto report = salvage();
  NACRE_ASSERT_OK(report);
  EXPECT_GT(report->findings.findings().size(), 0u);
  for (const auto& finding : report->findings.findings())
    EXPECT_EQ(to_string(finding.verdict), to_string(fs::Verdict::tampered)) << finding.what;
  expect_same(before);
  static_cast<void>(found);
}

// A copy of the volume was mounted more often, and an attacker put its records behind the volume's
// own. In an earlier version the highest number counted, so the volume's own newer file was
// silently missing.
TEST_F(Salvage, of_two_histories_asks_which_one_counts) {
  const auto file = make(root, "file", S_IFREG);
  write(file, 0, "of both");
  unmount();
  const auto branch = source_->process_kill();
  mount();
  write(file, 0, "its own");
  make(root, "newer", S_IFREG);
  unmount();
  const auto own = source_;
  source_ = branch;
  for (int i = 0; i < 3; ++i) {
    mount();
    write(file, 0, fmt::format("other {}", i));
    unmount();
  }
  source_ = own;
  const auto is_segment = [](const std::string& path) { return path.starts_with("segments/"); };
  const auto paths = own->files();
  const auto first = *std::find_if(paths.begin(), paths.end(), is_segment);
  Bytes bytes = *own->load(first);
  for (const auto& path : branch->files()) {
    if (!is_segment(path)) continue;
    const Bytes added = *branch->load(path);
    bytes.insert(bytes.end(), added.begin() + metadata::segment_header_size_bytes, added.end());
  }
  own->store(first, bytes);
  lose_database(*own);
  const auto asked = salvage();
  ASSERT_FALSE(asked);
  EXPECT_EQ(asked.error().code, ErrorCode::tampered);
  EXPECT_TRUE(target_->files().empty());
  const std::string message = asked.error().message;
  std::set<std::string> contents;
  const std::regex name("([0-9a-f]{8}) \\(checkpoint");
  for (std::sregex_iterator at(message.begin(), message.end(), name), end; at != end; ++at) {
    SCOPED_TRACE(at->str(1));
    target_ = MemoryBacking::create();
    const auto report = salvage(at->str(1));
    NACRE_ASSERT_OK(report);
    EXPECT_EQ(report->findings.error_count(), 0u) << list(*report);
    const auto tree = tree_of(target_);
    contents.insert(tree.contents.at(file));
    EXPECT_EQ(tree.names.find("newer") != std::string::npos, tree.contents.at(file) == "its own");
  }
  EXPECT_TRUE(contents.contains("its own")) << message;
  EXPECT_TRUE(contents.contains("other 2")) << message;
  target_ = MemoryBacking::create();
  const auto unknown = salvage("0123456789abcdef");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, ErrorCode::invalid_argument);
}

TEST_F(Salvage, goes_on_as_a_volume_that_can_be_salvaged_again) {
  make_tree();
  unmount();
  lose_database(*source_);
  salvage_all();
  source_ = target_;
  target_ = MemoryBacking::create();
  mount();
  write(make(root, "afterwards", S_IFREG), 0, noise(2 * chunk_size));
  unmount();
  const auto before = tree_of(source_);
  lose_database(*source_);
  salvage_all();
  expect_same(before);
}

TEST_F(Salvage, a_target_with_other_files_is_left_alone) {
  make_tree();
  unmount();
  lose_database(*source_);
  target_->store("somebody's", as_bytes("file"));
  EXPECT_CODE(not_empty, salvage());
  EXPECT_EQ(target_->files(), std::vector<std::string>{"somebody's"});
}

TEST_F(Salvage, says_beforehand_that_there_is_no_room) {
  make_tree();
  unmount();
  lose_database(*source_);
  target_->set_capacity(128u << 10);
  const auto report = salvage();
  EXPECT_CODE(no_space, report);
  EXPECT_TRUE(target_->files().empty());
}

TEST_F(Salvage, an_older_keyring_is_refused) {
  make_tree();
  const auto rows = [&](std::uint64_t generation) {
    unmount();
    auto keys = metadata::open_volume_keys(*source_, metadata::VolumeSecret(identity(0)));
    NACRE_ASSERT_OK(keys);
    auto engine = engine::Engine::create({.thread_count = 1});
    Result<OpenVolume> volume =
        fs::Mounted::open(source_, keys->keys, generation, std::move(*engine), options_);
    NACRE_ASSERT_OK(volume);
    NACRE_EXPECT_OK((*volume)->make_node(root, "changed", {}, S_IFREG, 0));
    NACRE_EXPECT_OK(volume->mounted().close());
  };
  rows(7);
  lose_database(*source_);
  EXPECT_CODE(rolled_back, salvage());
  EXPECT_TRUE(target_->files().empty());
}

// However a salvage ends, its target becomes a volume only when it is complete, and the next
// salvage succeeds.
TEST_F(Salvage, power_loss_leaves_no_volume_or_a_whole_one) {
  make_tree();
  unmount();
  const auto before = tree_of(source_);
  lose_database(*source_);
  salvage_all();
  Sample sample;
  const std::uint64_t count = target_->change_count();
  const std::uint64_t stride = sample.stride(count, 12);
  std::uint64_t states = 0;
  for (std::uint64_t change = sample.next() % stride; change < count; change += stride) {
    SCOPED_TRACE(testing::Message() << "seed " << sample.seed() << ", change " << change);
    target_ = MemoryBacking::create();
    target_->fail_at(change);
    static_cast<void>(salvage());
    target_ = target_->power_loss(sample.next());
    if (!is_volume(*target_)) salvage_all();
    expect_same(before);
    ++states;
    if (HasFailure()) return;
  }
  sample.print(states, count, "changes");
}

}  // namespace
}  // namespace nacre::tests
