// SPDX-License-Identifier: Apache-2.0
// A place that the disk cannot read costs the chunk whose record lies there, also when its
// neighbours are read in the same call.
#include <random>

#include <gtest/gtest.h>

#include "fs/cache/file_data.h"
#include "fs/store/segment_table.h"
#include "tests/fs/store_fixture.h"
#include "tests/support/forwarding_directory.h"

namespace nacre::tests {
namespace {

using metadata::BackingFile;

// One sector of one file that reads give an I/O error for.
struct BadSector {
  std::string path;
  std::uint64_t offset = 0;
  std::uint64_t size = 512;
};

class FileWithBadSector final : public BackingFile {
 public:
  FileWithBadSector(std::unique_ptr<BackingFile> below, BadSector sector)
      : below_(std::move(below)), sector_(std::move(sector)) {}
  using BackingFile::write;
  Result<std::size_t> read(std::uint64_t offset, MutableByteView out) override {
    if (offset < sector_.offset + sector_.size && sector_.offset < offset + out.size()) {
      return fail(ErrorCode::io, "a bad sector");
    }
    return below_->read(offset, out);
  }
  Result<void> write(std::uint64_t offset, std::span<const ByteView> pieces) override {
    return below_->write(offset, pieces);
  }
  Result<void> sync() override { return below_->sync(); }
  void start_writeback(std::uint64_t, std::uint64_t) override {}
  void advise(std::uint64_t, std::uint64_t, bool) override {}
  Result<std::uint64_t> size() override { return below_->size(); }
  Result<void> truncate(std::uint64_t size) override { return below_->truncate(size); }
  Result<void> allocate(std::uint64_t size) override { return below_->allocate(size); }

 private:
  std::unique_ptr<BackingFile> below_;
  const BadSector sector_;
};

class DiskWithBadSector final : public ForwardingDirectory {
 public:
  DiskWithBadSector(std::shared_ptr<metadata::BackingDirectory> below, BadSector sector)
      : ForwardingDirectory(std::move(below)), sector_(std::move(sector)) {}
  Result<std::unique_ptr<BackingFile>> open(std::string_view path,
                                            metadata::OpenMode mode) override {
    auto file = below_->open(path, mode);
    if (!file || path != sector_.path) return file;
    return std::make_unique<FileWithBadSector>(std::move(*file), sector_);
  }

 private:
  const BadSector sector_;
};

TEST(ReadErrors, of_the_disk_give_eio_for_that_chunk_alone) {
  constexpr std::uint32_t chunk_size = 16u << 10;
  constexpr std::size_t chunk_count = 5;
  const auto backing = MemoryBacking::create();
  NACRE_ASSERT_OK(TestStore::format(backing));
  std::mt19937 random(1);
  Bytes content(chunk_count * chunk_size);
  for (Byte& byte : content)
    byte = static_cast<Byte>(random());
  metadata::RecordLocation bad;
  {
    auto store = TestStore::open(backing);
    NACRE_ASSERT_OK(store);
    NACRE_ASSERT_OK((*store)->file(2).write(0, content));
    NACRE_ASSERT_OK((*store)->sync_all());
    const auto mapped = (*store)->cache().map().find(fs::InodeNumber{2}, fs::ChunkIndex{2});
    NACRE_ASSERT_OK(mapped);
    ASSERT_TRUE(mapped->row.base);
    bad = mapped->row.base->location;
    NACRE_ASSERT_OK((*store)->close());
  }
  const auto disk = std::make_shared<DiskWithBadSector>(
      backing, BadSector{.path = fs::segment_path(bad.segment), .offset = bad.offset + 1000});
  auto store = TestStore::open(disk);
  NACRE_ASSERT_OK(store);
  fs::FileData& file = (*store)->file(2);
  // Reads all records in one call. The cache then has those that could be read.
  Bytes out(content.size());
  const auto whole = file.read(0, out);
  ASSERT_FALSE(whole);
  EXPECT_EQ(whole.error().code, ErrorCode::io);
  const auto stored_reads = (*store)->cache().chunks().stats();
  for (std::uint64_t index = 0; index < chunk_count; ++index) {
    Bytes chunk(chunk_size);
    const auto count = file.read(index * chunk_size, chunk);
    EXPECT_EQ(count.has_value(), index != 2) << "chunk " << index;
    if (!count) continue;
    EXPECT_TRUE(std::equal(chunk.begin(), chunk.end(),
                           content.begin() + static_cast<std::ptrdiff_t>(index * chunk_size)));
  }
  // The count of misses shows that the good records were not read again.
  EXPECT_EQ((*store)->cache().chunks().stats().misses, stored_reads.misses + 3);
  (*store)->committer().abandon();
}

}  // namespace
}  // namespace nacre::tests
