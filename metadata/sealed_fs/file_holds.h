// SPDX-License-Identifier: Apache-2.0
// Files under db/ that a backup copies. RocksDB may need them no more, but they stay until the
// copying is over. A crash meanwhile leaves files that nothing depends on; RocksDB removes these
// when it opens the database.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>

#include "gpu_engine/base/mutex.h"
#include "metadata/backing/backing.h"

namespace nacre::metadata {

// Thread-safe. Paths as in backing.h.
class FileHolds {
 public:
  explicit FileHolds(std::shared_ptr<BackingDirectory> directory)
      : directory_(std::move(directory)) {}

  // Holds the files. A file that is held twice must be released twice.
  void hold(std::span<const std::string> paths);
  // Removes each file that was to be removed meanwhile and that has no hold any more. A file that
  // cannot be removed is left to the next opening of the database.
  void release(std::span<const std::string> paths);
  // Removes the file, now or when it is released.
  Result<void> remove(const std::string& path);
  bool are_there() const;  // whether any file is held
  // The stored bytes of the files that are there only because they are held.
  std::uint64_t removed_bytes() const;

 private:
  const std::shared_ptr<BackingDirectory> directory_;
  mutable Mutex mutex_;
  std::map<std::string, std::uint32_t> held_ NACRE_GUARDED_BY(mutex_);
  std::set<std::string> removed_ NACRE_GUARDED_BY(mutex_);
};

}  // namespace nacre::metadata
