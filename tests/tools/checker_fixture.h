// SPDX-License-Identifier: Apache-2.0
// A volume in memory with a few files of every kind, unmounted, whose rows and bytes a test may
// change before the checker looks at it. Built with NACRE_REPAIRS_EVERY_DEFECT each test ends with
// a repair of what it did to the volume (repair_fixture.h).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "fs/check/checker.h"
#include "fs/check/record_index.h"
#include "tests/fs/volume_fixture.h"
#include "tests/support/noise.h"
#ifdef NACRE_REPAIRS_EVERY_DEFECT
#include "tests/tools/repair_fixture.h"
#endif

namespace nacre::tests {

class CheckerTest : public VolumeTest {
 protected:
  static constexpr std::uint32_t chunk_size = 16u << 10;

  void SetUp() override {
    VolumeTest::SetUp();
    folder_ = make_directory(root, "folder");
    inner_ = make_directory(folder_, "inner");
    small_ = make_file(folder_, "small");
    write(small_, 0, "a few bytes");
    large_ = make_file(inner_, "large");
    write(large_, 0, noise(5 * chunk_size + 100, 1));
    sparse_ = make_file(root, "sparse");
    write(sparse_, 10 * chunk_size, noise(chunk_size, 2));
    NACRE_EXPECT_OK(volume().link(small_, root, "second name"));
    NACRE_EXPECT_OK(volume().make_symlink(root, "link", caller_, "folder/small"));
    NACRE_EXPECT_OK(volume().set_xattr(small_, "user.note", "noted", fs::XattrMode::set, false));
    NACRE_EXPECT_OK(volume().sync_all());
    // A small synchronous write over a chunk that is stored already stays in the database.
    write(large_, chunk_size + 10, "inlined bytes");
    NACRE_EXPECT_OK(sync(large_));
    unmount();
  }

#ifdef NACRE_REPAIRS_EVERY_DEFECT
  void TearDown() override {
    VolumeTest::TearDown();
    if (HasFailure() || is_beyond_repair_) return;
    store_superblock_and_keyring(*backing_, chunk_size);
    Repairer(backing_, opened_keys(chunk_size, keyring_generation_)).expect_repaired();
  }
#endif
  // Declares that no repair can mend what this test does, with the reason.
  void leave_it_broken(std::string_view) {
    is_beyond_repair_ = true;
  }

  // Changes rows of the unmounted volume.
  void edit(const std::function<void(metadata::Database&)>& change) {
    auto database = metadata::Database::open(backing_, test_keys(), {});
    NACRE_ASSERT_OK(database);
    change(**database);
    (*database)->freeze();
    NACRE_EXPECT_OK((*database)->commit_frozen(true));
    NACRE_EXPECT_OK((*database)->close());
  }
  void edit_inode(fs::InodeNumber inode, const std::function<void(metadata::InodeRow&)>& change) {
    edit([&](metadata::Database& database) {
      const auto value = database.get(metadata::Table::inodes, metadata::inode_key(inode));
      ASSERT_TRUE(value && *value);
      auto row = metadata::decode_inode_row(**value);
      NACRE_ASSERT_OK(row);
      change(*row);
      database.put(metadata::Table::inodes, metadata::inode_key(inode), metadata::encode(*row));
    });
  }
  void edit_chunk(fs::InodeNumber inode, std::uint64_t index,
                  const std::function<void(metadata::ChunkRow&)>& change) {
    edit([&](metadata::Database& database) {
      const auto key = metadata::chunk_key(inode, fs::ChunkIndex{index});
      const auto value = database.get(metadata::Table::chunks, key);
      ASSERT_TRUE(value && *value) << "no row of chunk " << index;
      auto row = metadata::decode_chunk_map_row(**value);
      NACRE_ASSERT_OK(row);
      ASSERT_TRUE(row->chunk);
      change(*row->chunk);
      database.put(metadata::Table::chunks, key, metadata::encode(*row->chunk));
    });
  }
  // The key of a name, by what it names.
  static std::string name_key(const metadata::Database& database, std::string_view name) {
    std::string found;
    NACRE_EXPECT_OK(database.scan(metadata::Table::dentries, "", "",
                                  [&](std::string_view key, std::string_view) {
                                    if (metadata::decode_dentry_key(key)->name == name) found = key;
                                    return found.empty();
                                  }));
    EXPECT_FALSE(found.empty()) << name;
    return found;
  }
  // Every record that rows name.
  std::vector<fs::NamedRecord> records() {
    std::vector<fs::NamedRecord> all;
    auto database = metadata::Database::open(backing_, test_keys(), {.read_only = true});
    NACRE_EXPECT_OK(database);
    const auto index = fs::RecordIndex::build(**database);
    NACRE_EXPECT_OK(index);
    NACRE_EXPECT_OK(index->for_each_segment(
        [&](fs::SegmentNumber, std::span<const fs::NamedRecord> named) -> Result<> {
          all.insert(all.end(), named.begin(), named.end());
          return {};
        }));
    EXPECT_FALSE(all.empty());
    return all;
  }
  fs::NamedRecord record_of(fs::InodeNumber inode, std::uint64_t index) {
    for (const auto& record : records()) {
      if (record.name.inode == inode && record.name.chunk.value == index) return record;
    }
    ADD_FAILURE() << "no record of chunk " << index;
    return {};
  }
  static std::string path_of(fs::SegmentNumber segment) {
    return fmt::format("segments/{:012}.seg", segment.value);
  }
  void edit_file(const std::string& path, const std::function<void(Bytes&)>& change) {
    auto bytes = backing_->load(path);
    ASSERT_TRUE(bytes) << path;
    change(*bytes);
    backing_->store(path, *bytes);
  }
  void flip(const fs::NamedRecord& record, std::uint64_t offset) {
    edit_file(path_of(record.location.segment),
              [&](Bytes& bytes) { bytes.at(record.location.offset + offset) ^= 1; });
  }

  fs::CheckReport check(const fs::CheckOptions& options = {}) {
    metadata::VolumeKeys volume;
    volume.keys = test_keys();
    volume.superblock.chunk_size_bytes = chunk_size;
    volume.keyring.generation = keyring_generation_;
    auto engine = engine::Engine::create({.thread_count = 2});
    NACRE_EXPECT_OK(engine);
    auto report = fs::check_volume(backing_, volume, **engine, options, {});
    NACRE_EXPECT_OK(report);
    return report ? std::move(*report) : fs::CheckReport{};
  }
  static std::string list(const fs::CheckReport& report) {
    std::string text;
    for (const auto& finding : report.findings.findings()) {
      text += fmt::format("  {}: {}: {} {}", to_string(finding.severity),
                          to_string(finding.verdict), finding.file, finding.what);
      for (const auto& path : finding.paths)
        text += " [" + path + "]";
      text += '\n';
    }
    return text.empty() ? "  nothing\n" : text;
  }
  // Expects the check to find an error with this verdict whose message has the text. Returns the
  // finding.
  fs::Finding expect_finding(const fs::CheckReport& report, fs::Verdict verdict,
                             std::string_view words) {
    for (const auto& finding : report.findings.findings()) {
      if (finding.severity == fs::Severity::error && finding.verdict == verdict &&
          finding.what.find(words) != std::string::npos) {
        return finding;
      }
    }
    ADD_FAILURE() << "no finding '" << words << "' of verdict " << to_string(verdict) << ", but:\n"
                  << list(report);
    return {};
  }
  fs::Finding expect_finding(fs::Verdict verdict, std::string_view words) {
    return expect_finding(check(), verdict, words);
  }

  std::uint64_t keyring_generation_ = 1;
  bool is_beyond_repair_ = false;
  fs::InodeNumber folder_, inner_, small_, large_, sparse_;
};

}  // namespace nacre::tests
