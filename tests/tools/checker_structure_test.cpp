// SPDX-License-Identifier: Apache-2.0
// The structure check: a sound volume is clean, and each defect, made by hand, is found.
#include "tests/tools/checker_fixture.h"

namespace nacre::tests {
namespace {

using fs::ChunkIndex;
using fs::Verdict;
using metadata::ChunkRow;
using metadata::Database;
using metadata::InodeNumber;
using metadata::InodeRow;
using metadata::Table;

using CheckerStructure = CheckerTest;

TEST_F(CheckerStructure, a_sound_volume_is_clean) {
  const auto report = check();
  EXPECT_EQ(report.findings.error_count(), 0u) << list(report);
  EXPECT_TRUE(report.findings.findings().empty()) << list(report);
  ASSERT_TRUE(report.structure);
  EXPECT_EQ(report.structure->inode_count, 7u);
  EXPECT_EQ(report.structure->directory_count, 3u);
  EXPECT_EQ(report.structure->name_count, 7u);
  EXPECT_GE(report.structure->record_count, 7u);
  EXPECT_EQ(report.structure->segment_count > 0, true);
}

TEST_F(CheckerStructure, a_volume_after_power_loss_is_clean) {
  mount();
  const auto unlinked = make_file(root, "unlinked while open");
  write(unlinked, 0, noise(3 * chunk_size, 5));
  NACRE_EXPECT_OK(volume().sync_all());
  NACRE_EXPECT_OK(volume().unlink(root, "unlinked while open"));
  NACRE_EXPECT_OK(volume().sync_all());
  write(small_, 5, "more");
  write(sparse_, 0, noise(2 * chunk_size, 6));
  // The process is gone; nothing recovers the volume before the check.
  auto after = backing_->process_kill();
  volume_.reset();
  backing_ = std::move(after);
  const auto report = check({.deep = true});
  EXPECT_EQ(report.findings.error_count(), 0u) << list(report);
  ASSERT_TRUE(report.structure);
  EXPECT_EQ(report.structure->orphan_count, 1u);
}

TEST_F(CheckerStructure, name_of_nothing) {
  edit([&](Database& database) { database.erase(Table::inodes, metadata::inode_key(sparse_)); });
  const auto finding = expect_finding(Verdict::missing, "which does not exist");
  EXPECT_NE(finding.what.find("'sparse'"), std::string::npos);
}

TEST_F(CheckerStructure, file_without_a_name) {
  edit([&](Database& database) { database.erase(Table::dentries, name_key(database, "sparse")); });
  expect_finding(Verdict::structure, "has a link count of 1, but 0 names lead to it");
}

TEST_F(CheckerStructure, directory_without_a_name) {
  edit([&](Database& database) { database.erase(Table::dentries, name_key(database, "inner")); });
  expect_finding(Verdict::structure, fmt::format("directory {} has 0 names", inner_.value));
}

TEST_F(CheckerStructure, link_count_too_high) {
  edit_inode(small_, [](InodeRow& row) { row.link_count = 3; });
  auto finding = expect_finding(Verdict::structure, "link count of 3, but 2 names");
  std::sort(finding.paths.begin(), finding.paths.end());
  EXPECT_EQ(finding.paths, (std::vector<std::string>{"/folder/small", "/second name"}));
}

TEST_F(CheckerStructure, directory_link_count) {
  edit_inode(folder_, [](InodeRow& row) { row.link_count = 2; });
  const auto finding = expect_finding(Verdict::structure, "link count of 2, it should be 3");
  EXPECT_EQ(finding.paths, std::vector<std::string>{"/folder"});
}

TEST_F(CheckerStructure, directory_entry_count) {
  edit_inode(folder_, [](InodeRow& row) { row.size = 7; });
  expect_finding(Verdict::structure, "counts 7 entries, there are 2");
}

TEST_F(CheckerStructure, directory_with_another_parent) {
  edit_inode(inner_, [](InodeRow& row) { row.parent = metadata::root_inode; });
  expect_finding(Verdict::structure, "whose own row says that its parent is 1");
}

TEST_F(CheckerStructure, directories_in_a_circle) {
  // folder lies in inner, inner in folder: names and counts agree, the root leads to neither.
  edit([&](Database& database) {
    const auto key = name_key(database, "folder");
    const auto value = database.get(Table::dentries, key);
    database.erase(Table::dentries, key);
    const auto hash = metadata::decode_dentry_key(key)->name_hash;
    database.put(Table::dentries, metadata::dentry_key(inner_, hash, "folder"), **value);
    for (const auto& [inode, entries, links] :
         {std::tuple(metadata::root_inode, 3, 2), std::tuple(inner_, 2, 3)}) {
      const auto row_value = database.get(Table::inodes, metadata::inode_key(inode));
      auto row = metadata::decode_inode_row(**row_value);
      row->size = static_cast<std::uint64_t>(entries);
      row->link_count = static_cast<std::uint32_t>(links);
      database.put(Table::inodes, metadata::inode_key(inode), metadata::encode(*row));
    }
    const auto folder_value = database.get(Table::inodes, metadata::inode_key(folder_));
    auto folder = metadata::decode_inode_row(**folder_value);
    folder->parent = inner_;
    database.put(Table::inodes, metadata::inode_key(folder_), metadata::encode(*folder));
  });
  const auto report = check();
  expect_finding(report, Verdict::structure, "lies below itself");
  EXPECT_EQ(report.findings.error_count(), 1u) << list(report);
}

TEST_F(CheckerStructure, name_with_the_hash_of_another) {
  edit([&](Database& database) {
    const auto key = name_key(database, "sparse");
    const auto value = database.get(Table::dentries, key);
    database.erase(Table::dentries, key);
    const auto hash = metadata::decode_dentry_key(key)->name_hash;
    database.put(Table::dentries, metadata::dentry_key(root, hash + 1, "sparse"), **value);
  });
  expect_finding(Verdict::structure, "has the hash of another name");
}

TEST_F(CheckerStructure, name_that_no_directory_may_hold) {
  edit([&](Database& database) {
    const auto key = name_key(database, "sparse");
    const auto value = database.get(Table::dentries, key);
    database.erase(Table::dentries, key);
    database.put(Table::dentries, metadata::dentry_key(root, 99, "a/b"), **value);
  });
  expect_finding(Verdict::structure, "the key of a directory entry row is malformed");
}

TEST_F(CheckerStructure, name_of_another_type) {
  edit([&](Database& database) {
    const auto key = name_key(database, "sparse");
    database.put(Table::dentries, key,
                 metadata::encode(metadata::DentryRow{.inode = sparse_, .type = 4}));
  });
  expect_finding(Verdict::structure, "says that inode");
}

TEST_F(CheckerStructure, orphan_with_links) {
  edit([&](Database& database) {
    database.put(Table::orphans, metadata::orphan_key(sparse_), std::string(1, '\1'));
  });
  expect_finding(Verdict::structure, "is listed as an orphan but has 1 links");
}

TEST_F(CheckerStructure, orphan_that_does_not_exist) {
  edit([&](Database& database) {
    database.put(Table::orphans, metadata::orphan_key(InodeNumber{999}), std::string(1, '\1'));
  });
  expect_finding(Verdict::structure, "inode 999 is listed as an orphan but does not exist");
}

TEST_F(CheckerStructure, attribute_of_nothing) {
  edit([&](Database& database) {
    database.put(Table::xattrs, metadata::xattr_key(InodeNumber{999}, "user.x"), "\1x");
  });
  expect_finding(Verdict::structure, "belongs to inode 999, which does not exist");
}

TEST_F(CheckerStructure, rows_that_do_not_decode) {
  leave_it_broken("a later version may know the row of the table system");
  edit([&](Database& database) {
    database.put(Table::inodes, metadata::inode_key(sparse_), "garbage");
    database.put(Table::chunks, "short key", "garbage");
    database.put(Table::segments, "short key", "garbage");
    database.put(Table::system, "unheard of", "garbage");
  });
  const auto report = check();
  const auto inode =
      expect_finding(report, Verdict::rot, fmt::format("the row of inode {}", sparse_.value));
  EXPECT_EQ(inode.paths, std::vector<std::string>{"/sparse"});
  expect_finding(report, Verdict::structure, "table chunks, key");
  expect_finding(report, Verdict::structure, "table segments, key");
  expect_finding(report, Verdict::structure, "'unheard of' that this version does not know");
}

TEST_F(CheckerStructure, file_with_a_chunk_that_no_row_covers) {
  edit([&](Database& database) {
    database.erase(Table::chunks, metadata::chunk_key(large_, ChunkIndex{3}));
  });
  const auto finding =
      expect_finding(Verdict::missing, fmt::format("chunks 3 to 3 of inode {}", large_.value));
  EXPECT_EQ(finding.paths, std::vector<std::string>{"/folder/inner/large"});
}

TEST_F(CheckerStructure, file_with_no_rows_at_all) {
  edit([&](Database& database) {
    database.erase(Table::chunks, metadata::chunk_key(small_, ChunkIndex{0}));
  });
  expect_finding(Verdict::missing, fmt::format("chunks 0 to 0 of inode {}", small_.value));
}

TEST_F(CheckerStructure, file_whose_last_chunk_no_row_covers) {
  edit_inode(large_, [](InodeRow& row) { row.size += 2 * chunk_size; });
  expect_finding(Verdict::missing, fmt::format("chunks 6 to 7 of inode {}", large_.value));
}

TEST_F(CheckerStructure, row_beyond_the_end_of_its_file) {
  edit_inode(large_, [](InodeRow& row) { row.size = chunk_size; });
  expect_finding(Verdict::structure, "which has 1");
}

TEST_F(CheckerStructure, chunk_longer_than_the_end_of_its_file) {
  edit_inode(large_, [](InodeRow& row) { row.size -= 50; });
  expect_finding(Verdict::structure, "holds 100 bytes, but the file ends after 50 of them");
}

TEST_F(CheckerStructure, hole_over_a_chunk) {
  edit([&](Database& database) {
    database.put(Table::chunks, metadata::chunk_key(sparse_, ChunkIndex{0}),
                 metadata::encode(metadata::HoleRow{.chunk_count = 11}));
  });
  expect_finding(Verdict::structure,
                 fmt::format("two rows cover chunk 10 of inode {}", sparse_.value));
}

TEST_F(CheckerStructure, hole_without_an_end) {
  edit([&](Database& database) {
    database.put(Table::chunks, metadata::chunk_key(sparse_, ChunkIndex{0}),
                 metadata::encode(metadata::HoleRow{.chunk_count = ~0ull}));
  });
  expect_finding(Verdict::structure, "two rows cover chunk 10");
}

TEST_F(CheckerStructure, chunks_of_a_directory_and_of_nothing) {
  edit([&](Database& database) {
    const auto hole = metadata::encode(metadata::HoleRow{.chunk_count = 1});
    database.put(Table::chunks, metadata::chunk_key(folder_, ChunkIndex{0}), hole);
    database.put(Table::chunks, metadata::chunk_key(InodeNumber{999}, ChunkIndex{0}), hole);
  });
  const auto report = check();
  expect_finding(report, Verdict::structure, "which is no regular file");
  expect_finding(report, Verdict::structure, "belong to inode 999, which does not exist");
}

TEST_F(CheckerStructure, chunk_larger_than_chunks_are) {
  edit_chunk(large_, 2, [](ChunkRow& row) { row.base->plain_size = chunk_size + 1; });
  edit_chunk(large_, 3, [](ChunkRow& row) {
    row.patches.push_back({.offset = chunk_size - 1,
                           .plain_size = 2,
                           .valid_size = 1,
                           .version = row.base->version,
                           .location = row.base->location});
  });
  const auto report = check();
  expect_finding(report, Verdict::structure, "has a base of 16385 bytes");
  expect_finding(report, Verdict::structure, "has a patch at 16383 of 2 bytes");
}

TEST_F(CheckerStructure, data_bytes_of_a_file) {
  edit_inode(large_, [](InodeRow& row) { row.data_bytes += 1; });
  const auto report = check();
  expect_finding(report, Verdict::structure, "bytes of data, its rows hold");
  expect_finding(report, Verdict::structure, "the database counts");
}

TEST_F(CheckerStructure, inlined_bytes_gone) {
  edit([&](Database& database) {
    std::string key;
    NACRE_EXPECT_OK(
        database.scan(Table::inlined, "", "", [&](std::string_view k, std::string_view) {
          key = k;
          return false;
        }));
    ASSERT_FALSE(key.empty()) << "the fixture's small write was not inlined";
    database.erase(Table::inlined, key);
  });
  const auto finding = expect_finding(Verdict::missing, "13 inlined bytes of a patch");
  EXPECT_EQ(finding.paths, std::vector<std::string>{"/folder/inner/large"});
}

TEST_F(CheckerStructure, inlined_bytes_that_nobody_names) {
  edit([&](Database& database) {
    database.put(Table::inlined,
                 metadata::inlined_key(large_, ChunkIndex{0}, metadata::RecordVersion{1}, 0), "x");
  });
  expect_finding(Verdict::structure, "inlined bytes that no chunk row names");
}

TEST_F(CheckerStructure, record_of_a_session_that_never_was) {
  edit_chunk(large_, 2, [](ChunkRow& row) {
    row.base->version.value = 77ull << metadata::record_version_session_shift;
  });
  expect_finding(Verdict::rolled_back, "of write session 77");
}

TEST_F(CheckerStructure, two_rows_with_one_record) {
  const auto other = record_of(large_, 0);
  edit_chunk(large_, 2, [&](ChunkRow& row) { row.base->location = other.location; });
  expect_finding(Verdict::structure, "name overlapping records");
}

TEST_F(CheckerStructure, records_that_overlap_by_a_byte) {
  const auto other = record_of(large_, 0);
  edit_chunk(large_, 2, [&](ChunkRow& row) {
    row.base->location = {other.location.segment,
                          other.location.offset + other.location.stored_size - 1, 100};
  });
  expect_finding(Verdict::structure, "name overlapping records");
}

TEST_F(CheckerStructure, record_beyond_what_is_committed) {
  edit_chunk(large_, 2, [](ChunkRow& row) { row.base->location.offset = 1ull << 40; });
  expect_finding(Verdict::missing, "bytes are committed");
}

TEST_F(CheckerStructure, record_in_a_segment_that_is_not_there) {
  edit_chunk(large_, 2, [](ChunkRow& row) { row.base->location.segment.value = 4711; });
  const auto finding = expect_finding(Verdict::missing, "there is no such segment");
  EXPECT_EQ(finding.paths, std::vector<std::string>{"/folder/inner/large"});
}

TEST_F(CheckerStructure, record_within_the_segment_header) {
  edit_chunk(large_, 2, [](ChunkRow& row) { row.base->location.offset = 8; });
  expect_finding(Verdict::structure, "no record can lie there");
}

TEST_F(CheckerStructure, live_count_of_a_segment) {
  edit([&](Database& database) {
    const auto key = metadata::segment_key(record_of(large_, 0).location.segment);
    const auto value = database.get(Table::segments, key);
    auto row = metadata::decode_segment_row(**value);
    row->live_bytes += 5;
    database.put(Table::segments, key, metadata::encode(*row));
  });
  expect_finding(Verdict::structure, "live bytes, rows name");
}

TEST_F(CheckerStructure, segment_of_an_unknown_session) {
  edit([&](Database& database) {
    const auto key = metadata::segment_key(record_of(large_, 0).location.segment);
    const auto value = database.get(Table::segments, key);
    auto row = metadata::decode_segment_row(**value);
    row->salt[0] ^= 1;
    database.put(Table::segments, key, metadata::encode(*row));
  });
  const auto report = check();
  expect_finding(report, Verdict::rolled_back, "belongs to a write session that the database");
  expect_finding(report, Verdict::rolled_back, "made in another write session than its row says");
}

TEST_F(CheckerStructure, segment_file_gone) {
  const auto segment = record_of(large_, 0).location.segment;
  backing_->erase(path_of(segment));
  const auto report = check({.deep = true});
  EXPECT_EQ(expect_finding(report, Verdict::missing, "the segment is gone").file, path_of(segment));
  // The deep check says which files are hit.
  bool named = false;
  for (const auto& finding : report.findings.findings()) {
    named = named || (finding.verdict == Verdict::missing &&
                      finding.paths == std::vector<std::string>{"/folder/inner/large"});
  }
  EXPECT_TRUE(named) << list(report);
}

TEST_F(CheckerStructure, segment_file_shorter_than_committed) {
  const auto segment = record_of(large_, 0).location.segment;
  edit_file(path_of(segment), [](Bytes& bytes) { bytes.resize(bytes.size() - 1); });
  expect_finding(Verdict::missing, "committed bytes");
}

TEST_F(CheckerStructure, torn_tail_of_a_segment_is_a_note) {
  const auto segment = record_of(large_, 0).location.segment;
  edit_file(path_of(segment), [](Bytes& bytes) { bytes.resize(bytes.size() + 1000, 0x5a); });
  const auto report = check({.deep = true});
  EXPECT_EQ(report.findings.error_count(), 0u) << list(report);
  ASSERT_EQ(report.findings.findings().size(), 1u);
  EXPECT_NE(report.findings.findings()[0].what.find("1000 bytes beyond the last commit"),
            std::string::npos);
}

TEST_F(CheckerStructure, segment_that_no_commit_named_is_a_note) {
  leave_it_broken("the newer db/ must be put back");
  const auto record = record_of(large_, 0);
  edit_file(path_of(record.location.segment), [&](Bytes& bytes) {
    auto header = metadata::decode_segment_header(bytes);
    NACRE_ASSERT_OK(header);
    header->segment.value = 4711;
    const auto encoded = metadata::encode(*header);
    backing_->store(path_of(metadata::SegmentNumber{4711}), encoded);
    // A segment of a session that the database does not know is no leftover: db/ was put back to an
    // older state.
    header->segment.value = 4712;
    header->salt[3] ^= 1;
    backing_->store(path_of(metadata::SegmentNumber{4712}), metadata::encode(*header));
  });
  const auto report = check();
  EXPECT_EQ(report.findings.error_count(), 1u) << list(report);
  EXPECT_EQ(expect_finding(report, Verdict::rolled_back, "does not know: db/ was put back").file,
            path_of(metadata::SegmentNumber{4712}));
}

TEST_F(CheckerStructure, counters_that_would_hand_out_numbers_twice) {
  edit([&](Database& database) {
    for (const auto key : {metadata::system_key_next_inode, metadata::system_key_next_segment,
                           metadata::system_key_next_session}) {
      database.put(Table::system, key, metadata::encode_u64(1));
    }
  });
  const auto report = check();
  expect_finding(report, Verdict::structure, "the next inode number would be 1");
  expect_finding(report, Verdict::structure, "the next segment number would be 1");
  expect_finding(report, Verdict::structure, "the next session number would be 1");
}

TEST_F(CheckerStructure, system_rows_gone) {
  edit([&](Database& database) {
    database.erase(Table::system, metadata::system_key_name_hash);
    database.erase(Table::system, metadata::system_key_inode_count);
  });
  const auto report = check();
  expect_finding(report, Verdict::structure, "no row 'name_hash_key'");
  expect_finding(report, Verdict::structure, "no row 'inode_count'");
}

TEST_F(CheckerStructure, totals) {
  edit([&](Database& database) {
    database.put(Table::system, metadata::system_key_inode_count, metadata::encode_u64(70));
  });
  expect_finding(Verdict::structure, "the database counts 70 inodes, there are 7");
}

TEST_F(CheckerStructure, keyring_put_back) {
  leave_it_broken("the newer keyring must be put back");
  edit([&](Database& database) {
    database.put(Table::system, metadata::system_key_keyring, metadata::encode_u64(3));
  });
  keyring_generation_ = 2;
  expect_finding(Verdict::rolled_back, "generation 3: an older one was put back");
}

TEST_F(CheckerStructure, no_root) {
  edit([&](Database& database) { database.erase(Table::inodes, metadata::inode_key(root)); });
  expect_finding(Verdict::missing, "there is no root directory");
}

TEST_F(CheckerStructure, inode_rows_that_make_no_sense) {
  edit_inode(small_, [](InodeRow& row) { row.mode = 0; });
  edit_inode(sparse_, [](InodeRow& row) { row.symlink_target = "nowhere"; });
  edit_inode(inner_, [](InodeRow& row) { row.parent = InodeNumber{}; });
  const auto report = check();
  expect_finding(report, Verdict::structure, "names no type of file");
  expect_finding(report, Verdict::structure, "a target, but it is no symbolic link");
  expect_finding(report, Verdict::structure, "a directory without a parent");
}

}  // namespace
}  // namespace nacre::tests
