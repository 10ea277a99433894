// SPDX-License-Identifier: Apache-2.0
#include "tests/support/counted_backing.h"

namespace nacre::tests {
namespace {

using metadata::BackingFile;

DiskCounters::Folder& folder_of(DiskCounters& counters, std::string_view path) {
  if (path.starts_with("segments/")) return counters.segments;
  return path.starts_with("db/") ? counters.database : counters.other;
}

class CountedFile final : public BackingFile {
 public:
  CountedFile(std::unique_ptr<BackingFile> below, std::shared_ptr<DiskCounters> counters,
              std::string_view path)
      : below_(std::move(below)),
        counters_(std::move(counters)),
        folder_(folder_of(*counters_, path)) {}

  using BackingFile::write;
  Result<std::size_t> read(std::uint64_t offset, MutableByteView out) override {
    ++folder_.reads;
    auto count = below_->read(offset, out);
    if (count) folder_.bytes_read += *count;
    return count;
  }
  Result<void> write(std::uint64_t offset, std::span<const ByteView> pieces) override {
    note_write(pieces);
    return below_->write(offset, pieces);
  }
  Result<void> write_past_cache(std::uint64_t offset, std::span<const ByteView> pieces) override {
    note_write(pieces);
    return below_->write_past_cache(offset, pieces);
  }
  Result<void> sync() override {
    ++counters_->syncs;
    return below_->sync();
  }
  void start_writeback(std::uint64_t offset, std::uint64_t size) override {
    below_->start_writeback(offset, size);
  }
  void advise(std::uint64_t offset, std::uint64_t size, bool will_need) override {
    below_->advise(offset, size, will_need);
  }
  Result<std::uint64_t> size() override { return below_->size(); }
  Result<void> truncate(std::uint64_t size) override { return below_->truncate(size); }
  Result<void> allocate(std::uint64_t size) override { return below_->allocate(size); }
  bool is_nameless() override { return below_->is_nameless(); }

 private:
  void note_write(std::span<const ByteView> pieces) {
    ++folder_.writes;
    for (const ByteView piece : pieces)
      folder_.bytes_written += piece.size();
  }

  std::unique_ptr<BackingFile> below_;
  std::shared_ptr<DiskCounters> counters_;
  DiskCounters::Folder& folder_;
};

}  // namespace

Result<std::unique_ptr<BackingFile>> CountedBacking::open(std::string_view path,
                                                          metadata::OpenMode mode) {
  NACRE_ASSIGN(auto file, below_->open(path, mode));
  return std::make_unique<CountedFile>(std::move(file), counters_, path);
}

Result<void> CountedBacking::sync_directory(std::string_view folder) {
  ++counters_->folder_syncs;
  return below_->sync_directory(folder);
}

}  // namespace nacre::tests
