// SPDX-License-Identifier: Apache-2.0
// A BackingDirectory that counts what is read, written and synced below it, by folder.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "metadata/backing/backing.h"
#include "tests/support/operation_counts.h"

namespace nacre::tests {

// Thread-safe, as what is below it.
class CountedBacking final : public metadata::BackingDirectory {
 public:
  CountedBacking(std::shared_ptr<metadata::BackingDirectory> below,
                 std::shared_ptr<DiskCounters> counters)
      : below_(std::move(below)), counters_(std::move(counters)) {}

  Result<std::unique_ptr<metadata::BackingFile>> open(std::string_view path,
                                                      metadata::OpenMode mode) override;
  Result<void> remove(std::string_view path) override { return below_->remove(path); }
  Result<void> rename(std::string_view from, std::string_view to) override {
    return below_->rename(from, to);
  }
  Result<void> make_directory(std::string_view path) override {
    return below_->make_directory(path);
  }
  Result<bool> exists(std::string_view path) override { return below_->exists(path); }
  Result<std::uint64_t> file_size(std::string_view path) override {
    return below_->file_size(path);
  }
  Result<std::vector<std::string>> list(std::string_view folder) override {
    return below_->list(folder);
  }
  Result<void> sync_directory(std::string_view folder) override;
  Result<metadata::BackingSpace> space() override { return below_->space(); }
  std::string description() const override { return below_->description(); }

 private:
  std::shared_ptr<metadata::BackingDirectory> below_;
  std::shared_ptr<DiskCounters> counters_;
};

}  // namespace nacre::tests
