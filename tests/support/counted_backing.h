// SPDX-License-Identifier: Apache-2.0
// A BackingDirectory that counts what is read, written and synced below it, by folder.
#pragma once

#include <memory>
#include <string_view>
#include <utility>

#include "tests/support/forwarding_directory.h"
#include "tests/support/operation_counts.h"

namespace nacre::tests {

// Thread-safe, as what is below it.
class CountedBacking final : public ForwardingDirectory {
 public:
  CountedBacking(std::shared_ptr<metadata::BackingDirectory> below,
                 std::shared_ptr<DiskCounters> counters)
      : ForwardingDirectory(std::move(below)), counters_(std::move(counters)) {}

  Result<std::unique_ptr<metadata::BackingFile>> open(std::string_view path,
                                                      metadata::OpenMode mode) override;
  Result<void> sync_directory(std::string_view folder) override;

 private:
  std::shared_ptr<DiskCounters> counters_;
};

}  // namespace nacre::tests
