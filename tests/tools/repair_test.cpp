// SPDX-License-Identifier: Apache-2.0
// Repairs: the content of a volume after a repair, in cases that the checker's tests do not cover.
#include <random>
#include <set>

#include "fs/check/record_index.h"
#include "tests/crash/sample.h"
#include "tests/tools/checker_fixture.h"
#include "tests/tools/repair_fixture.h"

namespace nacre::tests {
namespace {

using metadata::Table;

class Repair : public CheckerTest {
 protected:
  using CheckerTest::list;
  using VolumeTest::list;
  void SetUp() override {
    CheckerTest::SetUp();
    store_superblock_and_keyring(*backing_, chunk_size);
  }
  Repairer repairer() { return {backing_, opened_keys(chunk_size, keyring_generation_)}; }
  // The row of an inode is gone, as after damage to db/.
  void lose_inode(fs::InodeNumber inode) {
    edit([&](metadata::Database& database) {
      database.erase(Table::inodes, metadata::inode_key(inode));
    });
  }
  // In the mounted volume.
  void expect_read(fs::InodeNumber inode, std::uint64_t offset, const std::string& expected) {
    Bytes out(expected.size());
    const auto count = volume().read(inode, offset, out);
    NACRE_ASSERT_OK(count);
    ASSERT_EQ(*count, expected.size());
    EXPECT_EQ(as_text(out), expected);
  }
  void expect_lost(fs::InodeNumber inode, std::uint64_t offset, std::size_t size) {
    Bytes out(size);
    EXPECT_CODE(missing, volume().read(inode, offset, out));
  }
};

TEST_F(Repair, has_nothing_to_do_on_a_sound_volume) {
  const auto done = repairer().expect_repaired();
  EXPECT_TRUE(done.draft.plan.steps.empty()) << text_of(done.draft.plan);
  EXPECT_TRUE(done.draft.plan.lost.empty());
  EXPECT_FALSE(backing_->exists("repair").value_or(true)) << "no plan, no folder";
}

TEST_F(Repair, keeps_the_good_chunks_of_a_file_and_lists_the_range_that_is_lost) {
  flip(record_of(large_, 2), 100);
  const auto done = repairer().expect_repaired();
  ASSERT_EQ(done.draft.plan.lost.size(), 1u) << text_of(done.draft.plan);
  const auto& lost = done.draft.plan.lost.front();
  EXPECT_EQ(lost.inode, large_);
  EXPECT_EQ(lost.offset, 2 * chunk_size);
  EXPECT_EQ(lost.size, chunk_size);
  EXPECT_EQ(lost.verdict, fs::Verdict::rot);
  EXPECT_EQ(lost.paths, std::vector<std::string>{"/folder/inner/large"});

  const auto report = check({.deep = true});
  ASSERT_TRUE(report.structure);
  EXPECT_EQ(report.structure->lost_bytes, chunk_size);
  mount();
  std::string content = noise(5 * chunk_size + 100, 1);
  content.replace(chunk_size + 10, 13, "inlined bytes");
  expect_read(large_, 0, content.substr(0, 2 * chunk_size));
  expect_lost(large_, 2 * chunk_size, chunk_size);
  expect_lost(large_, 3 * chunk_size - 1, 1);
  expect_read(large_, 3 * chunk_size, content.substr(3 * chunk_size));
  EXPECT_EQ(read(small_), "a few bytes");
}

TEST_F(Repair, leaves_lost_bytes_that_can_be_written_cut_off_and_removed) {
  flip(record_of(large_, 2), 100);
  flip(record_of(large_, 5), 60);
  flip(record_of(sparse_, 10), 100);
  repairer().expect_repaired();
  mount();
  write(large_, 2 * chunk_size + 50, "known again");
  NACRE_EXPECT_OK(sync(large_));
  expect_read(large_, 2 * chunk_size + 50, "known again");
  expect_lost(large_, 2 * chunk_size + 49, 1);
  NACRE_EXPECT_OK(volume().change_attributes(large_, {.size = 5 * chunk_size + 10}));
  remount();
  expect_lost(large_, 5 * chunk_size, 10);
  NACRE_EXPECT_OK(volume().unlink(root, "sparse"));
  write(large_, 2 * chunk_size, noise(chunk_size, 9));
  unmount();
  const auto report = check({.deep = true});
  EXPECT_EQ(report.findings.error_count(), 0u) << list(report);
  EXPECT_EQ(report.structure->lost_bytes, 10u);
}

TEST_F(Repair, drops_what_is_damaged_when_asked_to_and_says_so) {
  flip(record_of(large_, 2), 100);
  const auto done = repairer().expect_repaired({.drop_damaged = true});
  ASSERT_EQ(done.draft.plan.lost.size(), 1u);
  EXPECT_TRUE(done.draft.plan.lost.front().is_dropped);
  EXPECT_EQ(check().structure->lost_bytes, 0u);
  mount();
  expect_read(large_, 2 * chunk_size, std::string(chunk_size, '\0'));
  expect_read(large_, 3 * chunk_size, noise(5 * chunk_size + 100, 1).substr(3 * chunk_size));
}

TEST_F(Repair, drops_later_what_an_earlier_repair_stated_as_lost) {
  flip(record_of(large_, 2), 100);
  repairer().expect_repaired();
  const auto done = repairer().expect_repaired({.drop_damaged = true});
  ASSERT_EQ(done.draft.plan.lost.size(), 1u);
  EXPECT_EQ(done.draft.plan.lost.front().size, chunk_size);
  EXPECT_EQ(check().structure->lost_bytes, 0u);
}

TEST_F(Repair, of_a_lost_patch_never_shows_the_bytes_below_it) {
  edit([&](metadata::Database& database) {
    std::string key;
    NACRE_EXPECT_OK(database.scan(Table::inlined, "", "", [&](std::string_view found, auto) {
      key = found;
      return false;
    }));
    ASSERT_FALSE(key.empty());
    database.erase(Table::inlined, key);
  });
  const auto kept = backing_->process_kill();
  for (const bool drops : {false, true}) {
    backing_ = kept->process_kill();
    const auto done = repairer().expect_repaired({.drop_damaged = drops});
    ASSERT_EQ(done.draft.plan.lost.size(), 1u) << text_of(done.draft.plan);
    EXPECT_EQ(done.draft.plan.lost.front().offset, chunk_size + 10);
    EXPECT_EQ(done.draft.plan.lost.front().size, 13u);
    mount();
    const std::string content = noise(5 * chunk_size + 100, 1);
    expect_read(large_, 0, content.substr(0, chunk_size + 10));
    expect_read(large_, chunk_size + 23, content.substr(chunk_size + 23, 2 * chunk_size));
    if (drops) {
      expect_read(large_, chunk_size + 10, std::string(13, '\0'));
    } else {
      expect_lost(large_, chunk_size + 10, 13);
    }
    unmount();
  }
}

TEST_F(Repair, makes_a_file_anew_of_which_only_chunks_and_a_name_are_left) {
  lose_inode(large_);
  repairer().expect_repaired();
  mount();
  EXPECT_EQ(find(inner_, "large"), large_);
  const auto attributes = stat(large_);
  EXPECT_EQ(attributes.mode & 07777, 0600u);
  EXPECT_EQ(attributes.size, 5u * chunk_size + 100);
  EXPECT_EQ(read(large_).substr(3 * chunk_size),
            noise(5 * chunk_size + 100, 1).substr(3 * chunk_size));
}

TEST_F(Repair, makes_a_directory_anew_of_which_only_entries_are_left) {
  lose_inode(inner_);
  lose_inode(folder_);
  repairer().expect_repaired();
  mount();
  EXPECT_EQ(find(find(root, "folder"), "inner"), inner_);
  EXPECT_EQ(list(inner_), std::vector<std::string>{"large"});
}

TEST_F(Repair, gives_what_has_no_name_one_in_lost_found) {
  edit([&](metadata::Database& database) {
    database.erase(Table::dentries, name_key(database, "inner"));
    database.erase(Table::dentries, name_key(database, "sparse"));
  });
  repairer().expect_repaired();
  mount();
  const auto place = find(root, "lost+found");
  EXPECT_EQ(stat(place).mode & 07777, 0700u);
  EXPECT_EQ(list(place), (std::vector<std::string>{fmt::format("#{}", inner_.value),
                                                   fmt::format("#{}", sparse_.value)}));
  EXPECT_EQ(list(inner_), std::vector<std::string>{"large"});
  unmount();
  // Files that are lost later go to the same folder.
  edit([&](metadata::Database& database) {
    database.erase(Table::dentries, name_key(database, "large"));
  });
  repairer().expect_repaired();
  mount();
  EXPECT_EQ(find(root, "lost+found"), place);
  EXPECT_EQ(list(place).size(), 3u);
}

TEST_F(Repair, lists_orphans_of_an_unclean_stop_as_no_damage) {
  mount();
  const auto unlinked = make_file(root, "unlinked while open");
  write(unlinked, 0, noise(3 * chunk_size, 5));
  NACRE_EXPECT_OK(volume().unlink(root, "unlinked while open"));
  NACRE_EXPECT_OK(volume().sync_all());
  auto after = backing_->process_kill();
  volume_.reset();
  backing_ = std::move(after);
  const auto done = repairer().expect_repaired();
  EXPECT_TRUE(done.draft.plan.steps.empty()) << text_of(done.draft.plan);
}

TEST_F(Repair, restores_a_copy_of_superblock_and_keyring_from_the_other) {
  for (const std::string name : {"superblock", "superblock.copy", "keyring", "keyring.copy"}) {
    SCOPED_TRACE(name);
    const auto sound = backing_->load(name);
    edit_file(name, [](Bytes& bytes) { bytes.at(20) ^= 1; });
    repairer().expect_repaired();
    EXPECT_EQ(backing_->load(name), sound);
    backing_->erase(name);
    repairer().expect_repaired();
    EXPECT_EQ(backing_->load(name), sound);
  }
}

TEST_F(Repair, of_a_missing_segment_loses_what_was_in_it_and_no_more) {
  const auto segment = record_of(sparse_, 10).location.segment;
  std::set<std::pair<std::uint64_t, std::uint64_t>> gone, lost;
  for (const auto& record : records()) {
    if (record.location.segment == segment)
      gone.emplace(record.name.inode.value, record.name.chunk.value);
  }
  backing_->erase(path_of(segment));
  const auto done = repairer().expect_repaired();
  for (const auto& range : done.draft.plan.lost) {
    EXPECT_EQ(range.verdict, fs::Verdict::missing);
    lost.emplace(range.inode.value, range.offset / chunk_size);
  }
  EXPECT_EQ(lost, gone);
  mount();
}

TEST_F(Repair, drops_a_checkpoint_of_which_a_record_is_damaged) {
  mount();
  NACRE_EXPECT_OK(mounted().write_checkpoint(fs::CheckpointKeep::the_one_before));
  unmount();
  std::optional<fs::NamedRecord> of_checkpoint;
  for (const auto& record : records()) {
    if (!metadata::is_of_file(record.name.kind)) of_checkpoint = record;
  }
  ASSERT_TRUE(of_checkpoint);
  flip(*of_checkpoint, 50);
  const auto done = repairer().expect_repaired();
  EXPECT_TRUE(done.draft.plan.lost.empty()) << text_of(done.draft.plan);
  EXPECT_NE(text_of(done.draft.plan).find("a checkpoint names a bad record"), std::string::npos);
}

TEST_F(Repair, never_takes_what_the_disk_cannot_read_for_lost) {
  const auto record = record_of(large_, 2);
  backing_->inject({.operations = operation_read,
                    .path_part = path_of(record.location.segment),
                    .code = ErrorCode::io});
  const auto draft = repairer().plan();
  backing_->clear_failures();
  NACRE_ASSERT_OK(draft);
  EXPECT_TRUE(draft->plan.lost.empty()) << text_of(draft->plan);
  EXPECT_GT(draft->left.error_count(), 0u);
  EXPECT_NE(text_of(draft->left).find("sound disk"), std::string::npos) << text_of(draft->left);
}

TEST_F(Repair, is_refused_with_an_older_keyring_whose_keys_may_not_do) {
  edit([&](metadata::Database& database) {
    database.put(Table::system, metadata::system_key_keyring, metadata::encode_u64(7));
  });
  EXPECT_CODE(rolled_back, repairer().plan());
}

TEST_F(Repair, cannot_be_undone_once_the_volume_went_on) {
  flip(record_of(large_, 2), 100);
  auto done = repairer().repair();
  NACRE_ASSERT_OK(done);
  ASSERT_FALSE(done->name.empty());
  mount();
  write(small_, 0, "other words");
  unmount();
  const auto before = state_of(backing_);
  const auto volume_keys = opened_keys(chunk_size, 1);
  EXPECT_CODE(not_permitted, fs::undo_plan(backing_, volume_keys, done->draft.plan));
  EXPECT_EQ(difference(before, state_of(backing_)), "");
}

TEST_F(Repair, plan_is_sealed_and_any_change_of_it_is_noticed) {
  flip(record_of(large_, 2), 100);
  auto done = repairer().repair();
  NACRE_ASSERT_OK(done);
  const std::string path = "repair/" + done->name + ".plan";
  const auto content = backing_->load(path);
  ASSERT_TRUE(content);
  EXPECT_EQ(as_text(*content).find("large"), std::string::npos) << "a name in the clear";
  for (std::size_t at = 0; at < content->size(); at += 7) {
    edit_file(path, [&](Bytes& bytes) { bytes.at(at) ^= 1; });
    EXPECT_FALSE(fs::load_plan(*backing_, *test_keys(), done->name)) << "byte " << at;
    backing_->store(path, *content);
  }
  backing_->store(path, ByteView(*content).first(content->size() - 1));
  EXPECT_FALSE(fs::load_plan(*backing_, *test_keys(), done->name));
  backing_->store(path, *content);
  backing_->store("repair/another.plan", *content);
  EXPECT_CODE(tampered, fs::load_plan(*backing_, *test_keys(), "another"));
  const auto none = fs::load_plan(*backing_, *test_keys(), "none");
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find(done->name), std::string::npos) << none.error().message;
}

// A sparse file of two gigabytes was read as a whole before any of it was authenticated.
TEST_F(Repair, plan_of_a_size_that_none_has_is_refused_before_it_is_read) {
  Bytes file(16u << 20);
  const std::string_view magic = "NRPL";
  std::copy(magic.begin(), magic.end(), file.begin());
  store_le(file.data() + magic.size(), static_cast<std::uint32_t>(file.size() - 8));
  backing_->store("repair/large.plan", file);
  const auto plan = fs::load_plan(*backing_, *test_keys(), "large");
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().code, ErrorCode::corrupt);
  EXPECT_NE(plan.error().message.find("too large"), std::string::npos) << plan.error().message;
}

// 2,000 files, or 20,000 with NACRE_LONG; one in a hundred has a damaged record.
TEST_F(Repair, of_one_record_in_a_hundred_leaves_all_other_files_as_they_were) {
  const Sample sample;
  SCOPED_TRACE(::testing::Message() << "seed " << sample.seed());
  std::mt19937_64 random(sample.seed());
  const std::size_t count = sample.is_long() ? 20000 : 2000;
  mount();
  std::map<std::uint64_t, std::string> contents;
  fs::InodeNumber directory;
  for (std::size_t i = 0; i < count; ++i) {
    if (i % 100 == 0) directory = make_directory(root, fmt::format("d{}", i));
    const auto inode = make_file(directory, fmt::format("f{}", i));
    const std::size_t size = 1 + random() % (i % 50 == 0 ? 3 * chunk_size : 2000);
    contents[inode.value] = noise(size, static_cast<unsigned>(random()));
    write(inode, 0, contents[inode.value]);
  }
  unmount();
  std::set<std::pair<std::uint64_t, std::uint64_t>> damaged;
  std::map<std::string, Bytes> segments;
  for (const auto& record : records()) {
    if (!contents.contains(record.name.inode.value) || random() % 100 != 0) continue;
    Bytes& bytes = segments.try_emplace(path_of(record.location.segment)).first->second;
    if (bytes.empty()) bytes = *backing_->load(path_of(record.location.segment));
    bytes.at(record.location.offset + random() % record.location.stored_size) ^=
        static_cast<Byte>(1 + random() % 255);
    damaged.emplace(record.name.inode.value, record.name.chunk.value * chunk_size);
  }
  for (const auto& [path, bytes] : segments)
    backing_->store(path, bytes);
  ASSERT_GT(damaged.size(), count / 300);

  const auto done = repairer().expect_repaired();
  std::set<std::pair<std::uint64_t, std::uint64_t>> lost;
  for (const auto& range : done.draft.plan.lost) {
    lost.emplace(range.inode.value, range.offset);
    const std::uint64_t end = contents.at(range.inode.value).size();
    EXPECT_EQ(range.size, std::min<std::uint64_t>(chunk_size, end - range.offset));
    EXPECT_EQ(range.paths.size(), 1u);
  }
  EXPECT_EQ(lost, damaged);
  mount();
  for (const auto& [number, content] : contents) {
    const fs::InodeNumber inode{number};
    for (std::uint64_t at = 0; at < content.size(); at += chunk_size) {
      if (damaged.contains({number, at})) {
        expect_lost(inode, at, 1);
      } else {
        expect_read(inode, at, content.substr(at, chunk_size));
      }
    }
  }
}

}  // namespace
}  // namespace nacre::tests
