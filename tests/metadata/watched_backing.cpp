// SPDX-License-Identifier: Apache-2.0
// A directory that calls back before each change.
#include "tests/metadata/watched_backing.h"

namespace nacre::tests {
namespace {

using metadata::BackingFile;
using metadata::OpenMode;

class WatchedFile final : public BackingFile {
 public:
  WatchedFile(std::unique_ptr<BackingFile> below, std::function<void()> before_change)
      : below_(std::move(below)), before_change_(std::move(before_change)) {}

  using BackingFile::write;
  Result<std::size_t> read(std::uint64_t offset, MutableByteView out) override {
    return below_->read(offset, out);
  }
  Result<void> write(std::uint64_t offset, std::span<const ByteView> pieces) override {
    before_change_();
    return below_->write(offset, pieces);
  }
  Result<void> sync() override {
    before_change_();
    return below_->sync();
  }
  void start_writeback(std::uint64_t offset, std::uint64_t size) override {
    below_->start_writeback(offset, size);
  }
  void advise(std::uint64_t offset, std::uint64_t size, bool will_need) override {
    below_->advise(offset, size, will_need);
  }
  Result<std::uint64_t> size() override { return below_->size(); }
  Result<void> truncate(std::uint64_t size) override {
    before_change_();
    return below_->truncate(size);
  }
  Result<void> allocate(std::uint64_t size) override {
    before_change_();
    return below_->allocate(size);
  }

 private:
  std::unique_ptr<BackingFile> below_;
  std::function<void()> before_change_;
};

}  // namespace

Result<std::unique_ptr<BackingFile>> WatchedBacking::open(std::string_view path, OpenMode mode) {
  if (mode == OpenMode::create_new || mode == OpenMode::create_or_empty) before_change_();
  NACRE_ASSIGN(auto file, below_->open(path, mode));
  return std::make_unique<WatchedFile>(std::move(file), before_change_);
}

}  // namespace nacre::tests
