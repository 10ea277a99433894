// SPDX-License-Identifier: Apache-2.0
#include "metadata/sealed_fs/file_holds.h"

#include "gpu_engine/base/check.h"

namespace nacre::metadata {

void FileHolds::hold(std::span<const std::string> paths) {
  LockGuard lock(mutex_);
  for (const auto& path : paths)
    held_[path]++;
}

bool FileHolds::are_there() const {
  LockGuard lock(mutex_);
  return !held_.empty();
}

void FileHolds::release(std::span<const std::string> paths) {
  LockGuard lock(mutex_);
  for (const auto& path : paths) {
    const auto found = held_.find(path);
    NACRE_CHECK(found != held_.end(), "a hold of {} files is released twice", paths.size());
    if (--found->second > 0) continue;
    held_.erase(found);
    if (removed_.erase(path) != 0) static_cast<void>(directory_->remove(path));
  }
}

Result<void> FileHolds::remove(const std::string& path) {
  {
    LockGuard lock(mutex_);
    if (held_.contains(path)) {
      removed_.insert(path);
      return {};
    }
  }
  return directory_->remove(path);
}

std::uint64_t FileHolds::removed_bytes() const {
  LockGuard lock(mutex_);
  std::uint64_t sum = 0;
  for (const auto& path : removed_)
    sum += directory_->file_size(path).value_or(0);
  return sum;
}

}  // namespace nacre::metadata
