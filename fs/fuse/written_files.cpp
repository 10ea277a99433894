// SPDX-License-Identifier: Apache-2.0
#include "fs/fuse/written_files.h"

namespace nacre::fs {

void WrittenFiles::note(metadata::InodeNumber inode) {
  const LockGuard lock(mutex_);
  if (written_.size() >= file_count_max && !written_.contains(inode.value)) {
    written_.erase(written_.begin());
  }
  written_.insert(inode.value);
  count_locked();
}

bool WrittenFiles::take(metadata::InodeNumber inode) {
  if (count_.load(std::memory_order_acquire) == 0) return false;
  const LockGuard lock(mutex_);
  const bool was_written = written_.erase(inode.value) > 0;
  count_locked();
  return was_written;
}

void WrittenFiles::must_be_told(metadata::InodeNumber inode) {
  const LockGuard lock(mutex_);
  if (to_be_told_.size() >= file_count_max) {
    too_many_to_tell_ = true;
    return;
  }
  to_be_told_.insert(inode.value);
  count_locked();
}

bool WrittenFiles::is_to_be_told(metadata::InodeNumber inode) const {
  if (count_.load(std::memory_order_acquire) == 0) return false;
  const LockGuard lock(mutex_);
  return too_many_to_tell_ || to_be_told_.contains(inode.value);
}

void WrittenFiles::may_expire(metadata::InodeNumber inode) {
  const LockGuard lock(mutex_);
  if (expired_.size() >= file_count_max) {
    too_many_expired_ = true;
    return;
  }
  expired_.insert(inode.value);
  count_locked();
}

bool WrittenFiles::may_have_expired(metadata::InodeNumber inode) const {
  const LockGuard lock(mutex_);
  return too_many_expired_ || expired_.contains(inode.value);
}

void WrittenFiles::forget(metadata::InodeNumber inode) noexcept {
  if (count_.load(std::memory_order_acquire) == 0) return;
  const LockGuard lock(mutex_);
  written_.erase(inode.value);
  to_be_told_.erase(inode.value);
  expired_.erase(inode.value);
  count_locked();
}

}  // namespace nacre::fs
