// SPDX-License-Identifier: Apache-2.0
// Chunks that are tidied: the records of a row stay in the order of their versions, since a salvage
// without rows has only the versions to order them by. The same holds for records that no row came
// to name.
#include "fs/cache/tidy_chunk.h"

#include <atomic>
#include <map>
#include <random>
#include <thread>

#include <gtest/gtest.h>

#include "fs/repair/chunk_of_records.h"
#include "tests/fs/disk_gate.h"
#include "tests/fs/store_fixture.h"

namespace nacre::tests {
namespace {

constexpr std::uint64_t tidied_file = 2;

class TidyChunk : public ::testing::Test {
 protected:
  void SetUp() override {
    backing_ = MemoryBacking::create();
    NACRE_ASSERT_OK(TestStore::format(backing_));
    auto opened = TestStore::open(
        backing_, {.segments = {.segment_size_bytes = 1u << 20, .chunk_size_bytes = 64u << 10}});
    NACRE_ASSERT_OK(opened);
    store_ = std::move(*opened);
    NACRE_ASSERT_OK(write(0, content_.size(), 'c'));
    NACRE_ASSERT_OK(store_->sync_all());
  }
  Result<> write(std::size_t offset, std::size_t size, char byte) {
    std::fill_n(content_.begin() + static_cast<std::ptrdiff_t>(offset), size,
                static_cast<Byte>(byte));
    return store_->file(tidied_file).write(offset, ByteView(content_).subspan(offset, size));
  }
  // Not as an fsync, whose few bytes stay in rows.
  Result<> sync_as_records() { return store_->sync_all(); }
  metadata::ChunkRow row() {
    auto mapped = store_->cache().map().find(fs::InodeNumber{tidied_file}, fs::ChunkIndex{0});
    EXPECT_TRUE(mapped);
    return mapped ? mapped->row : metadata::ChunkRow{};
  }
  void tidy() {
    NACRE_ASSERT_OK(fs::tidy_chunk(store_->cache(), store_->file(tidied_file), fs::ChunkIndex{0}));
    store_->check_map();
    Bytes found(content_.size());
    NACRE_ASSERT_OK(store_->file(tidied_file).read(0, found));
    EXPECT_TRUE(found == content_);
  }

  // Calls change when the next record is read, so that the row changes while its chunk is being
  // merged.
  void on_next_read(std::function<void()> change) {
    backing_->watch(
        [this, change = std::move(change)](std::uint32_t operation, std::string_view path) {
          if (operation != operation_read || !path.starts_with("segments/")) return;
          if (!is_changed_.exchange(true)) change();
        });
  }

  // The chunk as its records tell it, dead ones too, and no row.
  void expect_content_of_records() {
    const auto killed = backing_->process_kill();
    const auto keys = test_keys();
    const auto engine = engine::Engine::create({.thread_count = 1});
    NACRE_ASSERT_OK(engine);
    fs::FindingList findings;
    const auto found = fs::scan_records(*killed, *keys, **engine, 64u << 10, findings, {});
    NACRE_ASSERT_OK(found);
    fs::RecordOpener opener(*killed, *keys, **engine, *found);
    std::map<fs::RecordVersion, Bytes> plain;
    std::vector<fs::PlacedRecord> placed;
    // The records laid over each other as a salvage does it.
    Bytes laid(content_.size());
    for (const fs::FoundRecord& record : found->all) {
      const auto opened = opener.open(record);
      NACRE_ASSERT_OK(opened);
      EXPECT_TRUE(plain.emplace(record.version, *opened).second) << "a version was used twice";
      placed.push_back({&record, {{1}, record.offset, record.stored_size}});
      lay(laid, record.patch_offset, *opened);
    }
    EXPECT_TRUE(laid == content_);
    // The same as a rebuild of the database does it.
    metadata::ChunkRow row;
    EXPECT_TRUE(fs::add_newer_records(row, placed, static_cast<std::uint32_t>(content_.size())));
    EXPECT_TRUE(row.lost.empty());
    laid.assign(content_.size(), Byte{0});
    if (row.base) lay(laid, 0, plain.at(row.base->version));
    for (const metadata::ChunkPatch& patch : row.patches)
      lay(laid, patch.offset, plain.at(patch.version));
    EXPECT_TRUE(laid == content_);
  }
  static void lay(Bytes& over, std::uint32_t offset, const Bytes& bytes) {
    ASSERT_LE(offset + bytes.size(), over.size());
    std::copy(bytes.begin(), bytes.end(), over.begin() + offset);
  }

  std::shared_ptr<MemoryBacking> backing_;
  std::unique_ptr<TestStore> store_;
  std::atomic<bool> is_changed_{false};
  Bytes content_ = Bytes(64u << 10);
};

// In an earlier version, inlined bytes became a record that was newer than the bytes that lie over
// them.
TEST_F(TidyChunk, lays_no_older_bytes_over_newer_ones) {
  NACRE_ASSERT_OK(write(0, 4096, 'a'));
  NACRE_ASSERT_OK(store_->sync(tidied_file));  // inlined
  NACRE_ASSERT_OK(write(2048, 4096, 'b'));
  NACRE_ASSERT_OK(sync_as_records());
  const metadata::ChunkRow before = row();
  ASSERT_EQ(before.patches.size(), 2u);
  ASSERT_FALSE(before.patches.front().location);
  ASSERT_TRUE(before.patches.back().location);
  tidy();
  EXPECT_TRUE(row().patches.empty());
}

TEST_F(TidyChunk, moves_inlined_bytes_that_nothing_covers) {
  NACRE_ASSERT_OK(write(0, 4096, 'a'));
  NACRE_ASSERT_OK(store_->sync(tidied_file));  // inlined
  NACRE_ASSERT_OK(write(8192, 4096, 'b'));
  NACRE_ASSERT_OK(sync_as_records());
  NACRE_ASSERT_OK(write(8192, 2048, 'd'));
  NACRE_ASSERT_OK(store_->sync(tidied_file));  // inlined
  const metadata::ChunkRow before = row();
  ASSERT_EQ(before.patches.size(), 3u);
  ASSERT_FALSE(before.patches.front().location);
  ASSERT_TRUE(before.patches[1].location);
  ASSERT_FALSE(before.patches.back().location);
  tidy();
  EXPECT_EQ(row().patches.size(), 3u);
  for (const auto& patch : row().patches)
    EXPECT_TRUE(patch.location) << patch.offset;
}

// In an earlier version, a merged record that no row came to name was newer than the bytes that
// were written meanwhile.
TEST_F(TidyChunk, that_was_written_to_meanwhile_leaves_older_records) {
  NACRE_ASSERT_OK(write(0, 16u << 10, 'a'));
  NACRE_ASSERT_OK(sync_as_records());
  on_next_read([&] {
    NACRE_ASSERT_OK(write(4096, 4096, 'b'));
    NACRE_ASSERT_OK(sync_as_records());
  });
  const std::uint64_t before = store_->segments().stats().appended_records;
  const auto tidied = fs::tidy_chunk(store_->cache(), store_->file(tidied_file), fs::ChunkIndex{0});
  NACRE_ASSERT_OK(tidied);
  EXPECT_TRUE(is_changed_);
  EXPECT_FALSE(*tidied) << "the row has changed";
  EXPECT_EQ(store_->segments().stats().appended_records, before + 2);
  store_->check_map();
  expect_content_of_records();
  tidy();
  EXPECT_TRUE(row().patches.empty());
  expect_content_of_records();
}

// The same of content that goes in parts.
TEST_F(TidyChunk, in_parts_that_was_written_to_meanwhile_leaves_older_records) {
  store_->file(tidied_file).set_prefers_parts(true);
  NACRE_ASSERT_OK(write(0, 16u << 10, 'a'));
  NACRE_ASSERT_OK(sync_as_records());
  on_next_read([&] {
    NACRE_ASSERT_OK(write(30'000, 8000, 'b'));  // over the edge of two parts
    NACRE_ASSERT_OK(sync_as_records());
  });
  const std::uint64_t before = store_->segments().stats().appended_records;
  const auto tidied = fs::tidy_chunk(store_->cache(), store_->file(tidied_file), fs::ChunkIndex{0});
  NACRE_ASSERT_OK(tidied);
  EXPECT_FALSE(*tidied) << "the row has changed";
  EXPECT_EQ(store_->segments().stats().appended_records, before + 1 + 4);
  store_->check_map();
  expect_content_of_records();
}

// Nor may a flush be under way when the row is read, with versions that are drawn and no row yet. A
// test cannot see whether tidy_chunk() waits for that flush. So the disk goes on when a record was
// read, or after a while.
TEST_F(TidyChunk, waits_for_a_flush_that_has_its_versions) {
  NACRE_ASSERT_OK(write(0, 16u << 10, 'a'));
  NACRE_ASSERT_OK(sync_as_records());
  DiskGate gate(change_write, "segments/");
  std::atomic<bool> is_read{false};
  backing_->watch([&](std::uint32_t operation, std::string_view path) {
    if (operation == operation_read && path.starts_with("segments/")) is_read = true;
    gate.pass(operation, path);
  });
  gate.set_open(false);
  NACRE_ASSERT_OK(write(4096, 4096, 'b'));
  std::thread flush([&] { NACRE_EXPECT_OK(sync_as_records()); });
  gate.wait_for_one();
  std::thread disk([&] {
    constexpr int turns = 100'000;
    for (int i = 0; i < turns && !is_read; ++i)
      std::this_thread::yield();
    gate.set_open(true);
  });
  const auto tidied = fs::tidy_chunk(store_->cache(), store_->file(tidied_file), fs::ChunkIndex{0});
  disk.join();
  flush.join();
  backing_->watch({});
  NACRE_ASSERT_OK(tidied);
  store_->check_map();
  expect_content_of_records();
}

TEST_F(TidyChunk, beside_flushes_leaves_its_records_in_order) {
  std::mt19937 random(1);  // NOLINT: the same places each time
  for (int round = 0; round < 40; ++round) {
    NACRE_ASSERT_OK(write(4096 * (random() % 12), 16u << 10, static_cast<char>('A' + round % 26)));
    NACRE_ASSERT_OK(sync_as_records());
    std::thread writer([&] {
      NACRE_EXPECT_OK(write(1024 * (random() % 60), 4096, static_cast<char>('a' + round % 26)));
      NACRE_EXPECT_OK(sync_as_records());
    });
    const auto tidied =
        fs::tidy_chunk(store_->cache(), store_->file(tidied_file), fs::ChunkIndex{0});
    writer.join();
    NACRE_ASSERT_OK(tidied);
    store_->check_map();
    expect_content_of_records();
    if (HasFailure()) return;
  }
}

// The settled version of a checkpoint stays below versions that are drawn and not yet used.
TEST_F(TidyChunk, keeps_its_versions_from_being_settled) {
  NACRE_ASSERT_OK(write(0, 16u << 10, 'a'));
  NACRE_ASSERT_OK(sync_as_records());
  fs::RecordVersion settled;
  on_next_read([&] {
    NACRE_ASSERT_OK(write(0, 4096, 'b'));
    NACRE_ASSERT_OK(sync_as_records());
    NACRE_ASSERT_OK(sync_as_records());
    settled = store_->segments().settled_version();
  });
  const metadata::ChunkRow before = row();
  NACRE_ASSERT_OK(fs::tidy_chunk(store_->cache(), store_->file(tidied_file), fs::ChunkIndex{0}));
  ASSERT_TRUE(is_changed_);
  const metadata::ChunkRow after = row();
  ASSERT_EQ(after.patches.size(), before.patches.size() + 1);
  EXPECT_GT(settled, fs::newest_version(before));
  EXPECT_LT(settled, fs::newest_version(after));
}

}  // namespace
}  // namespace nacre::tests
