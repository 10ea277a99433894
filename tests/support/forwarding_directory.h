// SPDX-License-Identifier: Apache-2.0
// A BackingDirectory over another one, for tests that change one thing of it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "metadata/backing/backing.h"

namespace nacre::tests {

// Hands everything on; as thread-safe as what is below it.
class ForwardingDirectory : public metadata::BackingDirectory {
 public:
  explicit ForwardingDirectory(std::shared_ptr<metadata::BackingDirectory> below)
      : below_(std::move(below)) {}

  Result<std::unique_ptr<metadata::BackingFile>> open(std::string_view path,
                                                      metadata::OpenMode mode) override {
    return below_->open(path, mode);
  }
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
  Result<void> sync_directory(std::string_view folder) override {
    return below_->sync_directory(folder);
  }
  Result<metadata::BackingSpace> space() override { return below_->space(); }
  std::string description() const override { return below_->description(); }

 protected:
  const std::shared_ptr<metadata::BackingDirectory> below_;
};

}  // namespace nacre::tests
