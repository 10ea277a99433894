// SPDX-License-Identifier: Apache-2.0
// Chunks that a reader has taken whole are evicted first. Reads return views of clean chunks,
// without a copy.
#include <algorithm>
#include <atomic>
#include <memory>
#include <new>
#include <random>
#include <thread>

#include <gtest/gtest.h>

#include "fs/cache/chunk_cache.h"
#include "fs/cache/file_data.h"
#include "tests/fs/store_fixture.h"
#include "tests/support/error_of.h"
#include "tests/support/forwarding_directory.h"

namespace nacre::tests {
namespace {

constexpr std::uint32_t spent_chunk_size = 64u << 10;
constexpr std::uint64_t budget = 16u << 20;

fs::SharedContent spent_content(std::uint32_t size) {
  auto content = std::make_shared<fs::ChunkContent>();
  content->resize(size);
  return content;
}

class ChunkCacheSpent : public ::testing::Test {
 protected:
  static fs::ChunkCache::Key key(std::uint64_t chunk) {
    return {fs::InodeNumber{2}, fs::ChunkIndex{chunk}, {}};
  }
  // Returns true if the chunk was in the cache.
  bool read(std::uint64_t chunk, std::uint32_t from, std::uint32_t to) {
    auto lookup = cache_.acquire(key(chunk), fs::ChunkCache::Need::chunk, {from, to});
    if (lookup.claimed)
      cache_.finish(key(chunk), lookup.load, spent_content(spent_chunk_size), {from, to});
    return lookup.content != nullptr;
  }
  void stream(std::uint64_t first, std::uint64_t count) {
    for (std::uint64_t chunk = first; chunk < first + count; ++chunk)
      read(chunk, 0, spent_chunk_size);
  }

  fs::ChunkCache cache_{budget};
};

TEST_F(ChunkCacheSpent, a_file_that_is_read_once_takes_a_sixteenth) {
  stream(0, 2000);
  EXPECT_LE(cache_.stats().bytes, budget / 16);
  EXPECT_EQ(cache_.stats().bytes, cache_.stats().spent_bytes);
  EXPECT_GE(cache_.stats().bytes, budget / 32);
}

TEST_F(ChunkCacheSpent, also_where_its_chunks_come_ahead_and_are_taken_in_pieces) {
  for (std::uint64_t chunk = 0; chunk < 2000; ++chunk) {
    read(chunk + 8, 0, 0);
    for (std::uint32_t from = 0; from < spent_chunk_size; from += spent_chunk_size / 4)
      read(chunk, from, from + spent_chunk_size / 4);
  }
  EXPECT_LE(cache_.stats().bytes, budget / 16 + 8 * (spent_chunk_size + 1024));
}

TEST_F(ChunkCacheSpent, drives_out_nothing_that_others_come_back_for) {
  std::mt19937 random(1);
  const auto read_at_random = [&](std::uint64_t chunk) {
    const auto at = static_cast<std::uint32_t>(random() % 16 * 4096);
    return read(chunk, at, at + 4096);
  };
  for (int i = 0; i < 400; ++i)
    read_at_random(random() % 100);
  stream(1000, 2000);
  int hits = 0;
  for (std::uint64_t chunk = 0; chunk < 100; ++chunk)
    hits += read_at_random(chunk) ? 1 : 0;
  EXPECT_GE(hits, 95);  // but for those that no read met
}

TEST_F(ChunkCacheSpent, what_is_found_is_like_others_again) {
  read(7, 0, spent_chunk_size);
  EXPECT_GT(cache_.stats().spent_bytes, 0u);
  EXPECT_TRUE(read(7, 4096, 8192));
  EXPECT_EQ(cache_.stats().spent_bytes, 0u);
  stream(1000, 2000);
  EXPECT_TRUE(read(7, 0, 4096));
}

// A program that reads a file again and again without the kernel's cache may use all of the budget.
TEST_F(ChunkCacheSpent, what_is_taken_whole_again_and_again_stays) {
  for (std::uint64_t chunk = 0; chunk < 100; ++chunk)
    for (int twice = 0; twice < 2; ++twice)
      stream(chunk, 1);
  for (std::uint64_t chunk = 0; chunk < 100; ++chunk)
    EXPECT_TRUE(read(chunk, 0, spent_chunk_size)) << chunk;
  stream(1000, 2000);
  EXPECT_TRUE(read(99, 0, spent_chunk_size));
}

// In an earlier version, a late read ahead brought back chunks that the reader had taken already.
TEST_F(ChunkCacheSpent, a_look_ahead_changes_nothing_of_what_is_here) {
  read(7, 0, spent_chunk_size);
  EXPECT_EQ(cache_.claim_ahead(key(7)), nullptr);
  EXPECT_GT(cache_.stats().spent_bytes, 0u);
  EXPECT_EQ(cache_.stats().hits, 0u);
  const auto load = cache_.claim_ahead(key(8));
  ASSERT_NE(load, nullptr);
  EXPECT_EQ(cache_.claim_ahead(key(8)), nullptr) << "it is on its way";
  cache_.finish(key(8), load, spent_content(spent_chunk_size), {});
  EXPECT_TRUE(read(8, 0, 4096));
}

TEST_F(ChunkCacheSpent, is_not_what_is_taken_out_of_order) {
  read(7, spent_chunk_size / 2, spent_chunk_size);
  read(7, 0, spent_chunk_size / 4);
  EXPECT_EQ(cache_.stats().spent_bytes, 0u);
}

TEST_F(ChunkCacheSpent, is_also_what_somebody_waited_for) {
  const auto claim = cache_.acquire(key(7), fs::ChunkCache::Need::chunk, {});
  ASSERT_TRUE(claim.claimed);
  const auto lookup = cache_.acquire(key(7), fs::ChunkCache::Need::chunk, {0, spent_chunk_size});
  ASSERT_NE(lookup.load, nullptr);
  std::thread loader(
      [&] { cache_.finish(key(7), claim.load, spent_content(spent_chunk_size), {}); });
  const auto content = cache_.wait(key(7), *lookup.load, {0, spent_chunk_size});
  loader.join();
  NACRE_ASSERT_OK(content);
  EXPECT_EQ((*content)->size(), spent_chunk_size);
  EXPECT_GT(cache_.stats().spent_bytes, 0u);
}

TEST_F(ChunkCacheSpent, gives_way_before_all_others) {
  for (std::uint64_t chunk = 0; chunk < 10; ++chunk)
    read(chunk, 0, spent_chunk_size);
  for (std::uint64_t chunk = 1000; chunk < 1400; ++chunk)
    read(chunk, 0, 4096);
  EXPECT_EQ(cache_.stats().spent_bytes, 0u);
  EXPECT_LE(cache_.stats().bytes, budget);
}

// While it is armed, opening a segment fails for lack of memory.
class NoMemoryToOpen final : public ForwardingDirectory {
 public:
  using ForwardingDirectory::ForwardingDirectory;
  Result<std::unique_ptr<metadata::BackingFile>> open(std::string_view path,
                                                      metadata::OpenMode mode) override {
    if (armed_ && path.starts_with("segments/")) throw std::bad_alloc();
    return below_->open(path, mode);
  }
  void arm(bool on) { armed_ = on; }

 private:
  std::atomic<bool> armed_ = false;
};

class FileView : public ::testing::Test {
 protected:
  void SetUp() override {
    options_.segments.chunk_size_bytes = spent_chunk_size;
    directory_ = std::make_shared<NoMemoryToOpen>(MemoryBacking::create());
    NACRE_ASSERT_OK(TestStore::format(directory_));
    store_ = TestStore::open(directory_, options_).value();
    content_.resize(10 * spent_chunk_size + 5000);
    for (std::size_t i = 0; i < content_.size(); ++i)
      content_[i] = static_cast<Byte>(i / 37);
    NACRE_ASSERT_OK(store_->file(2).write(0, content_));
    NACRE_ASSERT_OK(store_->sync(2));
  }
  // Views a range. Returns how many of its bytes were copied into the buffer.
  std::size_t copied(std::uint64_t offset, std::size_t size) {
    buffer_.assign(size, Byte{'x'});
    const auto bytes = store_->file(2).view(offset, buffer_);
    NACRE_EXPECT_OK(bytes);
    if (!bytes) return 0;
    std::size_t at = 0;
    std::size_t copied = 0;
    for (const ByteView& part : bytes->parts) {
      const Byte* const place = buffer_.data() + at;
      if (part.data() == place) copied += part.size();
      EXPECT_TRUE(std::equal(part.begin(), part.end(),
                             content_.begin() + static_cast<std::ptrdiff_t>(offset + at)))
          << offset + at;
      at += part.size();
    }
    EXPECT_EQ(at, bytes->size);
    EXPECT_EQ(at, std::min<std::size_t>(size, content_.size() - offset));
    return copied;
  }

  StoreOptions options_;
  std::shared_ptr<NoMemoryToOpen> directory_;
  std::unique_ptr<TestStore> store_;
  Bytes content_, buffer_;
};

TEST_F(FileView, copies_nothing_of_clean_chunks) {
  EXPECT_EQ(copied(0, content_.size()), 0u);
  EXPECT_EQ(copied(spent_chunk_size - 100, 4096), 0u);
  EXPECT_EQ(copied(10 * spent_chunk_size, 9000), 0u) << "also of the last one";
}

TEST_F(FileView, copies_the_chunk_that_dirty_bytes_lie_over) {
  const Bytes written(100, Byte{'w'});
  std::copy(written.begin(), written.end(), content_.begin() + 2 * spent_chunk_size + 50);
  NACRE_ASSERT_OK(store_->file(2).write(2 * spent_chunk_size + 50, written));
  EXPECT_EQ(copied(0, content_.size()), spent_chunk_size);
}

TEST_F(FileView, copies_holes_and_what_lies_behind_content) {
  content_.resize(14 * spent_chunk_size);
  NACRE_ASSERT_OK(store_->file(2).resize(content_.size()));
  NACRE_ASSERT_OK(store_->sync(2));
  EXPECT_EQ(copied(0, content_.size()), 4u * spent_chunk_size);
}

// In an earlier version its chunks stayed claimed, and every later reader waited for ever.
TEST_F(FileView, without_memory_is_an_error_and_the_next_one_is_served) {
  store_.reset();
  store_ = TestStore::open(directory_, options_).value();
  buffer_.assign(content_.size(), Byte{0});
  directory_->arm(true);
  EXPECT_EQ(error_of(store_->file(2).view(0, buffer_)), ErrorCode::out_of_memory);
  store_->file(2).prefetch(0, content_.size());
  directory_->arm(false);
  EXPECT_EQ(copied(0, content_.size()), 0u);
}

// A view keeps its bytes, whatever happens to the file and to the cache.
TEST_F(FileView, stays_as_it_is) {
  buffer_.assign(content_.size(), Byte{0});
  const auto bytes = store_->file(2).view(0, buffer_);
  NACRE_ASSERT_OK(bytes);
  NACRE_ASSERT_OK(store_->file(2).write(0, Bytes(content_.size(), Byte{'n'})));
  NACRE_ASSERT_OK(store_->sync(2));
  Bytes other(content_.size());
  NACRE_ASSERT_OK(store_->file(2).read(0, other));
  EXPECT_EQ(other, Bytes(content_.size(), Byte{'n'}));
  std::size_t at = 0;
  for (const ByteView& part : bytes->parts) {
    EXPECT_TRUE(
        std::equal(part.begin(), part.end(), content_.begin() + static_cast<std::ptrdiff_t>(at)));
    at += part.size();
  }
  EXPECT_EQ(at, content_.size());
}

}  // namespace
}  // namespace nacre::tests
