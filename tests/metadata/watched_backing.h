// SPDX-License-Identifier: Apache-2.0
// A BackingDirectory that tells before each change of what lies below it: so a test can look at, or
// keep, what power loss would leave at that moment, while the work goes on undisturbed.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/forwarding_directory.h"

namespace nacre::tests {

class WatchedBacking final : public ForwardingDirectory {
 public:
  // before_change: called from whichever thread makes the change.
  WatchedBacking(std::shared_ptr<metadata::BackingDirectory> below,
                 std::function<void()> before_change)
      : ForwardingDirectory(std::move(below)), before_change_(std::move(before_change)) {}

  Result<std::unique_ptr<metadata::BackingFile>> open(std::string_view path,
                                                      metadata::OpenMode mode) override;
  Result<void> remove(std::string_view path) override {
    before_change_();
    return below_->remove(path);
  }
  Result<void> rename(std::string_view from, std::string_view to) override {
    before_change_();
    return below_->rename(from, to);
  }
  Result<void> make_directory(std::string_view path) override {
    before_change_();
    return below_->make_directory(path);
  }
  Result<void> sync_directory(std::string_view folder) override {
    before_change_();
    return below_->sync_directory(folder);
  }

 private:
  std::function<void()> before_change_;
};

}  // namespace nacre::tests
